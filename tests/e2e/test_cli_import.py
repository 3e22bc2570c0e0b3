"""`import`: a folder of decision records gets into the ledger once, whole, and as its words say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger import RankedLedger, adr
from ranked_ledger.cli import app as cli
from ranked_ledger.stack import StackInfo, temporary_stack
from tests.e2e.conftest import install


@pytest.fixture(scope="module")
def stack() -> Iterator[StackInfo]:
    with temporary_stack() as running:
        info = running.info()
        install(info)
        yield info


@pytest.fixture
def ledger(stack: StackInfo, request: pytest.FixtureRequest) -> Iterator[RankedLedger]:
    with RankedLedger(stack.url, stack.secret_key, workspace=request.node.name) as ledger:
        yield ledger


def write(folder: Path, number: int, title: str, **said: str) -> None:
    text = (
        f"---\nstatus: {said.get('status', 'accepted')}\nimportance: {said.get('importance', '0.5')}\n---\n"
    )
    text += (
        f"# {title}\n\n## Decision\n\n{said.get('decision', 'Yes.')}\n\n## Links\n\n{said.get('links', '')}\n"
    )
    (folder / f"{number:04}-{title.lower().replace(' ', '-')}.md").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, 1, "Use files", status="superseded by ADR-2")
    write(tmp_path, 2, "Use PostgreSQL", importance="0.9", links="- Supersedes ADR-1")
    write(tmp_path, 3, "Use one database", links="- Depends on ADR-2")
    write(tmp_path, 4, "Use MongoDB", status="rejected")
    write(tmp_path, 5, "Use Flash", status="deprecated")
    return tmp_path


def states(ledger: RankedLedger) -> dict[str | None, str]:
    return {one.summary: one.lifecycle_status for one in ledger.timeline()}


def test_what_the_records_say_is_in_the_ledger(ledger: RankedLedger, folder: Path) -> None:
    report = adr.import_folder(ledger, adr.read_folder(folder))
    assert len(report.recorded) == 5
    assert (report.linked, report.superseded, report.marked, report.refused) == (1, 1, 2, [])
    assert states(ledger) == {
        "Use files": "superseded",
        "Use PostgreSQL": "active",
        "Use one database": "active",
        "Use MongoDB": "rejected",
        "Use Flash": "stale",
    }
    decisions = list(ledger.timeline(newest_first=False))
    assert [one.step_index for one in decisions] == [0, 1, 2, 3, 4]
    assert [one.summary for one in decisions][:2] == ["Use files", "Use PostgreSQL"]
    assert {one.created_by for one in decisions} == {"import"}
    assert {one.task_id for one in decisions} == {"decision-records"}
    assert decisions[1].importance == 0.9
    assert ledger.get(decisions[0]).successor == decisions[1].memory_id
    assert [end.summary for end in ledger.get(decisions[2]).edges_out] == ["Use PostgreSQL"]


def test_a_second_import_writes_nothing(ledger: RankedLedger, folder: Path) -> None:
    first = adr.import_folder(ledger, adr.read_folder(folder))
    second = adr.import_folder(ledger, adr.read_folder(folder))
    assert not second.wrote
    assert second.decisions.keys() == first.decisions.keys()
    assert len(list(ledger.timeline())) == 5


def test_an_import_that_broke_off_is_finished_by_the_next(
    ledger: RankedLedger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RankedLedger, "link", broken)
        with pytest.raises(KeyboardInterrupt):
            adr.import_folder(ledger, adr.read_folder(folder))
    report = adr.import_folder(ledger, adr.read_folder(folder))
    assert (report.recorded, report.linked, report.superseded) == ([], 1, 1)


def test_a_new_record_that_replaces_an_old_one(ledger: RankedLedger, folder: Path) -> None:
    adr.import_folder(ledger, adr.read_folder(folder))
    write(folder, 3, "Use one database", status="superseded by ADR-6", links="- Depends on ADR-2")
    write(folder, 6, "Use two databases")
    report = adr.import_folder(ledger, adr.read_folder(folder))
    assert (report.recorded, report.changed, report.superseded) == (["ADR-0006"], [], 1)
    assert states(ledger)["Use one database"] == "superseded"


def test_a_reworded_record_is_said_and_recorded_anew_only_where_that_is_wanted(
    ledger: RankedLedger, folder: Path
) -> None:
    adr.import_folder(ledger, adr.read_folder(folder))
    write(folder, 3, "Use one database", decision="One, and a replica.", links="- Depends on ADR-2")
    report = adr.import_folder(ledger, adr.read_folder(folder))
    assert (report.changed, report.wrote) == (["ADR-0003"], False)
    report = adr.import_folder(ledger, adr.read_folder(folder), update=True)
    assert (report.updated, report.superseded, report.linked) == (["ADR-0003"], 1, 1)
    assert not adr.import_folder(ledger, adr.read_folder(folder), update=True).wrote


def test_a_loop_is_counted_and_the_rest_is_written(ledger: RankedLedger, tmp_path: Path) -> None:
    write(tmp_path, 1, "A", links="- Depends on ADR-2")
    write(tmp_path, 2, "B", links="- Depends on ADR-1")
    write(tmp_path, 3, "C", links="- Depends on ADR-1")
    report = adr.import_folder(ledger, adr.read_folder(tmp_path))
    assert (report.linked, len(report.refused)) == (2, 1)
    assert report.refused[0].what == "ADR-0002 depends_on ADR-0001"


def test_what_was_retired_in_the_ledger_stays_retired(ledger: RankedLedger, folder: Path) -> None:
    report = adr.import_folder(ledger, adr.read_folder(folder))
    ledger.set_lifecycle(report.decisions["ADR-0003"], "disputed")
    adr.import_folder(ledger, adr.read_folder(folder))
    assert states(ledger)["Use one database"] == "disputed"


def test_the_same_folder_in_two_projects(ledger: RankedLedger, folder: Path) -> None:
    records = adr.read_folder(folder)
    for project in ("a", "b"):
        assert len(adr.import_folder(ledger.with_options(project=project), records).recorded) == 5
    assert not adr.import_folder(ledger.with_options(project="a"), records).wrote


def test_the_command(
    stack: StackInfo, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "README.md").write_text("# About\n")
    for name, value in stack.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RANKED_LEDGER_WORKSPACE", "command")

    def run(*more: str) -> str:
        assert cli.run(["import", str(folder), *more]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out

    assert "Nothing was written." in run("--dry-run")
    shown = run()
    for said in (
        "ADR-0002",
        "superseded",
        "Use PostgreSQL",
        "5 records new",
        "README.md: by its name no decision",
    ):
        assert said in shown
    assert "Nothing new: all 5 records were there." in run()
    answer: dict[str, Any] = json.loads(run("--json"))
    assert answer["imported"]["recorded"] == []
    assert len(answer["imported"]["decisions"]) == 5
    assert [one["path"] for one in answer["skipped"]] == ["README.md"]
