"""A log and its report can be given to others: no folder of a machine, no credentials."""

from __future__ import annotations

import pytest

from ranked_ledger.evals import disclosing, vectors
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.report import report
from tests.unit.eval_logs import row, run

SECRET = "https://ada:hush@models.example:8080/v1/?key=hush#hush"
OLD = (
    f"ranked-ledger eval run --data /home/ada/decisions -d /home/ada/q.jsonl --embedding '{SECRET}' --seed 0"
)


def test_a_command_names_files_and_services_and_nothing_around_them() -> None:
    said = disclosing.said(OLD)
    assert said == (
        "ranked-ledger eval run --data decisions -d q.jsonl --embedding https://models.example:8080/v1/ --seed 0"
    )
    assert disclosing.said(said) == said


@pytest.mark.parametrize(
    ("path", "name"), [("docs/decisions/", "decisions"), ("built-in", "built-in"), ("..", None)]
)
def test_a_path_is_its_last_part(path: str, name: str | None) -> None:
    found = disclosing.name_of(path)
    assert found == name if name else "." not in found and "/" not in found


def test_a_line_that_is_no_command_is_not_repeated() -> None:
    assert disclosing.said("run --data '/home/ada") == ""


def test_an_old_logs_report_tells_neither() -> None:
    made = report(run([row("q", "vector", ["g"])], command=OLD), command="report", resamples=100)
    for text in (made.markdown(), made.html()):
        assert "--data decisions" in text
        assert "hush" not in text
        assert "/home" not in text


def test_a_service_is_known_by_its_address_and_model_alone() -> None:
    service = vectors.model_of(SECRET, service_model="small", api_key="hush")
    assert service is not None
    assert service.key == "https://models.example:8080/v1 small"
    with pytest.raises(EvalError) as refused:
        vectors.model_of(SECRET)
    assert "hush" not in str(refused.value)
