"""`recall` against real servers: what its options do, what it explains, and what it says of an answer."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import ABSENT, Run, record


def test_recall_shows_every_component_and_explains(run: Run) -> None:
    record(run, "Invoices are immutable once sent", "--importance", "0.9")
    record(run, "The logo is blue")
    shown = run("recall", "may a sent invoice be edited?", "--explain").out
    for said in (
        "relevance",
        "imp.",
        "rec.",
        "dep.",
        "sum.",
        "score",
        "Invoices are immutable",
        "as it is set",
        "Trace ",
    ):
        assert said in shown
    answer = run("recall", "may a sent invoice be edited?", "--explain", "--prompt", "--json").json
    first = answer["hits"][0]
    assert {"rank", "relevance", "relevance_source", "importance", "recency", "dependency_boost"} <= set(
        first
    )
    assert [one["name"] for one in answer["explanations"][0]["components"]] == [
        *("relevance", "importance", "recency", "dependency", "summary"),
    ]
    assert "sum." not in run("recall", "may a sent invoice be edited?", "--preset", "published").out
    assert "Invoices are immutable" in answer["prompt"]
    assert run("recall", "invoice", "--prompt").out.startswith("<decisions-")


def test_options_of_recall_reach_the_database(run: Run) -> None:
    for number in range(4):
        record(run, f"Decision {number} about invoices", "--task", "a")
    answer = run(
        *(
            "recall",
            "invoices",
            "--task",
            "a",
            "--current-step",
            "100",
            "-n",
            "2",
            "--relevance",
            "1",
            "--importance",
            "0",
        ),
        *(
            "--recency",
            "0",
            "--dependency",
            "0",
            "--half-life-steps",
            "5",
            "--dependency-saturation",
            "2",
            "--policy",
            "mine",
        ),
        *("--request-id", ABSENT.replace("1", "2"), "--max-tokens", "500", "-a", "--json"),
    ).json
    assert len(answer["hits"]) == 2
    assert answer["policy"] == "mine"
    assert answer["request_id"] == ABSENT.replace("1", "2")
    assert run("recall", "invoices", "--no-trace", "--json").json["traced"] is False


def test_filters_of_recall(run: Run) -> None:
    record(run, "Invoices are immutable", "--visibility", "personal")
    retired = record(run, "Invoices are printed")
    run("lifecycle", "dispute", retired)
    record(run, "The logo is blue")

    def found(*options: str) -> list[str]:
        return [hit["content"] for hit in run("recall", "invoices", *options, "--json").json["hits"]]

    in_force = {"Invoices are immutable", "The logo is blue"}
    assert set(found()) == set(found("--include-stale")) == {*in_force, "Invoices are printed"}
    assert set(found("--no-stale")) == set(found("--preset", "published")) == in_force
    assert found("--no-stale", "--min-relevance", "0.01") == ["Invoices are immutable"]
    assert found("--no-stale", "--no-personal") == ["The logo is blue"]
    assert found("--only-confirmed") == []
    assert "superseded, no longer active" not in run("recall", "invoices", "--explain").out
    for options, less in (((), "-0.050"), (("--preset", "published", "--include-stale"), "-0.300")):
        shown = run("recall", "invoices", *options, "--explain").out
        assert less in shown
        assert "disputed Invoices are printed" in shown
        assert "disputed, no longer active" in shown


def test_calibration_and_fusion_reach_the_database(run: Run) -> None:
    record(run, "Invoices are immutable")
    answer = run(
        *("recall", "invoices", "--similarity-floor", "0.75", "--similarity-ceiling", "0.9"),
        *("--fusion", "blend", "--fusion-weight", "0.3", "--no-exact", "--flow", "f", "--runtime", "pytest"),
        *("--explain", "--json"),
    ).json
    in_force = answer["arguments"]
    assert (in_force["p_similarity_floor"], in_force["p_similarity_ceiling"]) == (0.75, 0.9)
    assert (in_force["p_fusion"], in_force["p_fusion_weight"], in_force["p_exact"]) == ("blend", 0.3, False)
    (explained,) = answer["explanations"]
    points = sum(part["points"] for part in explained["components"])
    assert points - explained["deduction"] == pytest.approx(answer["hits"][0]["ranking_score"])
    assert explained["relevance"]["source"] == "fts"
    assert (explained["relevance"]["from_text"], explained["step_distance"]) == (
        answer["hits"][0]["text_relevance"],
        0,
    )


def test_the_past_is_asked_by_step_and_by_time(run: Run) -> None:
    for content in ("Invoices are mutable", "Invoices are immutable"):
        record(run, content, "--task", "t")

    def asked(*options: str) -> list[str]:
        return [hit["content"] for hit in run("recall", "invoices", *options, "--json").json["hits"]]

    assert asked("--task", "t", "--as-of-step", "0") == ["Invoices are mutable"]
    assert asked("--as-of", "2001-01-01") == asked("--as-of", "2001-01-01T12:00+02:00") == []
    shown = run("recall", "invoices", "--task", "t", "--as-of-step", "0", "--explain").out
    assert "as it stood at step 0 of its task" in " ".join(shown.split())
    for options, said in (
        (("--as-of", "yesterday"), "write a time as 2026-05-01T12:00"),
        (("--as-of-step", "0"), "no task is given"),
        (("--as-of", "9999-01-01"), "no time of the past"),
    ):
        refused = run("recall", "invoices", *options, expect=2)
        assert said in " ".join(refused.err.split())


def test_a_preset_is_named(run: Run) -> None:
    record(run, "Invoices are immutable")
    answer = run("recall", "invoices", "--summary", "0.5", "--explain", "--json").json
    assert (answer["arguments"]["p_preset"], answer["arguments"]["p_w_summary"]) == ("tuned", 0.5)
    assert [one["name"] for one in answer["explanations"][0]["components"]][-1] == "summary"
    named = run("recall", "invoices", "--preset", "published", "--recency", "0.2", "--json").json["arguments"]
    told = ("p_preset", "p_w_similarity", "p_w_recency", "p_w_summary", "p_fusion", "p_half_life_steps")
    assert [named[one] for one in told] == ["published", 0.45, 0.2, 0, "none", 30]
    assert "there is no preset" in run("recall", "invoices", "--preset", "best", expect=2).err


def test_a_budget_says_what_it_cost(run: Run) -> None:
    for number in range(3):
        record(run, f"Invoices {number} " + "word " * 60, "--summary", f"Invoices {number}")
    shown = run("recall", "invoices", "--max-tokens", "160").out
    assert "shortened to" in shown
    done = run("recall", "invoices", "--max-tokens", "60", "--prompt")
    assert done.out.startswith("<decisions-")
    assert "2 left out, to fit the token budget." in done.err
    left_out = run("recall", "invoices", "--max-tokens", "40").out
    assert "3 left out, to fit the token budget." in left_out
    assert "Nothing matches" not in left_out


def test_what_the_database_refuses_of_a_recall_is_told_in_options(run: Run) -> None:
    refused = run("recall", "x", "--fusion", "sum", expect=2).err
    assert "--fusion is none, max or blend; it is sum" in refused
    assert "by --fusion-weight" in refused
    refused = run("recall", "x", "--similarity-floor", "0.9", "--similarity-ceiling", "0.1", expect=2).err
    assert "--similarity-floor (0.9) has to be below --similarity-ceiling (0.1)" in refused
