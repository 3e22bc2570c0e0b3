"""What means nothing to a program means nothing to the patch: layout, comments, names, line ends. And whatever a file looks
like, it is patched as a whole or refused in words, and comes back byte for byte."""

from __future__ import annotations

import random
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from deno import find_deno_bin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranked_ledger import patching
from ranked_ledger.patching import deno, finding, marks, rules
from ranked_ledger.patching.source import Source
from tests.patches import mutations, variants

PATCHED = [name for name in variants.names() if variants.variant(name).is_patched]
# Those whose places differ most from the function's.
SEVERAL = ["together-validator-strict-helper", "embedding-beside-something", "logic-without-the-payload"]
LOCALS = (
    "payload embedding matches matchError similarities memories memoriesError scope limits oldest pool "
    "requestId trace traceError itemsError returned match m index a b similarity"
).split()
DETERMINED = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def patched(text: str) -> str:
    """The text with its pieces, all of them found; a byte order mark stays where it is."""
    bom = text[: len(text) - len(text.removeprefix(mutations.BOM))]
    body = text.removeprefix(bom) if bom else text
    found = finding.find(body, ".ts")
    assert found.refusals == []
    result = marks.insert(body, found.insertions)
    assert marks.take_out(result)[0] == body
    assert Source(result, ".ts").broken_line is None
    return bom + result


@cache
def patched_copy(name: str) -> str:
    return patched(variants.variant(name).text)


def pieces(text: str) -> list[str]:
    return [piece.place for piece in marks.take_out(text)[1]]


@pytest.fixture(autouse=True)
def _no_deno(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deno, "find_deno", lambda: None)  # asked where a test says so


@pytest.mark.parametrize("layout", mutations.LAYOUTS)
@pytest.mark.parametrize("name", [None, *SEVERAL])
def test_another_layout_is_patched_alike(name: str | None, layout: str) -> None:
    text = variants.variant(name).text if name else variants.base()
    changed = mutations.LAYOUTS[layout](text)
    assert changed != text
    assert mutations.token_texts(patched(changed)) == mutations.token_texts(patched(text))


@pytest.mark.parametrize("name", PATCHED)
def test_every_copy_in_two_layouts_at_once_is_patched_alike(name: str) -> None:
    text = variants.variant(name).text
    one, other = random.Random(name).sample(
        sorted(set(mutations.LAYOUTS) - {"byte order mark", "minified"}), 2
    )
    changed = mutations.LAYOUTS[other](mutations.LAYOUTS[one](text))
    assert mutations.token_texts(patched(changed)) == mutations.token_texts(patched_copy(name)), (one, other)


def test_line_ends_stay_of_one_kind() -> None:
    result = patched(mutations.crlf(variants.base()))
    assert result.count("\n") == result.count("\r\n") == result.count("\r")
    assert "\r" not in patched(variants.base())


def test_mixed_line_ends_stay_where_they_are() -> None:
    lines = variants.base().splitlines(keepends=True)
    mixed = "".join(mutations.crlf(line) if number % 3 else line for number, line in enumerate(lines))
    assert mutations.token_texts(patched(mixed)) == mutations.token_texts(patched(variants.base()))


def test_a_comment_anywhere_at_the_places_hides_none_of_them() -> None:
    text = variants.base()
    expected = mutations.token_texts(patched(text))
    lines = sorted({place.line for place in finding.find(text, ".ts").places if place.rule.required})
    comments = ["/* aside */ ", "// aside\n"]
    count = 0
    for line in lines:
        for changed in mutations.commented_once(text, comments[line % 2], line):
            count += 1
            assert mutations.token_texts(patched(changed)) == expected, changed.splitlines()[line - 1]
    assert count > 60


@pytest.mark.parametrize(
    "directive",
    [
        "// deno-lint-ignore no-explicit-any",
        "// @ts-ignore",
        "// @ts-expect-error: theirs\n// and why",
        "/* eslint-disable-next-line */",
        "// deno-fmt-ignore",
    ],
)
def test_a_directive_keeps_the_line_that_it_is_about(directive: str) -> None:
    text = mutations.directed(variants.base(), directive)
    lines = [line.strip() for line in _without_pieces(patched(text))]
    last = directive.splitlines()[-1]
    about = [after for before, after in pairwise(text.splitlines()) if before.strip() == last]
    assert len(about) > 10
    found = [after for before, after in pairwise(lines) if before == last]
    assert found == [line.strip() for line in about]


def _without_pieces(text: str) -> list[str]:
    """Each line without the pieces in it; a piece on a line of its own leaves an empty one."""
    return re.sub(r" /\* ranked-ledger<.*?:end \*/|/\* ranked-ledger:.*?:end \*/ ?", "", text).split("\n")


@settings(DETERMINED, max_examples=20)
@given(st.randoms(use_true_random=False))
def test_other_names_of_locals_are_patched_alike(rng: random.Random) -> None:
    words = [
        "q",
        "x1",
        "$row",
        "_rows",
        "été",
        "变量",
        "vecs",
        "hits",
        "data1",
        "res",
        "k",
        "items2",
        "Ranked",
        "list_",
    ]
    names = {name: f"{rng.choice(words)}{number}" for number, name in enumerate(rng.sample(LOCALS, 12))}

    def renamed(text: str) -> str:
        (route,) = Source(text, ".ts").find_all(rules.rules()["route"].ast_grep)
        return mutations.renamed(text, names, within=route)

    assert mutations.token_texts(patched(renamed(variants.base()))) == mutations.token_texts(
        renamed(patched(variants.base()))
    )


@pytest.mark.parametrize("name", ["toNumbers", "encode", "vectorise", "ask_model"])
def test_the_function_that_embeds_may_have_any_name(name: str) -> None:
    changed = mutations.renamed(variants.base(), {"embed": name, "embedding": "numbers"})
    assert pieces(patched(changed)) == pieces(patched(variants.base()))


@pytest.mark.parametrize("layout", mutations.LAYOUTS)
def test_a_folder_is_patched_once_and_gets_its_bytes_back(layout: str, tmp_path: Path) -> None:
    file = tmp_path / "index.ts"
    before = mutations.LAYOUTS[layout](variants.base()).encode()
    file.write_bytes(before)
    applied = patching.apply(tmp_path)
    assert applied.missing == ()
    once = file.read_bytes()
    assert patching.apply(tmp_path).changed is False
    assert file.read_bytes() == once != before
    assert patching.revert(tmp_path).as_before is True
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "options", [[], ["--single-quote", "--no-semicolons", "--line-width=60"], ["--use-tabs"]]
)
def test_a_formatter_may_go_over_what_was_patched(options: list[str], tmp_path: Path) -> None:
    for name in PATCHED:
        (tmp_path / f"{name}.ts").write_bytes(patched_copy(name).encode())
    command = [find_deno_bin(), "fmt", "--quiet", "--no-config", *options, "."]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for name in PATCHED:
        text = (tmp_path / f"{name}.ts").read_text(encoding="utf-8")
        original, found = marks.take_out(text)
        assert sorted(piece.place for piece in found) == sorted(pieces(patched_copy(name))), name
        assert Source(original, ".ts").broken_line is None, name
        assert marks.same_but_layout(patched(original), text), name
        is_same = _tokens_but_layout(original) == _tokens_but_layout(variants.variant(name).text)
        assert is_same, name


def _tokens_but_layout(text: str) -> str:
    return re.sub(r"[\s\"'`;,(){}]", "", "".join(mutations.token_texts(text)))


def test_a_formatted_patch_is_current_and_comes_out(tmp_path: Path) -> None:
    file = tmp_path / "index.ts"
    file.write_text(variants.base(), encoding="utf-8")
    patching.apply(tmp_path)
    file.write_text(
        variants.formatted(file.read_text(encoding="utf-8"), ["--line-width=70"]), encoding="utf-8"
    )
    assert patching.plan(tmp_path).state == "current"
    assert patching.apply(tmp_path).changed is False
    assert patching.revert(tmp_path).changed is True
    left = variants.formatted(file.read_text(encoding="utf-8"), ["--line-width=110"])
    assert _tokens_but_layout(left) == _tokens_but_layout(variants.base())


@settings(DETERMINED, max_examples=60)
@given(st.sampled_from(PATCHED), st.randoms(use_true_random=False))
def test_a_file_with_lines_missing_doubled_or_swapped_is_patched_whole_or_refused(
    name: str, rng: random.Random
) -> None:
    text = variants.variant(name).text
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "recallSchema" in line)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(first, len(lines))
        match rng.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                lines[at - 1], lines[at] = lines[at], lines[at - 1]
            case _:
                lines[at] = lines[at].replace(rng.choice("(){};,=."), "", 1)
    changed = "".join(lines)
    if Source(changed, ".ts").broken_line is not None:
        return
    found = finding.find(changed, ".ts")
    if found.refusals:
        assert all(one.reason and one.looked_for and one.by_hand for one in found.refusals)
        return
    result = marks.insert(changed, found.insertions)
    assert marks.take_out(result)[0] == changed
    assert Source(result, ".ts").broken_line is None
    assert {"route", "query-embedding", "ranked-list", "trace-policy"} <= set(pieces(result))
