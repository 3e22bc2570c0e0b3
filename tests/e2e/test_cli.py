"""Every command against real servers: what it prints, what it answers as JSON, and its exit code."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import typer

from ranked_ledger import RankedLedger
from ranked_ledger.cli import app as cli
from ranked_ledger.stack import StackInfo
from tests.e2e.conftest import ABSENT, Run, install, new_user, record, token_of


@pytest.fixture(scope="module")
def before(stack: StackInfo) -> dict[str, subprocess.CompletedProcess[str]]:
    """What commands say while the ledger is not installed yet."""
    program = [sys.executable, "-m", "ranked_ledger.cli"]
    environment = os.environ | stack.env() | {"RANKED_LEDGER_WORKSPACE": "acme"}
    return {
        name: subprocess.run([*program, name], env=environment, capture_output=True, text=True, check=False)
        for name in ("doctor", "stats")
    }


@pytest.fixture(scope="module")
def installed(stack: StackInfo, before: object) -> StackInfo:
    """The same stack with the shipped migrations, once PostgREST has seen them."""
    install(stack)
    return stack


def test_a_decision_from_record_to_forget(run: Run) -> None:
    made = run(
        *(
            "record",
            "Invoices are immutable",
            "-r",
            "auditors diff them",
            "-a",
            "edit in place",
            "-a",
            "versions",
        ),
        *(
            "--importance",
            "0.9",
            "--task",
            "invoicing",
            "--step",
            "7",
            "--metadata",
            '{"by": "legal"}',
            "--json",
        ),
    ).json
    assert (made["step_index"], made["importance"], made["metadata"]["by"]) == (7, 0.9, "legal")
    assert made["alternatives"] == ["edit in place", "versions"]
    other = record(run, "Void instead of edit", "--task", "invoicing", "--depends-on", made["memory_id"])
    shown = run("show", made["memory_id"])
    for said in (
        "Invoices are immutable",
        "auditors diff them",
        "edit in place",
        "needed by",
        "Void instead of edit",
    ):
        assert said in shown.out
    assert run("forget", made["memory_id"], "--yes", "--json").json["dependents"] == [other]
    run("show", made["memory_id"], expect=3)
    assert "forgotten before" in run("forget", made["memory_id"], "--yes").out
    assert "lost ground" in run("show", other).out


def test_an_empty_workspace_says_why_there_is_nothing(run: Run) -> None:
    assert "No recalls" in run("stats").out
    assert "`ranked-ledger doctor` lists them" in run("recall", "anything").out
    assert run("timeline").out.strip() == "No decisions."


def test_supersede_and_restore(run: Run) -> None:
    old, new = record(run, "Use files"), record(run, "Use PostgreSQL")
    assert "is superseded by" in run("supersede", old, new, "--reason", "sums").out
    assert "was superseded already by" in run("supersede", old, new).out
    assert run("show", old, "--json").json["successor"] == new
    assert [one["memory_id"] for one in run("recall", "use", "--json").json["hits"]] == [new]
    shown = run("recall", "use", "--include-superseded").out
    assert old in shown, shown
    retired = shown.split(old)[1]
    assert "replaced by" in retired
    assert new in retired
    run("supersede", new, old, expect=4)
    assert run("lifecycle", "restore", old, "--json").json["lifecycle_status"] == "active"


@pytest.mark.parametrize(
    ("verb", "state"), [("reject", "rejected"), ("dispute", "disputed"), ("stale", "stale")]
)
def test_lifecycles(run: Run, verb: str, state: str) -> None:
    memory_id = record(run, "Use files")
    done = run("lifecycle", verb, memory_id, "--reason", "no", "--actor", "me", "--json").json
    assert (done["lifecycle_status"], done["changed"]) == (state, True)
    assert "no change" in run("lifecycle", verb, memory_id).out
    assert "me" in run("show", memory_id).out
    assert [
        one["lifecycle_status"] for one in run("timeline", "--lifecycle", state, "--json").json["decisions"]
    ] == [state]


def test_edges_pins_and_importance(run: Run) -> None:
    one, other = record(run, "One"), record(run, "Other")
    assert "is there now" in run("link", one, other).out
    assert "was there already" in run("link", one, other).out
    refused = run("link", other, one, expect=4).err
    assert refused.count(" -> ") == 2
    assert run("unlink", one, other, "--json").json["removed"] is True
    assert "was not there" in run("unlink", one, other).out
    assert run("pin", one, "--json").json["pinned"] is True
    assert run("recall", "--json").json["hits"][0]["memory_id"] == one
    assert len(run("timeline", "--pinned", "--json").json["decisions"]) == 1
    assert run("unpin", one, "--json").json["pinned"] is False
    assert run("importance", one, "0.75", "--json").json["importance"] == 0.75
    run("importance", one, "7", expect=2)
    run("link", one, ABSENT, expect=3)


def test_a_timeline_goes_on_after_its_page(run: Run) -> None:
    for number in range(5):
        record(run, f"Decision {number}")
    first = run("timeline", "-n", "2", "--oldest-first", "--json").json
    rest = run("timeline", "--oldest-first", "--after", json.dumps(first["next"]), "--json").json
    assert [one["content"] for one in first["decisions"] + rest["decisions"]] == [
        f"Decision {n}" for n in range(5)
    ]
    assert rest["next"] is None


def test_usage_statistics_and_pruning(run: Run) -> None:
    ids = [record(run, f"About invoices {number}") for number in range(2)]
    trace = run("recall", "invoices", "--json").json["request_id"]
    assert "1 used" in run("used", trace, ids[0]).out
    assert "marked before" in run("used", trace, ids[0]).out
    assert ABSENT in run("ignored", trace, ids[1], ABSENT, "--reason", "no").out
    stats = run("stats", "--json").json["policies"]
    assert [(one["recall_policy"], one["used_rate"], one["ignored_rate"]) for one in stats] == [
        ("ranked_ledger", 0.5, 0.5)
    ]
    assert "50%" in run("stats", "--since", "2020-01-01").out
    run("used", ABSENT, ids[0], expect=3)
    assert run("prune", "--days", "1", "--json").json["deleted"] == 0
    assert run("prune", "--before", "2999-01-01", "--json").json["deleted"] == 1


def test_many_at_once_and_again_with_the_same_key(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    file.write_text("".join(json.dumps({"content": f"Decision {n}", "task": "x"}) + "\n\n" for n in range(3)))
    assert "3 of them new" in run("record-many", str(file), "--idempotency-key", "once").out
    assert "0 of them new" in run("record-many", str(file), "--idempotency-key", "once").out
    file.write_text('{"content": "a"}\n{"contents": "b"}\n')
    assert "contents" in run("record-many", str(file), expect=2).err


def test_the_same_idempotency_key_for_something_else(run: Run) -> None:
    record(run, "One", "--idempotency-key", "k")
    assert run("record", "One", "--idempotency-key", "k", "--json").json["replayed"] is True
    run("record", "Two", "--idempotency-key", "k", expect=4)


def test_a_project_of_its_own(run: Run) -> None:
    record(run, "In billing", "--project", "billing")
    record(run, "In none")
    assert [one["content"] for one in run("timeline", "-p", "billing", "--json").json["decisions"]] == [
        "In billing"
    ]


def test_the_doctor_finds_everything_well(run: Run) -> None:
    record(run, "One")
    shown = run("doctor").out
    for said in ("Schema version", "pgvector", "1536 dimensions", "PostgREST sees all", "Everything is well"):
        assert said in shown
    assert "The public key can neither read the ledger nor call it." in shown
    assert "The long-term memory is installed, schema version 1." in shown
    answer = run("doctor", "--json").json
    assert answer["healthy"] is True
    assert {one["state"] for one in answer["findings"]} == {"ok"}


def test_the_doctor_mends_what_was_not_enrolled(run: Run, installed: StackInfo) -> None:
    memory_id = record(run, "One")
    with psycopg.connect(installed.db_url) as connection:
        connection.execute("delete from public.agent_decision_ledger where memory_id = %s", (memory_id,))
    assert "ranked-ledger doctor --mend" in run("doctor", expect=1).out
    assert run("doctor", "--mend", "--json").json["mended"]["enrolled"] == 1


def test_without_a_ledger(before: dict[str, subprocess.CompletedProcess[str]]) -> None:
    assert (before["doctor"].returncode, before["stats"].returncode) == (5, 5)
    assert "not installed" in before["doctor"].stdout
    assert "ranked-ledger init" in before["doctor"].stdout
    assert "ranked-ledger init" in before["stats"].stderr


def test_messages_name_options_and_commands(run: Run) -> None:
    assert "--max-tokens is 5" in run("recall", "x", "--max-tokens", "5", expect=2).err
    assert "`ranked-ledger timeline` shows what is here" in run("show", ABSENT, expect=3).err
    assert "'notauuid' is no memory id" in run("show", "notauuid", expect=2).err
    record(run, "One", "--project", "a")
    assert "--include-superseded shows retired ones" in run("recall", "x", "-p", "b").out


def test_a_wrong_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_SECRET_KEY", "sb_secret_wrong")
    run("stats", expect=7)
    run("doctor", expect=7)


def test_the_public_key_is_refused_before_anything_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_SECRET_KEY", os.environ["SUPABASE_PUBLISHABLE_KEY"])
    run("stats", expect=2)


def test_no_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", "http://127.0.0.1:9")
    run("stats", expect=6)
    run("doctor", expect=6)


def test_every_example_of_the_help_runs(
    run: Run, installed: StackInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_WORKSPACE", "acme")
    decision = [record(run, f"Invoices, decision {number}", "--task", "invoicing") for number in range(8)]
    trace = run("recall", "invoices", "--json").json["request_id"]
    (tmp_path / "decisions.jsonl").write_text('{"content": "One"}\n')
    folder = tmp_path / "docs" / "decisions"
    folder.mkdir(parents=True)
    (folder / "0001-a.md").write_text("# 1. A\n\n## Status\n\nAccepted\n\n## Decision\n\nYes.\n")
    contract = Path(__file__).resolve().parents[1] / "patches" / "function"
    shutil.copytree(contract, tmp_path / "supabase" / "functions" / "agent-memory-api")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKED_LEDGER_WORKSPACE")
    named = {"$OTHER": decision[1], "$OLD": decision[2], "$NEW": decision[3], "$TRACE": trace}
    named |= _an_organization(run, installed)
    with RankedLedger(installed.url, installed.secret_key, workspace="acme") as ledger:
        # a model is measured on ten vectors
        for number in range(10):
            vector = [1.0, 0.1 * number, *[0.0] * 1534]
            ledger.record(f"Vector {number}", embedding=vector, embedding_model="e5-small")
    reviewer = token_of(installed, named["$PERSON"])
    tested = ("demo", "memory adopt", "eval run", "eval report", "eval compare")
    elsewhere = tuple(f"ranked-ledger {one}" for one in tested)
    for example in _examples():
        if example.startswith(elsewhere):
            continue  # each has a test of its own
        ids = named | {"$ID": decision[7 if example.startswith("ranked-ledger forget") else 0]}
        if "$MEMORY" in example:
            about = ["--about", f"candidate:{named['$CANDIDATE']}", "-o", named["$ORG"]]
            ids["$MEMORY"] = run("memory", "remember", "Lives in Porto", *about, "--json").json["memory_id"]
        with monkeypatch.context() as now:
            if example.startswith("ranked-ledger memory review"):
                now.setenv("RANKED_LEDGER_ACCESS_TOKEN", reviewer)
            done = run(*(_filled(word, ids) for word in shlex.split(example)[1:]))
        assert done.out, example
        assert done.err == "", example


def _an_organization(run: Run, stack: StackInfo) -> dict[str, str]:
    """One that allows its members to be named, with an admin, and somebody to remember things about."""
    org = run("memory", "org", "create", "Acme", "--allow-asserted", "--json").json["org_id"]
    person = new_user(stack)
    run("memory", "member", "add", person, "--role", "admin", "-o", org)
    run("memory", "map", "acme", "-o", org)
    return {"$ORG": org, "$PERSON": person, "$CANDIDATE": str(uuid4())}


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def test_the_module_is_a_program_too(environment: None) -> None:
    command = [sys.executable, "-m", "ranked_ledger.cli", "stats", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"policies": []}


def _examples() -> Iterator[str]:
    def walk(group: Any) -> Iterator[str]:
        for name, command in group.commands.items():
            if getattr(command, "commands", None):
                if name != "stack":
                    yield from walk(command)
            else:
                yield command.epilog.removeprefix("Example: ")

    yield from walk(typer.main.get_command(cli.app))
