"""`ranked-ledger patch` on a folder: what it writes, what it leaves alone, what it says, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger import patching
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures
from ranked_ledger.patching import deno, marks, rules
from ranked_ledger.patching import folder as folders
from tests.patches import rig, variants

BACKUP = f"index.ts{folders.BACKUP}"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def with_deno() -> None:
    """For a test that asks Deno; the others do without, since a type check takes seconds."""


@pytest.fixture(autouse=True)
def _no_deno(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "with_deno" not in request.fixturenames:
        monkeypatch.setattr(deno, "find_deno", lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The contract's function where a project has it, and Deno its packages."""
    folder = rig.copied(tmp_path)
    (folder / "node_modules").symlink_to(rig.NODE_MODULES)
    return folder


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "index.ts"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command of the patch: its exit code, what it says and what it complains of."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run(["patch", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def line_of(file: Path, part: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if part in line)


def older(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A patch of an older version: other lines, another module."""
    with monkeypatch.context() as then:
        module = rules.module_text()
        then.setattr(marks, "VERSION", 0)
        then.setattr(rules, "module_text", lambda: f"{module}export const older = true;\n")
        patching.apply(folder)


# --- the four commands ----------------------------------------------------------------------------------------------


def test_a_patch_is_shown_made_checked_and_taken_out(folder: Path, file: Path, run: Run) -> None:
    before = contents(folder)
    code, said, _ = run("check", folder)
    assert (code, contents(folder)) == (0, before)
    assert "The patch can be applied" in said

    code, shown, _ = run("diff", folder)
    assert (code, contents(folder)) == (0, before)
    assert shown.startswith("--- a/index.ts\n+++ b/index.ts\n@@ ")

    code, said, _ = run("apply", folder)
    assert code == 0
    assert "supabase functions deploy agent-memory-api" in said
    assert set(contents(folder)) == {*before, rules.MODULE, BACKUP}
    assert (folder / BACKUP).read_bytes() == before["index.ts"]
    added = [line[1:] for line in shown.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added
    assert set(added) <= set(file.read_text(encoding="utf-8").splitlines())

    code, said, _ = run("check", folder)
    assert code == 0
    assert "The patch is there and up to date" in said
    assert run("diff", folder) == (0, "", "")
    after = contents(folder)
    code, said, _ = run("apply", folder)
    assert (code, contents(folder)) == (0, after)
    assert "nothing was changed" in said

    code, said, _ = run("revert", folder)
    assert (code, contents(folder)) == (0, before)
    assert "byte for byte" in said
    code, said, _ = run("revert", folder)
    assert (code, contents(folder)) == (0, before)
    assert "has no patch" in said


def test_a_diff_is_one_that_patch_takes(folder: Path, file: Path, run: Run) -> None:
    program = shutil.which("patch")
    if program is None:
        pytest.skip("the program patch is not here")
    _, shown, _ = run("diff", folder)
    subprocess.run([program, "-s", "-p1"], input=shown, cwd=folder, check=True, text=True)
    by_hand = file.read_bytes()
    subprocess.run([program, "-s", "-p1", "-R"], input=shown, cwd=folder, check=True, text=True)
    run("apply", folder)
    assert file.read_bytes() == by_hand


def test_every_command_speaks_json(folder: Path, run: Run) -> None:
    def document(*arguments: object) -> dict[str, Any]:
        code, said, _ = run(*arguments, "--json")
        assert code == 0
        return dict(json.loads(said))

    checked = document("check", folder)
    assert (checked["state"], checked["version"]) == ("absent", marks.VERSION)
    route = 'app.post("/recall", async (c) => {'
    assert {"place": "route", "line": line_of(folder / "index.ts", route), "text": route} in checked["places"]
    assert document("diff", folder)["diff"].startswith("--- a/index.ts")
    applied = document("apply", folder)
    assert (applied["state"], applied["changed"]) == ("current", True)
    assert applied["backup"] == str(folder / BACKUP)
    assert document("apply", folder)["changed"] is False
    assert document("check", folder)["state"] == "current"
    reverted = document("revert", folder)
    assert (reverted["changed"], reverted["as_before"]) == (True, True)
    assert document("revert", folder)["changed"] is False


def test_a_refusal_is_json_too(folder: Path, file: Path, run: Run) -> None:
    file.write_text(variants.variant("refused-no-policy").text, encoding="utf-8")
    before = contents(folder)
    code, said, complaint = run("apply", folder, "--json")
    assert (code, said, contents(folder)) == (failures.REFUSED, "", before)
    (refusal,) = json.loads(complaint)["error"]["refusals"]
    assert refusal["place"] == "trace-policy"
    assert refusal["nearest"]["text"] == '.from("agent_memory_recall_traces")'
    assert "tracePolicy" in refusal["by_hand"]


def test_a_refusal_says_what_to_write_by_hand(folder: Path, file: Path, run: Run) -> None:
    file.write_text(variants.variant("refused-embedding-in-the-match-call").text, encoding="utf-8")
    for command in ("apply", "check", "diff"):
        code, said, complaint = run(command, folder)
        assert (code, said) == (failures.REFUSED, "")
        assert "nothing was written" in complaint
        near = "query_embedding: await embed(payload.query),"
        assert f"nearest:    line {line_of(file, near)}: {near}" in complaint
        assert "await rankedLedger.embedding(payload, async () => (<your expression>))" in complaint


def test_a_file_may_be_named_instead_of_its_folder(folder: Path, file: Path, run: Run) -> None:
    assert run("apply", file)[0] == 0
    assert run("check", folder)[1].count("up to date") == 1
    assert run("revert", file)[0] == 0


def test_the_project_s_function_is_the_default(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parents[2])
    assert run("apply")[0] == 0
    assert (folder / rules.MODULE).exists()


# --- what a person did since ----------------------------------------------------------------------------------------


def test_own_changes_outside_of_the_lines_stay(folder: Path, file: Path, run: Run) -> None:
    run("apply", folder)
    edit(file, "match_threshold: 0.1,", "match_threshold: 0.2,")
    assert "up to date" in run("check", folder)[1]
    code, said, _ = run("revert", folder)
    assert code == 0
    assert "differs from its backup, which stays" in said
    assert file.read_text(encoding="utf-8") == variants.base().replace("threshold: 0.1,", "threshold: 0.2,")
    assert (folder / BACKUP).read_text(encoding="utf-8") == variants.base()
    run("apply", folder)
    assert (folder / f"{BACKUP}-2").read_text(encoding="utf-8") != variants.base()
    assert (folder / BACKUP).read_text(encoding="utf-8") == variants.base()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rankedLedger.list()", "rankedLedger.list().slice(0, 3)"),
        ("/* ranked-ledger:end */ async (c) => {", "async (c) => {"),
        ("rankedLedger.itemSnapshot(m.id,", "rankedLedger.itemSnapshot(m.thought_id,"),
    ],
    ids=["a call", "half of a pair", "an argument"],
)
def test_changes_inside_of_the_lines_are_refused_with_the_line(
    folder: Path, file: Path, run: Run, old: str, new: str
) -> None:
    run("apply", folder)
    line = line_of(file, old)
    edit(file, old, new)
    before = contents(folder)
    for command in ("apply", "check", "diff", "revert"):
        code, _, complaint = run(command, folder)
        assert code == failures.REFUSED
        assert re.search(rf"lines of the patch were edited: lines?\b.*\b{line}\b", complaint)
    assert contents(folder) == before


def test_a_closing_line_that_is_gone_is_put_back(folder: Path, file: Path, run: Run) -> None:
    run("apply", folder)
    after = file.read_bytes()
    closing = re.search(rb"/\* ranked-ledger<trace-policy 1:\w+ \*/ \) ", after)
    assert closing
    file.write_bytes(after.replace(closing[0], closing[0].replace(b") ", b"")))
    assert "not up to date" in run("check", folder)[1]
    assert run("apply", folder)[0] == 0
    assert file.read_bytes() == after


def test_an_edited_module_is_refused(folder: Path, run: Run) -> None:
    run("apply", folder)
    edit(folder / rules.MODULE, "10_000", "20_000")
    before = contents(folder)
    for command in ("apply", "check", "revert"):
        code, _, complaint = run(command, folder)
        assert code == failures.REFUSED
        assert f"{rules.MODULE} was edited" in complaint
    assert contents(folder) == before
    (folder / rules.MODULE).unlink()
    assert run("apply", folder)[0] == 0


def test_a_module_of_somebody_else_is_refused(folder: Path, run: Run) -> None:
    (folder / rules.MODULE).write_text("export const mine = 1;\n", encoding="utf-8")
    before = contents(folder)
    for command in ("apply", "revert"):
        code, _, complaint = run(command, folder)
        assert code == failures.REFUSED
        assert "not of this patch" in complaint
    assert contents(folder) == before


def test_an_older_version_is_replaced(
    folder: Path, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(monkeypatch, folder)
    assert "ranked-ledger:route 0:" in file.read_text(encoding="utf-8")
    assert "older = true" in (folder / rules.MODULE).read_text(encoding="utf-8")
    assert "not up to date" in run("check", folder)[1]
    assert "+" in run("diff", folder)[1]
    assert run("apply", folder)[0] == 0
    assert {piece.version for piece in marks.take_out(file.read_text(encoding="utf-8"))[1]} == {marks.VERSION}
    assert (folder / rules.MODULE).read_text(encoding="utf-8") == folders.sealed_module()
    run("revert", folder)
    assert file.read_text(encoding="utf-8") == variants.base()
    assert not (folder / BACKUP).exists()


def test_a_module_alone_that_is_older_is_replaced(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        module = rules.module_text()
        then.setattr(rules, "module_text", lambda: f"{module}export const older = true;\n")
        patching.apply(folder)
    assert "not up to date" in run("check", folder)[1]
    run("apply", folder)
    assert (folder / rules.MODULE).read_text(encoding="utf-8") == folders.sealed_module()


def test_a_return_that_was_added_since_is_guarded(folder: Path, file: Path, run: Run) -> None:
    run("apply", folder)
    edit(
        file,
        "  const similarities = new Map",
        "  if (!matches.length) return c.json({ memories: [] });\n  const similarities = new Map",
    )
    assert "not up to date" in run("check", folder)[1]
    assert run("apply", folder)[0] == 0
    text = file.read_text(encoding="utf-8")
    assert re.search(
        r"rankedLedger\.goesOn\(\); else /\* ranked-ledger:end \*/\n  if \(!matches\.length\) return", text
    )


def test_a_place_that_went_missing_since_is_refused(folder: Path, file: Path, run: Run) -> None:
    run("apply", folder)
    edit(file, "response_policy:", "policy:")
    before = contents(folder)
    code, _, complaint = run("apply", folder)
    assert code == failures.REFUSED
    assert "the policy of the trace: not found" in complaint
    assert contents(folder) == before
    assert run("revert", folder)[0] == 0


# --- what comes between ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        ("absent", KeyboardInterrupt()),
        ("absent", OSError(28, "No space left on device", "index.ts")),
        ("older", OSError(28, "No space left on device", "index.ts")),
    ],
)
def test_what_stops_between_module_and_file_leaves_nothing(
    folder: Path, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch, case: tuple[str, BaseException]
) -> None:
    was, problem = case
    if was == "older":
        older(monkeypatch, folder)
    before = contents(folder)
    replace = folders.replace

    def stopped(target: Path, text: str, *, expected: str | None) -> None:
        if target == file:
            raise problem
        replace(target, text, expected=expected)

    with monkeypatch.context() as now:
        now.setattr(folders, "replace", stopped)
        code, _, complaint = run("apply", folder)
    assert code == (failures.INTERRUPTED if isinstance(problem, KeyboardInterrupt) else failures.FAILED)
    assert "Traceback" not in complaint
    assert contents(folder) == before
    assert run("apply", folder)[0] == 0


def test_a_module_that_a_killed_run_left_is_taken_up_or_removed(folder: Path, run: Run) -> None:
    before = contents(folder)
    (folder / rules.MODULE).write_text(folders.sealed_module(), encoding="utf-8")
    assert "can be applied" in run("check", folder)[1]
    assert run("revert", folder)[0] == 0
    assert contents(folder) == before
    (folder / rules.MODULE).write_text(folders.sealed_module(), encoding="utf-8")
    assert run("apply", folder)[0] == 0
    assert "up to date" in run("check", folder)[1]


def test_a_folder_that_may_not_be_written_to_stays(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)

    def refused(*_: object, dir: Path, **__: object) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied", str(dir))

    with monkeypatch.context() as now:  # root may write anywhere
        now.setattr(tempfile, "mkstemp", refused)
        code, said, complaint = run("apply", folder)
    assert (code, said) == (failures.FAILED, "")
    assert complaint == f"Error: {folder}: Permission denied\n"
    assert contents(folder) == before


@pytest.mark.usefixtures("with_deno")
def test_a_file_that_changes_meanwhile_is_not_written(
    folder: Path, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deno, "parses", lambda *_: True)

    def edited(*_: object) -> deno.TypeCheck:
        file.write_text(variants.base() + "// more\n", encoding="utf-8")
        return deno.TypeCheck("passed")

    monkeypatch.setattr(deno, "check", edited)
    code, _, complaint = run("apply", folder)
    assert code == failures.REFUSED
    assert "changed meanwhile" in complaint
    assert file.read_text(encoding="utf-8") == variants.base() + "// more\n"
    assert sorted(contents(folder)) == ["deno.json", "index.ts"]


# --- which file -----------------------------------------------------------------------------------------------------


def test_a_link_stays_a_link_and_its_target_is_patched(folder: Path, file: Path, run: Run) -> None:
    target = folder.parent / "shared.ts"
    file.rename(target)
    file.symlink_to(target)
    assert run("apply", folder)[0] == 0
    assert file.is_symlink()
    assert "rankedLedger" in target.read_text(encoding="utf-8")
    assert (folder / rules.MODULE).exists()
    assert run("revert", folder)[0] == 0
    assert target.read_text(encoding="utf-8") == variants.base()
    assert sorted(contents(folder)) == ["deno.json", "index.ts"]


def test_two_files_with_the_route_are_refused_by_name(folder: Path, run: Run) -> None:
    shutil.copy(folder / "index.ts", folder / "old.ts")
    before = contents(folder)
    code, _, complaint = run("apply", folder)
    assert code == failures.REFUSED
    assert "index.ts, old.ts" in complaint
    assert contents(folder) == before
    assert run("apply", folder / "index.ts")[0] == 0


def test_what_is_no_source_of_the_function_is_not_looked_at(folder: Path, run: Run) -> None:
    (folder / "node_modules").unlink()
    for name in ("node_modules/copy/index.ts", "dist/index.ts", ".cache/index.ts", ".index.ts"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "index.ts", folder / name)
    (folder / "latin.ts").write_bytes('app.post("/recall", (c) => c.text("é"));'.encode("latin-1"))
    (folder / "bundle.js").write_text(variants.base() + " " * 2_000_000, encoding="utf-8")
    assert run("apply", folder)[0] == 0


def test_the_file_with_the_route_may_stand_deeper(folder: Path, file: Path, run: Run) -> None:
    (folder / "src").mkdir()
    file.rename(folder / "src" / "app.ts")
    file.write_text('import "./src/app.ts";\n', encoding="utf-8")
    assert run("apply", folder)[0] == 0
    assert (folder / "src" / rules.MODULE).exists()


@pytest.mark.parametrize("name", ["", "missing", "README.md"])
def test_a_place_without_the_function_is_refused(tmp_path: Path, run: Run, name: str) -> None:
    (tmp_path / "README.md").write_text("POST /recall\n", encoding="utf-8")
    code, said, complaint = run("apply", tmp_path / name)
    assert (code, said) == (failures.REFUSED, "")
    assert "agent-memory-api" in complaint
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_the_mode_of_the_file_is_kept(folder: Path, file: Path, run: Run) -> None:
    file.chmod(0o640)
    run("apply", folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((folder / rules.MODULE).stat().st_mode) == 0o666 & ~mask
    run("revert", folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


# --- what may be left out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", sorted(patching.options()))
def test_an_optional_place_can_be_left_out(folder: Path, file: Path, run: Run, option: str) -> None:
    code, said, _ = run("apply", folder, "--without", option)
    assert code == 0
    assert f"Does not work: {patching.options()[option]}" in said
    left_out = {rule.id for rule in rules.options()[option]}
    places = {piece.place for piece in marks.take_out(file.read_text(encoding="utf-8"))[1]}
    assert places == set(variants.PLACES) - left_out
    for again in (("--without", option), ()):  # it stays out until the patch is taken out
        assert "there and up to date" in run("check", folder, *again)[1]
        assert run("apply", folder, *again)[0] == 0
    assert {piece.place for piece in marks.take_out(file.read_text(encoding="utf-8"))[1]} == places
    assert run("revert", folder)[0] == 0
    assert file.read_text(encoding="utf-8") == variants.base()
    assert run("apply", folder)[0] == 0
    placed = marks.take_out(file.read_text(encoding="utf-8"))[1]
    assert {piece.place for piece in placed} == set(variants.PLACES)


def test_all_options_can_be_left_out_together(folder: Path, file: Path, run: Run) -> None:
    without = [part for option in patching.options() for part in ("--without", option)]
    assert run("apply", folder, *without)[0] == 0
    places = {piece.place for piece in marks.take_out(file.read_text(encoding="utf-8"))[1]}
    assert places == {rule.id for rule in rules.rules().values() if rule.required} - {"request-payload"}


def test_an_unknown_option_is_refused(folder: Path, run: Run) -> None:
    code, _, complaint = run("apply", folder, "--without", "route")
    assert code == failures.USAGE
    assert "there is no optional place route" in complaint
    assert all(option in complaint for option in patching.options())


def test_missing_optional_places_are_told_with_what_they_cost(folder: Path, file: Path, run: Run) -> None:
    file.write_text(variants.variant("optional-places-absent").text, encoding="utf-8")
    code, said, _ = run("apply", folder)
    assert code == 0
    assert "the route POST /recall/:request_id/usage: not found" in said
    for sentence in patching.options().values():
        assert f"Does not work: {sentence}." in said


# --- Deno, and what is not installed --------------------------------------------------------------------------------


def test_without_deno_it_says_that_nothing_was_type_checked(folder: Path, run: Run) -> None:
    assert "Not type-checked: Deno is not installed." in run("apply", folder)[1]


@pytest.mark.usefixtures("with_deno")
def test_the_result_is_type_checked_and_nothing_else_is_left(folder: Path, run: Run) -> None:
    around = folder.parents[2]
    before = {path.relative_to(around) for path in around.rglob("*") if "node_modules" not in path.parts}
    code, said, _ = run("apply", folder)
    assert code == 0
    assert "The result passes the type checker." in said
    after = {path.relative_to(around) for path in around.rglob("*") if "node_modules" not in path.parts}
    assert {path.name for path in after - before} == {rules.MODULE, BACKUP}


@pytest.mark.usefixtures("with_deno")
def test_a_patch_that_breaks_types_is_refused(folder: Path, file: Path, run: Run) -> None:
    edit(
        file,
        "  const embedding = await embed(payload.query);\n",
        "  let text: string | undefined = payload.query;\n"
        "  if (!text) return c.json({ memories: [] });\n"
        "  const embedding = await embed(text);\n"
        "  text = undefined;\n",
    )
    before = contents(folder)
    code, said, complaint = run("apply", folder)
    assert (code, said, contents(folder)) == (failures.REFUSED, "", before)
    assert "would no longer pass the type checker, and nothing was written" in complaint
    assert "TS2345" in complaint
    assert "--no-type-check" in complaint
    assert run("apply", folder, "--no-type-check")[0] == 0


@pytest.mark.usefixtures("with_deno")
def test_a_file_that_fails_the_type_checker_anyway_is_patched_and_it_says_so(
    folder: Path, file: Path, run: Run
) -> None:
    edit(file, "const accessKey =", "const wrong: number = 'text';\nconst accessKey =")
    code, said, _ = run("apply", folder)
    assert code == 0
    assert "Not type-checked: index.ts does not pass it without the patch either." in said


@pytest.mark.usefixtures("with_deno")
def test_packages_that_are_not_here_keep_it_from_being_type_checked(folder: Path, run: Run) -> None:
    (folder / "node_modules").unlink()
    (folder.parents[2] / "node_modules").unlink()
    code, said, _ = run("apply", folder)
    assert code == 0
    assert "Not type-checked: deno check could not run" in said
    assert sorted(contents(folder)) == ["deno.json", "index.ts", BACKUP, rules.MODULE]


def test_a_missing_extra_is_named_with_how_to_install_it(folder: Path) -> None:
    program = (
        "import sys; sys.modules['ast_grep_py'] = None\n"
        "from ranked_ledger.cli import app; sys.exit(app.run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "patch", "check", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == failures.MissingExtra.exit_code
    assert "ast_grep_py" in done.stderr
    assert "pip install 'ranked-ledger[patch]'" in done.stderr
    assert "Traceback" not in done.stderr
