"""A database of a development state before: what has another shape now goes, and what was derived is made anew."""

from __future__ import annotations

import pytest

from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.databases import Database
from tests.sql.rpc import Ledger

# Copies without the length of a text and the words of a summary, an index over what they had, and functions that took less.
BEFORE = """
drop table ranked_ledger.standings, ranked_ledger.postings, ranked_ledger.decision_vectors;
create table ranked_ledger.standings (
  row_no int generated always as identity, memory_id uuid primary key, workspace_key bigint not null,
  stream_id uuid not null, thought_id uuid, step_index int not null, importance float8 not null,
  live_dependents int not null default 0, vector_dims int not null default 0, pinned boolean not null,
  is_active boolean not null, is_retired boolean not null, is_unconfirmed boolean not null,
  is_personal boolean not null);
create index standings_merit_idx on ranked_ledger.standings (
  workspace_key, ranked_ledger.merit(importance, live_dependents) desc) where is_active;
create table ranked_ledger.postings (
  term bigint not null, row_no int not null, occurrences int not null,
  primary key (term, row_no) include (occurrences));
create table ranked_ledger.decision_vectors (row_no int primary key, workspace_key bigint not null, embedding halfvec);
insert into ranked_ledger.standings (memory_id, workspace_key, stream_id, step_index, importance, pinned, is_active,
  is_retired, is_unconfirmed, is_personal)
select memory_id, 0, stream_id, step_index, 0, false, true, false, false, false from agent_decision_ledger;
drop function ranked_ledger.terms_of(bigint, tsvector);
create function ranked_ledger.terms_of(p_workspace_key bigint, p_lexemes tsvector)
returns table (term bigint, occurrences int) language sql as 'select 1::bigint, 1';
create function ranked_ledger.decision_lexemes(regconfig, text, text) returns tsvector language sql as 'select ''''::tsvector';
create function ranked_ledger.score(float8, float8, float8, float8, float8, float8, float8, float8, boolean)
returns float8 language sql as 'select 0::float8';
create function ranked_ledger.lifecycle_then(uuid, text, uuid, ranked_ledger.moment) returns text language sql as 'select $2';
create function ranked_ledger.hand_over(jsonb, boolean) returns jsonb language sql as 'select $1';
alter table ranked_ledger.lifecycle_transitions drop column stream_id;
"""


def recalled(database: Database) -> list[object]:
    ledger = Ledger(database)
    return [
        ledger("recall_decisions", query="invoice ledger", preset=preset, trace=False, exact=exact)["hits"]
        for preset in ("published", "tuned")
        for exact in (True, False)
    ]


@pytest.mark.parametrize("areas", [("decision_ledger",), ("decision_ledger", "decision_ledger")])
def test_copies_and_functions_of_before_become_those_of_now(
    ledger_db: Database, areas: tuple[str, ...]
) -> None:
    ledger = Ledger(ledger_db)
    one = ledger.id("An invoice is immutable", summary="invoices", task_id="t")
    ledger.id("The ledger has an index", rationale="for an invoice", task_id="t", depends_on=[one])
    ledger.id("Retries end", task_id="u")
    shape, hits = catalogue(ledger_db), recalled(ledger_db)
    ledger_db.owner.execute(BEFORE)
    assert differences(shape, catalogue(ledger_db))

    deploy.apply(ledger_db, *areas)

    assert differences(shape, catalogue(ledger_db)) == []
    assert ledger("check_copies")["wrong"] == []
    assert recalled(ledger_db) == hits
