"""The scanner of residue itself: what it does not find, no test of erasure would."""

from __future__ import annotations

import pytest

from tests.conftest import HostMaker
from tests.rig.residue import in_dump, places
from tests.sql.rpc import Ledger, vector

WORD = "Zebräfinch's\\wing"


@pytest.mark.parametrize(
    "value",
    [
        "%(word)s",
        "array[%(word)s]",
        "jsonb_build_object('a', jsonb_build_array('x' || %(word)s))",
        "jsonb_build_object(%(word)s::text, 1)",
        "to_tsvector('english', %(word)s)",
        "convert_to(%(word)s, 'UTF8')",
        "sha256(convert_to(%(word)s, 'UTF8'))",
        "encode(sha256(convert_to(lower(%(word)s), 'UTF8')), 'hex')",
        "md5(%(word)s)",
        "encode(sha256(convert_to(%(word)s, 'UTF8')), 'base64')",
    ],
)
def test_every_form_of_a_word_is_found(empty_project: HostMaker, value: str) -> None:
    database = empty_project()
    database.owner.execute("create schema theirs")
    assert places(database, [WORD]) == set()
    database.owner.execute(f"create table theirs.kept as select {value} as it", {"word": WORD})
    assert places(database, [WORD]) == {"theirs.kept.it"}


def test_statistics_of_a_column_are_found(empty_project: HostMaker) -> None:
    database = empty_project()
    database.owner.execute("create table kept (it text)")
    database.owner.execute("insert into kept select %s from generate_series(1, 9)", (WORD,))
    database.owner.execute("alter table kept add other int default 1")
    database.owner.execute("create statistics both_of (mcv) on it, other from kept")
    database.owner.execute("create statistics made_of on (upper(it)) from kept")
    database.owner.execute("analyze kept")
    database.owner.execute("delete from kept")
    found = {f"statistics of public.kept.{name}" for name in ("it", "both_of", "upper(it)")}
    assert places(database, [WORD]) == found


def test_postings_and_vectors_of_the_ledger_are_found(ledger: Ledger) -> None:
    ledger.id("zebrafinches fly", embedding=vector(axis=7), embedding_model="m")
    for number in range(4):
        ledger.id(f"zebrafinches {number}")
    ledger.database.superuser.execute("analyze ranked_ledger.postings")
    found = places(ledger.database, ["zebrafinches"])
    assert "statistics of ranked_ledger.postings.term" in found
    assert {"ranked_ledger.postings", "public.agent_decision_ledger.search_lexemes"} <= found
    assert places(ledger.database, [], vectors=[vector(axis=7)]) == {
        "public.thoughts.embedding",
        "ranked_ledger.decision_vectors.embedding",
    }
    assert places(ledger.database, [], vectors=[vector(axis=8)]) == set()
    assert places(ledger.database, [], texts=["Zebrafinches  fly"]) == set()
    assert in_dump(ledger.database, ["zebrafinches", "quaggafoals"]).keys() == {"zebrafinches"}
