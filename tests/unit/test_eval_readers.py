"""Datasets from files: which words go where, which links become what, and what is said about bad input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranked_ledger import arguments
from ranked_ledger.arguments import MAX_SUMMARY_BYTES
from ranked_ledger.evals import readers
from ranked_ledger.evals.cases import Dataset, Edge, Link
from ranked_ledger.evals.errors import EvalError, EvalInputError
from ranked_ledger.evals.readers import MAX_TITLE_BYTES, read_adrs, read_jsonl, short

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "decisions"
OWN = Path(__file__).resolve().parents[2] / "docs" / "decisions"

Read = Callable[..., Dataset]


def decision(key: str, step: int, **more: Any) -> dict[str, Any]:
    return {"stream": "shop", "key": key, "step": step, "title": f"Title {key}", **more}


def asks(name: str = "q", **more: Any) -> dict[str, Any]:
    return {"id": name, "stream": "shop", "query": "why?", "gold": ["A"], "asked_at_step": 9, **more}


def links(*said: tuple[str, str]) -> list[dict[str, str]]:
    return [{"relation": relation, "target": target, "evidence": "header"} for relation, target in said]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(decisions: list[dict[str, Any]], *questions: dict[str, Any]) -> Dataset:
        files = []
        for name, said in (("decisions", decisions), ("questions", questions or (asks(),))):
            files.append(tmp_path / f"{name}.jsonl")
            files[-1].write_text("\n".join(json.dumps(one) for one in said))
        return read_jsonl(*files)

    return read


def test_words_go_where_the_ledger_has_a_place_for_them(read: Read) -> None:
    said = decision("A", 1, decision="We do.", context="It was so.", consequences="It will be so.")
    made = read([said, decision("B", 2)]).streams["shop"]
    assert made[0].content == "Title A\n\nWe do."
    assert made[0].rationale == "It was so.\n\nIt will be so."
    assert (made[1].title, made[1].content, made[1].rationale) == ("Title B", "Title B", None)


def test_a_decision_without_a_title_or_of_context_alone_is_read_too(read: Read) -> None:
    made = read(
        [decision("A", 1, title="", decision="Do.\nMore."), decision("B", 2, title="", context="So.")]
    )
    a, b = made.streams["shop"]
    assert (a.title, a.content) == ("Do.", "Do.\nMore.")
    assert (b.title, b.content, b.rationale) == ("So.", "So.", None)


def test_a_title_is_cut_where_the_ledger_would_refuse_it() -> None:
    assert MAX_TITLE_BYTES == MAX_SUMMARY_BYTES
    assert short("é" * 2_000) == "é" * 1_000
    assert short("x" + "é" * 1_000) == "x" + "é" * 999


def test_links_become_edges_and_supersessions(read: Read) -> None:
    made = read(
        [
            decision("A", 1, links=links(("superseded_by", "C"), ("relates_to", "D"))),
            decision("B", 2, links=links(("depends_on", "A"), ("relates_to", "A"), ("amends", "D"))),
            decision("C", 3, links=links(("supersedes", "A"), ("relates_to", "A"))),
            decision("D", 4, links=links(("relates_to", "A"), ("depends_on", "Z"), ("relates_to", "D"))),
        ]
    )
    a, b, *_ = made.streams["shop"]
    assert (a.superseded_by, a.lifecycle, a.superseded_at_step) == (("C",), "superseded", 3)
    assert b.links == (Link("depends_on", "A"), Link("informs", "D"))
    # the older informs the newer, once, whoever says it; a mention of one's successor says nothing new
    assert made.edges_of("shop") == (
        Edge("B", "A", "depends_on", 2),
        Edge("A", "D", "informs", 4),
        Edge("B", "D", "informs", 4),
    )
    assert made.unknown_targets == 1


def test_the_earliest_of_several_successors_retires(read: Read) -> None:
    made = read(
        [
            decision("A", 1),
            decision("C", 7, links=links(("supersedes", "A"))),
            decision("B", 5, links=links(("supersedes", "A"))),
        ]
    )
    assert made.streams["shop"][0].superseded_by == ("B", "C")
    assert made.streams["shop"][0].superseded_at_step == 5


def test_what_was_rejected_stays_so_and_keeps_its_successor(read: Read) -> None:
    made = read([decision("A", 1, lifecycle="rejected"), decision("B", 2, links=links(("supersedes", "A")))])
    assert made.streams["shop"][0].lifecycle == "rejected"
    assert made.streams["shop"][0].superseded_by == ("B",)


def test_the_placeholder_is_no_part_of_a_question(read: Read) -> None:
    made = read([decision("A", 1)], asks(query="As the earlier decision says, why?"))
    assert made.questions[0].ask.split() == ["As", "says,", "why?"]
    with pytest.raises(EvalInputError, match="nothing is asked"):
        read([decision("A", 1)], asks(query="the earlier decision"))


def test_a_question_keeps_what_it_is_reported_by(read: Read) -> None:
    made = read(
        [decision("A", 1), decision("B", 2)],
        asks(must_not=["B"], kind="citation", split="dev", lexical_overlap=0.5),
    )
    one = made.questions[0]
    assert (one.gold, one.must_not) == (frozenset("A"), frozenset("B"))
    assert (one.kind, one.split, one.lexical_overlap, one.asked_at_step) == ("citation", "dev", 0.5, 9)


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"key": 3}, "key", "3 is not a text"),
        ({"key": ""}, "key", "blank"),
        ({"stream": None}, "stream", "not a text"),
        ({"step": "1"}, "step", "whole number"),
        ({"step": True}, "step", "whole number"),
        ({"step": -1}, "step", "whole number"),
        ({"step": 10**9 + 1}, "step", "whole number"),
        ({"title": "", "decision": " "}, "decision", "says nothing"),
        ({"decision": "a\x00b"}, "decision", "NUL"),
        ({"decision": "\ud800"}, "decision", "half of a character"),
        ({"decision": "x" * 200_000}, "decision", "200,000 bytes"),
        ({"decision": ["x"]}, "decision", "not a text"),
        ({"lifecycle": "done"}, "lifecycle", "one of active"),
        ({"importance": 2}, "importance", "from 0 to 1"),
        ({"alternatives": "none"}, "alternatives", "list of texts"),
        ({"links": "A"}, "links", "list of objects"),
        ({"links": [{"relation": "likes", "target": "B"}]}, "links", "no relation"),
        ({"links": [{"relation": "amends", "target": 3}]}, "links", "no target"),
        ({"superseded_at_step": "soon"}, "superseded_at_step", "whole number"),
    ],
)
def test_a_bad_decision_is_named(read: Read, wrong: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(EvalInputError, match=said) as caught:
        read([decision("B", 1), {**decision("A", 1), **wrong}])
    assert (caught.value.line, caught.value.field) == (2, field)
    assert "decisions.jsonl, line 2, field" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"stream": "mall"}, "stream", "no stream 'mall'"),
        ({"gold": []}, "gold", "no answer"),
        ({"gold": ["Z"]}, "gold", "no 'Z'"),
        ({"gold": "A"}, "gold", "list of texts"),
        ({"must_not": ["A"]}, "must_not", "answer too"),
        ({"asked_at_step": 1}, "gold", "after step 1"),
        ({"asked_at_step": 1.5}, "asked_at_step", "whole number"),
        ({"query": " "}, "query", "blank"),
        ({"lexical_overlap": "much"}, "lexical_overlap", "from 0 to 1"),
        ({"id": "q"}, "id", "there already"),
    ],
)
def test_a_bad_question_is_named(read: Read, wrong: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(EvalInputError, match=said) as caught:
        read([decision("A", 2), decision("B", 3)], asks(gold=["A"]), asks(**{"id": "r", **wrong}))
    assert (caught.value.line, caught.value.field) == (2, field)
    assert caught.value.hint


def test_a_missing_field_is_named(read: Read) -> None:
    said = decision("A", 1)
    del said["step"]
    with pytest.raises(EvalInputError, match="field 'step': it is missing"):
        read([said])


def test_a_key_may_stand_once_a_stream(read: Read) -> None:
    made = read([decision("A", 1), decision("A", 1, stream="mall")])
    assert sorted(made.streams) == ["mall", "shop"]
    with pytest.raises(EvalInputError, match="'A' already"):
        read([decision("A", 1), decision("A", 2)])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "no decisions in it"),
        (b"\n \n", "no decisions in it"),
        (b"{", "line 1: not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "is no object"),
        (b"\xff\xfe{", "not UTF-8"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path: Path, written: bytes, said: str) -> None:
    file = tmp_path / "decisions.jsonl"
    file.write_bytes(written)
    with pytest.raises(EvalInputError, match=said) as caught:
        read_jsonl(file, file)
    assert caught.value.file == str(file)
    with pytest.raises(EvalInputError, match="cannot be read"):
        read_jsonl(tmp_path / "none.jsonl", file)
    with pytest.raises(EvalInputError, match="cannot be read"):
        read_jsonl(tmp_path, file)


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    file, questions = tmp_path / "d.jsonl", tmp_path / "q.jsonl"
    said = json.dumps(decision("A", 1, decision="one\u2028two\x85"), ensure_ascii=False)
    file.write_text("\ufeff" + said + "\r\n\r\n", encoding="utf-8")
    questions.write_text(json.dumps(asks()))
    assert read_jsonl(file, questions).streams["shop"][0].content == "Title A\n\none\u2028two\x85"


def adr(title: str, status: str = "Accepted", links: str = "") -> str:
    return f"# {title}\n\n## Status\n\n{status}\n\n## Context\n\nSo.\n\n## Decision\n\nYes.\n\n## Links\n\n{links}\n"


def test_a_folder_asks_for_what_is_in_force_by_the_title_of_what_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "choices"
    folder.mkdir()
    (folder / "0001-a.md").write_text(adr("1. Keep it in files", "Superseded by ADR-2"))
    (folder / "0002-b.md").write_text(adr("2. Keep it in tables", "Superseded by ADR-3"))
    (folder / "0003-c.md").write_text(adr("3. Keep it nowhere", links="- Depends on ADR-4"))
    (folder / "0004-d.md").write_text(adr("4. Ask nobody"))
    made = read_adrs(folder)
    assert made.name == "choices"
    assert [one.step for one in made.streams["choices"]] == [1, 2, 3, 4]
    assert [(one.ask, set(one.gold), set(one.must_not)) for one in made.questions] == [
        ("Keep it in files", {"ADR-0003"}, {"ADR-0001", "ADR-0002"}),
        ("Keep it in tables", {"ADR-0003"}, {"ADR-0002"}),
    ]
    assert made.edges_of("choices") == (Edge("ADR-0003", "ADR-0004", "depends_on", 4),)
    questions = tmp_path / "mine.jsonl"
    questions.write_text(json.dumps({"id": "m", "query": "whom?", "gold": ["ADR-0004"]}))
    asked = read_adrs(folder, questions).questions
    assert [(one.stream, one.asked_at_step, one.kind) for one in asked] == [("choices", 4, "question")]


def test_a_folder_that_asks_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(EvalInputError, match="no decision records"):
        read_adrs(tmp_path)
    with pytest.raises(EvalInputError, match="is no folder"):
        read_adrs(tmp_path / "none")
    (tmp_path / "0001-a.md").write_text(adr("1. A"))
    with pytest.raises(EvalError, match="asks nothing"):
        read_adrs(tmp_path)


def test_our_own_records_can_be_asked() -> None:
    made = read_adrs(OWN)
    held = [one for one in made.questions if "ADR-0007" in one.must_not]
    assert [one.gold for one in held] == [frozenset({"ADR-0010"})]


@pytest.mark.skipif(not SHARED.exists(), reason="the shared decisions are not beside this checkout")
def test_the_shared_decisions_are_read_whole() -> None:
    made = read_jsonl(SHARED / "decisions.jsonl", SHARED / "questions.jsonl")
    assert (len(made.streams), len(list(made.records)), len(made.questions)) == (17, 2_749, 350)
    assert made.unknown_targets == 0
    assert Counter(one.kind for one in made.questions) == {"citation": 232, "supersession": 77, "mention": 41}
    assert sum(len(made.supersessions_of(stream)) for stream in made.streams) == 61
    assert not [one.id for one in made.questions if "the earlier decision" in one.ask]
    # what a question forbids was retired by then, and what it wants was not
    there = {(one.stream, one.key): one for one in made.records}
    for one in made.questions:
        for key in one.must_not:
            assert (there[one.stream, key].superseded_at_step or 0) <= one.asked_at_step
        holding = [there[one.stream, key].superseded_at_step for key in one.gold]
        assert any(step is None or step > one.asked_at_step for step in holding), one.id


def test_the_limits_are_the_ledgers() -> None:
    theirs = (arguments.MAX_NAME_BYTES, arguments.MAX_TEXT_BYTES, arguments.MAX_ALTERNATIVES)
    assert theirs == (readers.MAX_NAME_BYTES, readers.MAX_RECORD_BYTES, readers.MAX_ALTERNATIVES)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("stream", "/", "no name after its last /"),
        ("stream", "acme/ ", "no name after its last /"),
        ("stream", "s" * 3000, "it has 3,000 bytes; 1,000 are allowed"),
        ("key", "é" * 501, "it has 1,002 bytes; 1,000 are allowed"),
        ("alternatives", ["a"] * 21, "21 of them; 20 are allowed"),
        ("alternatives", ["a", " "], "none of them blank"),
        ("alternatives", ["a\x00"], "NUL"),
        ("alternatives", ["\ud800"], "half of a character"),
    ],
)
def test_what_the_ledger_would_refuse_is_refused_with_its_line(
    read: Read, field: str, value: Any, said: str
) -> None:
    with pytest.raises(EvalInputError, match=said) as refused:
        read([decision("A", 1), {**decision("B", 2), field: value}])
    assert (refused.value.line, refused.value.field) == (2, field)


def test_a_text_and_its_title_fit_the_ledger_together(read: Read) -> None:
    half = "x" * (128 * 1024)
    with pytest.raises(EvalInputError, match="with the rest it has 262,146 bytes; 262,144 are allowed"):
        read([decision("A", 1, decision=half) | {"title": half}])
    with pytest.raises(EvalInputError, match="field 'context': with the rest"):
        read([decision("A", 1, context=half, consequences=half)])


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"stream": "shop", "key": "A", "step": 1, "title": "T", "step": 2}', "step"),
        (
            '{"stream": "s", "key": "A", "step": 1, "title": "T", "links": [{"target": "B", "target": "C"}]}',
            "target",
        ),
    ],
)
def test_a_field_that_is_there_twice_is_refused(tmp_path: Path, line: str, field: str) -> None:
    file = tmp_path / "decisions.jsonl"
    file.write_text(f"{json.dumps(decision('Z', 1))}\n{line}\n", encoding="utf-8")
    with pytest.raises(EvalInputError, match="it is there twice") as refused:
        read_jsonl(file, file)
    assert (refused.value.line, refused.value.field) == (2, field)
