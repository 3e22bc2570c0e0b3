"""`init`: the shipped migrations get into a project once, in order, and later than what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranked_ledger import shipped
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures

FOLDER = Path("supabase") / "migrations"
SHIPPED = {one.area: one for one in shipped.migrations()}


def names(project: Path) -> list[str]:
    return sorted(path.name for path in (project / FOLDER).iterdir())


def areas(project: Path) -> list[str]:
    """What is there, in the order of a push."""
    return [name.split("_", 1)[1].removesuffix(".sql") for name in names(project)]


def test_the_checkout_s_migrations_are_found() -> None:
    assert [one.area for one in shipped.migrations()] == ["open_brain", "decision_ledger", "long_term_memory"]
    assert all(one.heading.startswith("-- Ranked Ledger: ") for one in shipped.migrations())


def test_an_empty_project_gets_both_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == 0
    assert names(tmp_path) == [SHIPPED["open_brain"].name, SHIPPED["decision_ledger"].name]
    for name, area in zip(names(tmp_path), areas(tmp_path), strict=True):
        assert (tmp_path / FOLDER / name).read_text(encoding="utf-8") == SHIPPED[area].text
    said = capsys.readouterr().out
    assert "supabase db push" in said
    assert "SQL editor" in said


def test_a_host_gets_the_ledger_only(tmp_path: Path) -> None:
    assert cli.run(["init", str(tmp_path)]) == 0
    assert areas(tmp_path) == ["decision_ledger"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["--long-term-memory"], ["long_term_memory"]),
        (["--long-term-memory", "--no-ledger"], ["long_term_memory"]),
        (["--long-term-memory", "--ledger"], ["decision_ledger", "long_term_memory"]),
        (
            ["--long-term-memory", "--with-open-brain"],
            ["open_brain", "decision_ledger", "long_term_memory"],
        ),
        (["--long-term-memory", "--with-open-brain", "--no-ledger"], ["open_brain", "long_term_memory"]),
        (["--ledger"], ["decision_ledger"]),
        (["--no-ledger", "--with-open-brain"], ["open_brain"]),
    ],
)
def test_what_is_asked_for_is_written_and_nothing_else(
    tmp_path: Path, arguments: list[str], written: list[str]
) -> None:
    assert cli.run(["init", str(tmp_path), *arguments]) == 0
    assert areas(tmp_path) == written


def test_nothing_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", str(tmp_path), "--no-ledger"]) == 0
    assert "Nothing to do." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first", "then", "order"),
    [
        ("--long-term-memory", "--ledger", ["long_term_memory", "decision_ledger"]),
        ("--ledger", "--long-term-memory", ["decision_ledger", "long_term_memory"]),
        ("--long-term-memory", "--with-open-brain", ["long_term_memory", "open_brain", "decision_ledger"]),
    ],
)
def test_the_long_term_memory_comes_before_or_after_the_others(
    tmp_path: Path, first: str, then: str, order: list[str]
) -> None:
    assert cli.run(["init", str(tmp_path), first]) == 0
    there = names(tmp_path)
    assert cli.run(["init", str(tmp_path), then]) == 0
    assert areas(tmp_path) == order
    assert set(there) < set(names(tmp_path))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("20990101000000_later.sql", ["20990101000001_open_brain.sql", "20990101000002_decision_ledger.sql"]),
        ("20991231235959_eve.sql", ["21000101000000_open_brain.sql", "21000101000001_decision_ledger.sql"]),
        ("99999999999999_end.sql", ["100000000000000_open_brain.sql", "100000000000001_decision_ledger.sql"]),
    ],
)
def test_versions_are_later_than_the_newest_that_is_there(
    tmp_path: Path, theirs: str, ours: list[str]
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / theirs).write_text("select 1;")
    (tmp_path / FOLDER / "0001_early.sql").write_text("select 1;")
    (tmp_path / FOLDER / "notes.txt").write_text("no migration")
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == 0
    assert set(ours) < set(names(tmp_path))


def test_a_second_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["init", str(tmp_path)])
    before = names(tmp_path)
    capsys.readouterr()
    assert cli.run(["init", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["written"] == []
    assert answer["present"] == [str(tmp_path / FOLDER / before[0])]
    assert names(tmp_path) == before


def test_a_renamed_copy_with_windows_line_ends_is_known(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    text = SHIPPED["decision_ledger"].text.replace("\n", "\r\n")
    (tmp_path / FOLDER / "20990101000000_their_name.sql").write_bytes(text.encode())
    assert cli.run(["init", str(tmp_path)]) == 0
    assert names(tmp_path) == ["20990101000000_their_name.sql"]


def test_an_edited_copy_is_refused_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["init", str(tmp_path)])
    copy = tmp_path / FOLDER / names(tmp_path)[0]
    copy.write_text(copy.read_text(encoding="utf-8") + "drop table x;\n", encoding="utf-8")
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == failures.FAILED
    assert str(copy) in capsys.readouterr().err
    assert names(tmp_path) == [copy.name]


def test_a_ledger_that_was_copied_alone_moves_behind_the_open_brain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["init", str(tmp_path)])
    (alone,) = names(tmp_path)
    assert cli.run(["init", str(tmp_path), "--with-open-brain", "--dry-run"]) == 0
    assert names(tmp_path) == [alone]
    capsys.readouterr()
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == 0
    assert f"{alone} is removed" in capsys.readouterr().out
    assert areas(tmp_path) == ["open_brain", "decision_ledger"]
    assert alone not in names(tmp_path)
    assert min(names(tmp_path)) > alone
    before = names(tmp_path)
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == 0
    assert names(tmp_path) == before


def test_a_ledger_moves_behind_the_open_brain_and_the_long_term_memory_after_it_stays(tmp_path: Path) -> None:
    cli.run(["init", str(tmp_path), "--ledger", "--long-term-memory"])
    _, memory = names(tmp_path)
    assert cli.run(["init", str(tmp_path), "--ledger", "--long-term-memory", "--with-open-brain"]) == 0
    assert areas(tmp_path) == ["long_term_memory", "open_brain", "decision_ledger"]
    assert names(tmp_path)[0] == memory


def test_a_ledger_with_something_of_theirs_behind_it_is_not_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["init", str(tmp_path)])
    (alone,) = names(tmp_path)
    (tmp_path / FOLDER / "20990101000000_theirs.sql").write_text("select 1;")
    assert cli.run(["init", str(tmp_path), "--with-open-brain"]) == failures.FAILED
    said = capsys.readouterr().err
    assert "has to come before" in said
    assert f"delete {tmp_path / FOLDER / alone}" in said
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "theirs", "noted"),
    [
        ([], "", True),
        ([], "create table invoices ();", True),
        ([], "create table agent_memories ();", False),
        (["--with-open-brain"], "", False),
        (["--long-term-memory"], "", False),
        (["--long-term-memory", "--ledger"], "", True),
    ],
)
def test_a_project_without_what_the_ledger_stands_on_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], theirs: str, noted: bool
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "0001_theirs.sql").write_text(theirs)
    for _ in range(2):
        assert cli.run(["init", str(tmp_path), *arguments]) == 0
        said = capsys.readouterr().out
        assert ("Note: the ledger stands on an Open Brain install" in said) is noted
        assert ("ranked-ledger init --with-open-brain" in said) is noted


def test_a_long_term_memory_makes_no_host_of_the_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["init", str(tmp_path), "--long-term-memory"])
    assert "Note" not in capsys.readouterr().out
    cli.run(["init", str(tmp_path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["note"].startswith("the ledger stands on an Open Brain install")
    assert len(answer["written"]) == 1
    assert answer["written"][0].endswith("_decision_ledger.sql")


def test_two_files_are_pasted_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["init", str(tmp_path), "--with-open-brain"])
    assert "paste the files, one after the other," in capsys.readouterr().out


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", str(tmp_path), "--dry-run"]) == 0
    assert "would be written" in capsys.readouterr().out
    assert not (tmp_path / "supabase").exists()


def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "supabase").write_text("a file")
    assert cli.run(["init", str(tmp_path)]) == failures.FAILED
    assert capsys.readouterr().err.startswith("Error: ")
