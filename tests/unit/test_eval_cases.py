"""Datasets: what they refuse, what is left of them when they are restricted, and when their parts enter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranked_ledger.errors import InvalidArgumentError, RankedLedgerError
from ranked_ledger.evals.cases import Dataset, Edge, Link, Question, Record, Supersession
from ranked_ledger.evals.errors import EvalError, EvalInputError


def record(key: str, step: int, stream: str = "shop", **more: object) -> Record:
    return replace(Record(stream, key, step, f"title {key}", f"text {key}"), **more)  # type: ignore[arg-type]


def question(name: str, gold: str, step: int, stream: str = "shop", must_not: str = "") -> Question:
    return Question(name, stream, f"what of {gold}?", frozenset(gold), frozenset(must_not), step, "kind")


SHOP = [record("A", 1), record("B", 3, links=(Link("depends_on", "A"),)), record("C", 2)]


def test_records_are_put_in_step_order() -> None:
    made = Dataset.of("d", {"shop": SHOP}, [])
    assert [one.key for one in made.streams["shop"]] == ["A", "C", "B"]
    assert [one.key for one in made.records] == ["A", "C", "B"]


def test_an_edge_enters_with_the_later_of_its_ends() -> None:
    forward = [record("A", 1, links=(Link("informs", "B"),)), record("B", 7)]
    assert Dataset.of("d", {"shop": forward}, []).edges_of("shop") == (Edge("A", "B", "informs", 7),)
    assert Dataset.of("d", {"shop": SHOP}, []).edges_of("shop") == (Edge("B", "A", "depends_on", 3),)


def test_a_supersession_enters_with_the_later_of_the_two() -> None:
    records = [record("A", 1, superseded_by=("B",)), record("B", 4), record("C", 9, superseded_by=("B",))]
    made = Dataset.of("d", {"shop": records}, [])
    assert made.supersessions_of("shop") == (Supersession("A", "B", 4), Supersession("C", "B", 9))


def test_streams_of_one_workspace_are_one_timeline() -> None:
    streams = {
        "w/one": [record("A", 1, "w/one"), record("C", 5, "w/one")],
        "w/two": [record("B", 2, "w/two")],
    }
    made = Dataset.of("d", streams, [], workspaces={"w/one": "w", "w/two": "w"})
    assert [one.key for one in made.records_of("w")] == ["A", "B", "C"]
    assert made.workspace_of("w/two") == "w"
    assert Dataset.of("d", streams, []).workspace_of("w/two") == "w/two"


@pytest.mark.parametrize(
    ("records", "questions", "said"),
    [
        ([record("A", 1), record("A", 2)], [], "'A' twice"),
        ([record("A", 1, links=(Link("depends_on", "Z"),))], [], "leads to 'Z'"),
        ([record("A", 1, superseded_by=("A",))], [], "leads to 'A'"),
        ([record("A", 1)], [question("q", "A", 1), question("q", "A", 1)], "two questions 'q'"),
        ([record("A", 1)], [question("q", "", 1)], "no answer"),
        ([record("A", 1)], [question("q", "Z", 1)], "names 'Z'"),
        ([record("A", 5)], [question("q", "A", 4)], "at 4, before 'A'"),
        ([record("A", 1)], [question("q", "A", 1, must_not="A")], "its own answer"),
        ([record("A", 1)], [question("q", "A", 1, stream="other")], "names 'A'"),
    ],
)
def test_what_cannot_be_asked_is_refused(records: list[Record], questions: list[Question], said: str) -> None:
    with pytest.raises(EvalError, match=said) as caught:
        Dataset.of("d", {"shop": records}, questions)
    assert caught.value.hint


def test_the_digest_names_the_contents_and_not_the_name() -> None:
    asked = [question("q", "A", 3)]
    made = Dataset.of("d", {"shop": SHOP}, asked)
    assert made.digest == Dataset.of("e", {"shop": list(reversed(SHOP))}, asked).digest
    others = [
        Dataset.of("d", {"shop": [replace(SHOP[0], importance=0.5), *SHOP[1:]]}, asked),
        Dataset.of("d", {"shop": SHOP}, [replace(asked[0], must_not=frozenset("B"))]),
        Dataset.of("d", {"shop": SHOP}, asked, workspaces={"shop": "mall"}),
    ]
    assert len({made.digest, *(one.digest for one in others)}) == 4


def test_a_stream_is_kept_with_the_others_of_its_workspace() -> None:
    streams = {name: [record("A" if name != "w/two" else "B", 1, name)] for name in ("w/one", "w/two", "x")}
    asked = [question("q1", "A", 1, "w/one"), question("q2", "B", 1, "w/two"), question("q3", "A", 1, "x")]
    made = Dataset.of("d", streams, asked, workspaces={"w/one": "w", "w/two": "w"}).restricted(["w/one"])
    assert list(made.streams) == ["w/one", "w/two"]
    assert [one.id for one in made.questions] == ["q1"]
    assert made.workspace_of("w/two") == "w"
    with pytest.raises(EvalError, match="no stream 'y'"):
        made.restricted(["y"])


@given(seed=st.integers(), limit=st.integers(1, 60), more=st.integers(0, 60))
def test_a_larger_sample_holds_the_smaller_one(seed: int, limit: int, more: int) -> None:
    whole = Dataset.of("d", {"shop": SHOP}, [question(f"q{n}", "A", 3) for n in range(50)])
    small = whole.restricted(limit=limit, seed=seed)
    large = whole.restricted(limit=limit + more, seed=seed)
    ids = [one.id for one in whole.questions]
    assert len(small.questions) == min(limit, 50)
    assert {one.id for one in small.questions} <= {one.id for one in large.questions}
    assert [one.id for one in small.questions] == [
        name for name in ids if name in {q.id for q in small.questions}
    ]
    assert small.digest == whole.restricted(limit=limit, seed=seed).digest
    assert small.streams == whole.streams


def test_another_seed_draws_another_sample() -> None:
    whole = Dataset.of("d", {"shop": SHOP}, [question(f"q{n}", "A", 3) for n in range(50)])
    drawn = {frozenset(one.id for one in whole.restricted(limit=5, seed=seed).questions) for seed in range(5)}
    assert len(drawn) == 5


def test_no_sample_is_empty() -> None:
    whole = Dataset.of("d", {"shop": SHOP}, [question("q", "A", 3)])
    with pytest.raises(InvalidArgumentError, match="limit is 0"):
        whole.restricted(limit=0)


def test_what_was_left_out_stays_known() -> None:
    whole = Dataset.of("d", {"shop": SHOP}, [], unknown_targets=3)
    assert whole.restricted(["shop"]).unknown_targets == 3


def test_the_embedded_text_holds_the_rationale() -> None:
    assert record("A", 1, rationale="because").embedded_text == "text A\n\nbecause"
    assert record("A", 1).embedded_text == "text A"


def test_an_error_says_where_and_what_to_do() -> None:
    error = EvalInputError("it is blank", hint="give it a text", file="d.jsonl", line=3, field="title")
    assert str(error) == "d.jsonl, line 3, field 'title': it is blank. Next: give it a text"
    assert (error.file, error.line, error.field) == ("d.jsonl", 3, "title")
    assert isinstance(error, EvalError)
    assert isinstance(error, RankedLedgerError)
    assert isinstance(error, ValueError)
    assert str(EvalInputError("no", hint="yes")) == "no. Next: yes"
