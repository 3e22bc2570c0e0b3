"""Copies that were broken behind the ledger's back are found, made anew, and recall answers as before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest

from ranked_ledger import RankedLedger, proving
from ranked_ledger.cli import app as cli
from ranked_ledger.stack import StackInfo
from tests.unit.sdk_drivers import Driver

AXIS = [1.0, *[0.0] * 1535]
# What a superuser, a restore of single tables or disabled triggers can do to the copies of one decision.
BREAKAGES = {
    "a standing of another importance": "update ranked_ledger.standings set importance = 0 where memory_id = %(id)s",
    "a standing that is not active": "update ranked_ledger.standings set is_active = false where memory_id = %(id)s",
    "dependents that nobody counted": "update ranked_ledger.standings set live_dependents = 0 where memory_id = %(id)s",
    "no standing": "delete from ranked_ledger.standings where memory_id = %(id)s",
    "a missing posting": """
        delete from ranked_ledger.postings p using ranked_ledger.standings s
        where s.memory_id = %(id)s and p.row_no = s.row_no
          and p.term = ranked_ledger.term_of(s.workspace_key, 'immut')""",
    "a posting of another count": """
        update ranked_ledger.postings p set occurrences = 0 from ranked_ledger.standings s
        where s.memory_id = %(id)s and p.row_no = s.row_no""",
    "a posting of the summary": """
        update ranked_ledger.postings p set in_summary = not in_summary from ranked_ledger.standings s
        where s.memory_id = %(id)s and p.row_no = s.row_no""",
    "another length": "update ranked_ledger.standings set text_length = 1000 where memory_id = %(id)s",
    "other words of the summary": "update ranked_ledger.standings set summary_words = 9 where memory_id = %(id)s",
    "no vector": """
        delete from ranked_ledger.decision_vectors v using ranked_ledger.standings s
        where s.memory_id = %(id)s and v.row_no = s.row_no""",
    "another vector": """
        update ranked_ledger.decision_vectors v set embedding = array_fill(-1, array[1536])::vector::halfvec
        from ranked_ledger.standings s where s.memory_id = %(id)s and v.row_no = s.row_no""",
}


@pytest.fixture
def superuser(stack: StackInfo) -> Iterator[psycopg.Connection]:
    with psycopg.connect(stack.superuser_db_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def client(stack: StackInfo, workspace: str) -> Iterator[RankedLedger]:
    with RankedLedger(stack.url, stack.secret_key, workspace=workspace) as client:
        yield client


@pytest.fixture
def rule(client: RankedLedger) -> UUID:
    """The best of some decisions by text and by vector, with one that rests on it."""
    rule = client.record("Invoices are immutable once sent", importance=0.9, embedding=AXIS)
    client.record("Corrections are credit notes", depends_on=[rule])
    for number in range(4):
        client.record(f"Invoices have the layout {number}", importance=0.5)
    return rule.memory_id


TUNED = """
select memory_id, ranking_score from match_decision_ledger(%s, 'Are invoices immutable?', p_match_count => %s, p_preset => 'tuned')"""


def answers(
    client: RankedLedger, superuser: psycopg.Connection, workspace: str
) -> list[list[tuple[UUID, float]]]:
    """What recall says by text and by vector, few and many, and by the tuned preset."""
    asked = [
        client.recall(trace=False, limit=limit, **question)
        for limit in (1, 10)
        for question in ({"query": "Are invoices immutable?"}, {"embedding": AXIS})
    ]
    return [
        *([(hit.memory_id, hit.score) for hit in recall] for recall in asked),
        *(superuser.execute(TUNED, (workspace, limit)).fetchall() for limit in (1, 10)),
    ]


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_broken_copy_is_named_and_made_anew(
    client: RankedLedger, superuser: psycopg.Connection, workspace: str, rule: UUID, breakage: str
) -> None:
    before = answers(client, superuser, workspace)
    assert [found[0][0] for found in before] == [rule] * 6
    assert superuser.execute(BREAKAGES[breakage], {"id": rule}).rowcount > 0

    proof = proving.prove(client, client.status())
    assert (proof.checked, proof.wrong) == (6, ((workspace, rule),))
    assert proof.finding().state == "problem"

    mended = proving.prove(client, client.status(), mend=True)
    assert (mended.wrong, mended.mended) == (proof.wrong, True)
    assert answers(client, superuser, workspace) == before

    marked = "select count(*) from ranked_ledger.stale_copies where memory_id = %s"
    assert superuser.execute(marked, (rule,)).fetchone() == (0,), "the copies are made anew, not only marked"
    assert proving.prove(client, client.status()).finding().state == "ok"
    assert answers(client, superuser, workspace) == before


def test_a_mark_that_cannot_be_lifted_yet_is_enough(
    client: RankedLedger, stack: StackInfo, superuser: psycopg.Connection, workspace: str, rule: UUID
) -> None:
    before = answers(client, superuser, workspace)
    with psycopg.connect(stack.superuser_db_url) as somebody:
        somebody.execute("select pg_current_xact_id()")  # a writer that stays open
        superuser.execute(BREAKAGES["no vector"], {"id": rule})
        assert proving.prove(client, client.status(), mend=True).mended
        assert answers(client, superuser, workspace) == before
        assert client.check_copies().wrong == (), "known to lag, and read from the tables"
    assert client.check_copies(mend=True).mended is False
    assert answers(client, superuser, workspace) == before


@pytest.fixture
def doctor(
    stack: StackInfo, workspace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the doctor says of this test's workspace, on one line."""
    for name, value in stack.env().items():
        monkeypatch.setenv(name, value)

    def doctor(*options: str, expect: int = 0) -> str:
        assert cli.run(["doctor", "-w", workspace, *options]) == expect
        return " ".join(capsys.readouterr().out.split())

    return doctor


def test_the_doctor_says_it(
    superuser: psycopg.Connection, workspace: str, rule: UUID, doctor: Callable[..., str]
) -> None:
    superuser.execute(BREAKAGES["no vector"], {"id": rule})
    shown = doctor(expect=1)
    assert f"The copies of 1 decision ({rule} in {workspace}) differ from the tables" in shown
    assert "Next: `ranked-ledger doctor --mend`" in shown
    wrong = {"workspace_id": workspace, "memory_id": str(rule)}
    assert json.loads(doctor("--json", expect=1))["copies"]["wrong"] == [wrong]
    assert "differed from the tables. Recall reads it from there now" in doctor("--mend")
    assert "Checked: 6 decisions; what recall searches is what the tables say." in doctor()


def test_a_page_at_a_time(ledger: Driver, ledgers: Callable[..., Driver]) -> None:
    made = sorted(ledger.record(f"Decision {number}").memory_id for number in range(5))
    first = ledger.check_copies(limit=3)
    assert (first.checked, first.wrong, first.mended, first.next) == (3, (), False, made[2])
    rest = ledger.check_copies(after=first.next, limit=3)
    assert (rest.checked, rest.next) == (2, None)
    assert ledgers(workspace="elsewhere").check_copies().checked == 0
