"""The parts of the benchmark that decide what is printed: bars, ratios, and the page beside the JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.bench import report
from tests.bench.findings import Finding, added, compared, findings, p95, read
from tests.bench.plan import TEXT, VECTOR, Case
from tests.bench.texts import ROOT
from tests.bench.timing import Arm, interleaved

PAGE = ROOT / "docs" / "benchmark.md"


def found(ours: float, other: float, **options: object) -> Finding:
    timings = {"ours": [ours] * 3, "other": [other] * 3}
    given = {"subject": "ours", "baseline": "other", "bar": VECTOR} | options
    return compared("vector", "vector", 10, timings, **given)  # type: ignore[arg-type]


def test_a_bar_of_at_most_is_met_at_its_limit_and_missed_above() -> None:
    assert found(16, 10).met is True
    assert found(16.1, 10).met is False


def test_a_bar_of_times_faster_is_met_from_its_limit_on() -> None:
    assert found(1, 25, bar=TEXT).met is True
    assert found(1, 24, bar=TEXT).met is False


def test_a_figure_without_a_bar_is_neither_met_nor_missed() -> None:
    assert found(100, 1, judged=False).met is None


def test_a_finding_comes_back_from_its_json() -> None:
    finding = found(3, 2)
    assert Finding.from_json(finding.to_json()) == finding


def run(commit: str, *found: Finding, **about: Any) -> dict[str, Any]:
    """A document, of one machine unless another is said."""
    made = {
        "commit": commit,
        "taken_at": "2026-12-01",
        "uncommitted_changes": False,
        "plan": {"rows": [10]},
        "versions": {"PostgreSQL": "18"},
        "machine": {"cpu": "one", "cores": 2, "memory_gb": 1, "system": "s", "load_average_before": [0.5]},
        "settings": {"changed": {}, "left_at_their_defaults": {}},
        "inputs": {"texts": "t", "real_vectors": "r", "random_vectors": "g"},
        "load_average_after": [0.25],
    }
    return made | about | {"findings": [finding.to_json() for finding in found]}


def case(name: Case, ours: float) -> Finding:
    return replace(found(ours, 1), case=name)


def test_a_later_run_of_a_case_takes_the_place_of_that_case_alone() -> None:
    first = added(run("aaa", case("text", 1), case("patched", 2)), run("bbb", case("patched", 3)))
    again = added(first, run("ccc", case("patched", 4)))
    assert [(one.case, one.figure) for one in findings(again)] == [("text", 1), ("patched", 4)]
    assert [one["commit"] for one in again["added"]] == ["ccc"]


def test_a_later_run_says_its_own_commit_and_what_was_newer() -> None:
    later = run("bbb", case("patched", 3), versions={"PostgreSQL": "18", "Deno": "2"})
    first, second, *_ = report.about(added(run("aaa", case("text", 1)), later))
    assert first == "commit aaa, 2026-12-01"
    assert second == (
        "patched, in a run of its own: commit bbb, 2026-12-01, Deno 2; load average 0.5 before and 0.25 after"
    )


def test_a_run_on_another_machine_or_of_other_sizes_is_not_added() -> None:
    other = {"cpu": "other", "cores": 2, "memory_gb": 1, "system": "s", "load_average_before": [0.5]}
    for later in (run("bbb", plan={"rows": [11]}), run("bbb", machine=other)):
        with pytest.raises(ValueError, match="not the same"):
            added(run("aaa"), later)


def test_the_95th_percentile_is_a_time_that_was_measured() -> None:
    assert p95([float(n) for n in range(1, 101)]) == 95
    assert p95([7.0]) == 7


def test_a_slow_arm_is_asked_less_often_and_over_all_questions() -> None:
    asked: dict[str, list[int]] = {"fast": [], "slow": []}
    arms = [Arm("fast", asked["fast"].append, 9, warm_up=0), Arm("slow", asked["slow"].append, 3, warm_up=0)]
    taken = interleaved(arms)
    assert {name: len(times) for name, times in taken.items()} == {"fast": 9, "slow": 3}
    assert asked == {"fast": list(range(9)), "slow": [2, 5, 8]}


def test_the_page_shows_what_its_json_says() -> None:
    kept = PAGE.with_suffix(".json")
    shown = PAGE.read_text(encoding="utf-8").split(report.BEGIN)[1].split(report.END)[0]
    expected = report.markdown(read(kept), "benchmark.svg") if kept.exists() else "Not measured yet."
    assert shown.strip() == expected
