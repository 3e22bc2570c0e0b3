"""The commands about what rests on a decision, and about what a workspace chose, against real servers."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import ABSENT, Run, record


def test_what_rests_on_a_decision(run: Run) -> None:
    rule = record(run, "Invoices are immutable")
    notes = record(run, "Corrections are credit notes", "--task", "invoicing", "--depends-on", rule)
    numbers = record(run, "Credit notes have their own numbers", "--depends-on", notes)
    shown = run("impact", rule).out
    assert "2 decisions rest on it, 1 directly; 2 are active." in shown
    lines = [line.rstrip() for line in shown.splitlines()]
    assert "- Corrections are credit notes" in lines
    assert "  - Credit notes have their own numbers" in lines
    assert f"  {notes}  step 0, importance 0.50, invoicing" in lines

    answer = run("impact", rule, "--json").json
    assert [(one["memory_id"], one["depth"]) for one in answer["decisions"]] == [(notes, 1), (numbers, 2)]
    assert (answer["direct"], answer["total"], answer["more"]) == (1, 2, False)

    nearest = run("impact", rule, "--max-depth", "1").out
    assert "Credit notes have" not in nearest
    assert "And 1 more" in nearest
    assert "Nothing rests on it." in run("impact", numbers).out


def test_the_impact_of_what_is_not_there_or_cannot_be_meant(run: Run) -> None:
    assert "no decision" in run("impact", ABSENT, expect=3).err
    error = json.loads(run("impact", ABSENT, "--json", expect=3).err)["error"]
    assert (error["type"], error["code"]) == ("NotFoundError", "RL404")
    assert "--max-depth must be in [1, " in run("impact", ABSENT, "--max-depth", "0", expect=2).err
    assert "limit must be in [1, 1,000]" in run("impact", ABSENT, "--limit", "1001", expect=2).err


def test_a_workspace_is_read_in_its_language(run: Run) -> None:
    record(run, "Rechnungen bleiben unverändert")
    assert "pg_catalog.english" in run("settings", "show").out
    assert run("recall", "Rechnung", "--json").json["hits"][0]["text_relevance"] == 0
    changed = run("settings", "text-config", "german").out
    assert "pg_catalog.german" in changed
    assert "Changed. 1 decision was read anew." in changed
    published = run("recall", "Rechnung", "--preset", "published", "--json").json
    assert published["hits"][0]["text_relevance"] == pytest.approx(0.5)
    assert "No change." in run("settings", "text-config", "pg_catalog.german").out
    assert run("settings", "show", "--json").json["text_config"] == "pg_catalog.german"
    refused = run("settings", "text-config", "klingon", expect=2).err
    assert "There is no text search configuration klingon" in refused
    assert ", german, " in refused


def test_a_model_has_its_range(run: Run) -> None:
    assert "cosines count as they are" in run("settings", "show").out
    shown = run("settings", "similarity-range", "e5-small", "--floor", "0.75", "--ceiling", "0.86").out
    assert "e5-small: 0.75 to 0.86" in shown
    assert "Changed." in shown
    answer = run("settings", "similarity-range", "other", "--floor", "-0.5", "--ceiling", "1", "--json").json
    assert [one["embedding_model"] for one in answer["similarity_ranges"]] == ["e5-small", "other"]
    cleared = run("settings", "similarity-range", "e5-small", "--clear").out
    assert "e5-small" not in cleared
    assert "No change." in run("settings", "similarity-range", "e5-small", "--clear").out


def test_a_range_that_cannot_be_measured_yet_says_what_is_missing(run: Run) -> None:
    record(run, "one")
    refused = run("settings", "similarity-range", "m", "--fit", expect=2).err
    assert "0 decisions of this workspace have a vector" in refused
    assert "ranked-ledger settings similarity-range" in refused


def test_a_range_that_cannot_be_meant(run: Run) -> None:
    model = ("settings", "similarity-range", "m")
    both = ("--floor", "0.1", "--ceiling", "0.2")
    for half in ((), ("--floor", "0.1"), (*both, "--clear"), (*both, "--fit"), ("--fit", "--clear")):
        assert "--floor and --ceiling, or --fit alone, or --clear" in run(*model, *half, expect=2).err
    assert "floor must be below ceiling" in run(*model, "--floor", "0.5", "--ceiling", "0.4", expect=2).err
    assert "ceiling must be a cosine" in run(*model, "--floor", "0.5", "--ceiling", "1.5", expect=2).err
