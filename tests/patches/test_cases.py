"""Each copy of `cases/` is patched as its file says, or refused in words; and what was patched comes apart again."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from deno import find_deno_bin

from ranked_ledger import patching
from ranked_ledger.patching import deno, finding, folder, marks, rules
from tests.patches import rig, variants
from tests.patches.variants import Variant

PATCHED = [name for name in variants.names() if variants.variant(name).is_patched]
REFUSED = [name for name in variants.names() if not variants.variant(name).is_patched]
_GUARD = re.compile(r"/\* ranked-ledger:match-call .*?/\* ranked-ledger:end \*/\s*")
_PIECE = re.compile(r"/\* ranked-ledger[:<].*?/\* ranked-ledger:end \*/ ?", re.DOTALL)


def placed(into: Path, variant: Variant) -> Path:
    function = into / "agent-memory-api"
    function.mkdir()
    (function / "index.ts").write_bytes(variant.text.encode())
    return function


def patched(name: str) -> str:
    text = variants.variant(name).text
    return marks.insert(text, finding.find(text, ".ts").insertions)


def test_there_is_a_case_of_each_kind() -> None:
    assert len(PATCHED) >= 40
    assert len(REFUSED) >= 15


@pytest.mark.parametrize("name", PATCHED)
def test_a_copy_is_patched_at_its_places(name: str, tmp_path: Path) -> None:
    variant = variants.variant(name)
    function = placed(tmp_path, variant)
    planned = patching.plan(function, type_check=False)
    assert planned.state == "absent"
    assert {place.rule.id: place.text for place in planned.places} == variant.places
    lines = variant.text.splitlines()
    assert [place.text for place in planned.places] == [lines[at.line - 1].strip() for at in planned.places]
    one_of_two = {"write-back", "review-changes"}  # told of by the other place of the same option
    assert {one.place for one in planned.missing} | one_of_two == {*variant.said["missing"], *one_of_two}
    guarded = [_PIECE.sub("", after).lstrip() for after in _GUARD.split(planned.patched)[1:]]
    assert len(guarded) == len(variant.guarded), guarded
    for after, begins in zip(guarded, variant.guarded, strict=True):
        assert after.startswith(begins)


@pytest.mark.parametrize("name", PATCHED)
def test_a_patch_comes_out_again_byte_for_byte(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deno, "find_deno", lambda: None)  # its parser is asked above
    variant = variants.variant(name)
    function = placed(tmp_path, variant)
    applied = patching.apply(function, type_check=False)
    assert (function / "index.ts").read_bytes().decode() == applied.patched != variant.text
    assert marks.take_out(applied.patched)[0] == variant.text

    again = patching.apply(function, type_check=False)
    assert (again.state, again.changed, again.diff()) == ("current", False, "")
    assert (function / "index.ts").read_bytes().decode() == applied.patched

    assert patching.revert(function).as_before is True
    assert (function / "index.ts").read_bytes().decode() == variant.text
    assert [path.name for path in function.iterdir()] == ["index.ts"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_copy_is_refused_in_words(name: str, tmp_path: Path) -> None:
    variant = variants.variant(name)
    function = placed(tmp_path, variant)
    with pytest.raises(patching.PatchError) as caught:
        patching.apply(function)
    assert [(path.name, path.read_bytes().decode()) for path in function.iterdir()] == [
        ("index.ts", variant.text)
    ]
    if "message" in variant.said:
        assert variant.said["message"] in str(caught.value)
        return
    assert isinstance(caught.value, patching.PlacesError)
    refusal = caught.value.refusals[0]
    rule = rules.rules()[variant.said["place"]]
    assert refusal.place == rule.id
    assert variant.said["reason"] in refusal.reason
    assert refusal.text == variant.said["nearest"]
    assert variant.text.splitlines()[(refusal.line or 0) - 1].strip() == refusal.text
    said = str(caught.value)
    for part in (rule.title, rule.looks_for, f"line {refusal.line}: {refusal.text}", "nothing was written"):
        assert part in said
    assert all(line in said for line in rule.by_hand.splitlines())
    assert caught.value.hint


def test_what_was_patched_passes_the_type_checker(tmp_path: Path) -> None:
    complaints = _complaints(tmp_path, {name: patched(name) for name in PATCHED})
    if complaints:  # is it the patch, or the copy that was written for this test?
        without = _complaints(tmp_path, {name: variants.variant(name).text for name in complaints})
        pytest.fail(
            "\n\n".join(
                f"{name}:\n{said}\nwithout the patch:\n{without.get(name)}"
                for name, said in complaints.items()
            )
        )


def test_what_was_patched_is_as_clean_to_the_linter_as_it_was(tmp_path: Path) -> None:
    assert _findings(tmp_path / "patched", {name: patched(name) for name in PATCHED}) == _findings(
        tmp_path / "copies", {name: variants.variant(name).text for name in PATCHED}
    )


def _findings(into: Path, texts: dict[str, str]) -> Counter[tuple[str, str]]:
    """The rules that `deno lint` finds broken, by the name of the file."""
    into.mkdir()
    for name, text in texts.items():
        (into / f"{name}.ts").write_bytes(text.encode())
    command = [find_deno_bin(), "lint", "--json", "--no-config"]
    done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert not found["errors"]
    return Counter((Path(one["filename"]).stem, one["code"]) for one in found["diagnostics"])


def _complaints(into: Path, texts: dict[str, str]) -> dict[str, str]:
    """What one `deno check` of all of them says, by name."""
    if not (into / "node_modules").exists():
        (into / "node_modules").symlink_to(rig.NODE_MODULES)
        (into / "deno.json").write_bytes((rig.CONTRACT_FUNCTION / "deno.json").read_bytes())
        (into / rules.MODULE).write_text(folder.sealed_module(), encoding="utf-8")
    for name, text in texts.items():
        (into / f"{name}.ts").write_bytes(text.encode())
    done = subprocess.run(
        [find_deno_bin(), "check", "--quiet", "--cached-only", *(f"{name}.ts" for name in texts)],
        cwd=into,
        capture_output=True,
        text=True,
        check=False,
        env={"DENO_DIR": str(into / ".deno"), "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"},
    )
    if done.returncode == 0:
        return {}
    found: dict[str, str] = {}
    for finding_ in re.split(r"\n(?=TS\d+ \[ERROR\])", done.stderr):
        where = re.search(r"at file://\S*/([\w-]+)\.ts:", finding_)
        name = where[1] if where else "the check itself"
        found[name] = f"{found.get(name, '')}{finding_}\n"
    return found
