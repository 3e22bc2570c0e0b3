"""An erasure on hosts that have more than the contract says: columns, triggers, constraints, policies, statistics."""

from __future__ import annotations

import hashlib
from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.rig import deploy
from tests.sql.erasing import NOTHING, Scene, counted
from tests.sql.rpc import failed_checks

WORD = "zebrafoal"

# What a host may have added to agent_memories: type, a value that holds words, and what is left of it.
EXTRA_COLUMNS = (
    ("note", "text", "'zebrafoal'", None),
    ("label", "text not null default 'none'", "'zebrafoal'", "none"),
    ("reason_said", "text not null", "'zebrafoal'", ""),
    ("short", "varchar(12) not null", "'zebrafoal'", ""),
    ("folded", "citext not null default ''", "'zebrafoal'", ""),
    ("tags", "text[] not null default '{}'", "'{zebrafoal}'", []),
    ("words_of", "text[]", "'{zebrafoal}'", None),
    ("raw", "json not null", '\'{"a": "zebrafoal"}\'', {}),
    ("payload", "jsonb not null", '\'{"a": "zebrafoal"}\'', {}),
    ("found_by", "tsvector", "to_tsvector('zebrafoal')", None),
    ("found_by_all", "tsvector not null", "to_tsvector('zebrafoal')", ""),
    ("embedding", "vector(3)", "'[1,2,3]'", None),
    ("embedding_small", "halfvec(3) not null", "'[1,2,3]'", "[0,0,0]"),
    ("embedding_array", "real[]", "'{1,2,3}'", None),
    ("digest", "bytea", "sha256('zebrafoal')", None),
    ("digest_kept", "bytea not null", "sha256('zebrafoal')", "\\x"),
    ("slug", "text unique", "'zebrafoal'", None),
    ("handle", "text not null unique", "'zebrafoal'", "[erased] {id}"),
    ("mood", "mood not null", "'zebrafoal'", ""),
)
KEPT_COLUMNS = (
    ("priority", "text not null check (priority in ('low', 'high'))", "'high'"),
    ("colour", "text check (colour = 'red' or colour = 'blue')", "'red'"),
    ("tier", "tier", "'gold'"),
    ("team", "text references public.teams (name)", "'blue team'"),
    ("version", "int not null", "7"),
    ("seen_on", "date", "'2026-01-01'"),
    ("owner_id", "uuid", "'00000000-0000-4000-8000-000000000001'"),
)


def add_columns(scene: Scene) -> None:
    """Filled in every row, those of before included."""
    if scene.do("select from pg_available_extensions where name = 'citext'"):
        scene.do("create extension if not exists citext schema extensions")
    else:
        scene.do("create domain public.citext as text")
    scene.do("create domain public.mood as text check (char_length(value) < 100)")
    scene.do("create domain public.tier as text check (value in ('gold', 'silver'))")
    scene.do("create table public.teams (name text primary key)")
    scene.do("insert into public.teams values ('blue team')")
    for name, kind, value in [(name, kind, value) for name, kind, value, _ in EXTRA_COLUMNS] + list(
        KEPT_COLUMNS
    ):
        is_unique, is_filled = "unique" in kind, "not null" in kind
        plain = kind.replace("unique", "").replace("not null", "")
        scene.do(f"alter table public.agent_memories add column {name} {plain}")
        scene.do(f"update public.agent_memories set {name} = {value}{' || id::text' if is_unique else ''}")
        if is_filled:
            scene.do(f"alter table public.agent_memories alter {name} set not null")
        if is_unique:
            scene.do(f"create unique index on public.agent_memories ({name})")
    scene.do(
        "alter table public.agent_memories add column shouted text generated always as (upper(content)) stored"
    )


@pytest.fixture(params=["project", "host", "host_16"])
def scene(request: pytest.FixtureRequest, full_project: HostMaker, full_host: HostMaker) -> Scene:
    if request.param == "project":
        return Scene(full_project())
    return Scene(full_host() if request.param == "host" else full_host(postgres=16, dimension=384))


def test_columns_that_the_host_has_added_are_emptied(scene: Scene) -> None:
    subject = str(uuid4())
    erased, kept = scene.decide(WORD, subject), scene.ledger.id("another")
    add_columns(scene)
    scene.erase(subject)
    row, other = (
        scene.do("select to_jsonb(m) from public.agent_memories m where m.id = %s", memory_id)[0][0]
        for memory_id in (erased, kept)
    )
    for name, _, _, left in EXTRA_COLUMNS:
        assert row[name] == (left.replace("{id}", erased) if isinstance(left, str) else left), name
        assert other[name] not in (None, "", left), name
    for name, _, _ in KEPT_COLUMNS:
        assert row[name] == other[name] is not None, name
    assert row["shouted"] == "[ERASED]"
    scene.do("delete from public.agent_memories where id <> %s", erased)
    assert scene.left(WORD) == set()
    assert scene.erase(subject)["counts"] == NOTHING


def test_strings_are_cleaned_in_columns_that_the_host_has_added(scene: Scene) -> None:
    decision = scene.ledger.id("a zebrafoal")
    add_columns(scene)
    hashed = hashlib.sha256(b"x").digest()
    scene.do("update public.agent_memories set digest = %s, digest_kept = 'a payload'", hashed)
    scene.erase(str(uuid4()), also_containing=["zebrafoal", "[1, 2, 3]"])
    ((row,),) = scene.do("select to_jsonb(m) from public.agent_memories m where m.id = %s", decision)
    assert row["handle"].startswith("zebrafoal"), "a name that others may refer to"
    del row["handle"]
    assert "zebrafoal" not in str(row)
    expected = {
        "note": "[erased]",
        "short": "[erased]",
        "folded": "[erased]",
        "tags": ["[erased]"],
        "raw": {"a": "[erased]"},
        "payload": {"a": "[erased]"},
        "found_by": None,
        "found_by_all": "",
        "embedding": None,
        "embedding_small": "[0,0,0]",
        "embedding_array": [1, 2, 3],
        "digest": None,
        "digest_kept": "\\x" + b"a payload".hex(),
        "slug": None,
        "mood": "[erased]",
        "priority": "high",
        "team": "blue team",
        "shouted": "A [ERASED]",
    }
    assert {name: row[name] for name in expected} == expected


def test_columns_of_every_other_table_too(scene: Scene) -> None:
    subject = str(uuid4())
    decision = scene.decide(WORD, subject)
    scene.surround(decision, WORD, scene.ledger.id("a neighbour"))
    trace = scene.trace(WORD, decision)
    of = {
        "agent_memory_recall_traces": "id = %(trace)s",
        "agent_memory_recall_items": "memory_id = %(decision)s",
        "agent_memory_review_actions": "memory_id = %(decision)s",
        "agent_memory_audit_events": "memory_id = %(decision)s or trace_id = %(trace)s",
        "agent_memory_relations": "%(decision)s in (from_memory_id, to_memory_id)",
        "agent_decision_ledger": "memory_id = %(decision)s",
        "agent_decision_edges": "%(decision)s in (from_memory_id, to_memory_id)",
    }
    for table, condition in of.items():
        scene.do(f"alter table public.{table} add column theirs text not null default 'nothing'")
        scene.database.superuser.execute(
            f"update public.{table} set theirs = 'zebrafoal' where {condition}",
            {"decision": decision, "trace": trace},
        )
        assert f"public.{table}.theirs" in scene.left(WORD)
    scene.erase(subject)
    assert scene.left(WORD) == set()


def test_a_thought_that_a_table_of_the_host_refers_to_is_emptied_instead(scene: Scene) -> None:
    subject = str(uuid4())
    referred = scene.write_by_host(WORD, subject)
    free = scene.write_by_host(f"{WORD}free", subject)
    scene.do("create table public.bookmarks (thought_id uuid not null references public.thoughts)")
    scene.do(
        "insert into public.bookmarks select thought_id from public.agent_memories where id = %s", referred
    )
    answer = scene.erase(subject)
    assert counted(answer)["thoughts_deleted"] == 2
    assert scene.left(WORD) == set()
    rows = scene.do(
        "select t.content, t.metadata, t.embedding from public.thoughts t join public.bookmarks b on b.thought_id = t.id"
    )
    assert rows == [("[erased]", {}, None)]
    assert scene.ledger.get(free)["content"] == "[erased]"
    scene.is_sound()


def test_a_unique_text_is_marked_with_its_id(scene: Scene) -> None:
    subject = str(uuid4())
    first, second = scene.decide(WORD, subject), scene.decide(f"{WORD}two", subject, axis=2)
    scene.do("create unique index on public.agent_memories (workspace_id, md5(content))")
    scene.erase(subject)
    assert {scene.ledger.get(first)["content"], scene.ledger.get(second)["content"]} == {
        f"[erased] {first}",
        f"[erased] {second}",
    }
    assert scene.erase(subject)["counts"] == NOTHING
    assert scene.left(WORD) == set()


def test_a_trigger_that_puts_words_back_stops_the_erasure(scene: Scene) -> None:
    subject = str(uuid4())
    erased = scene.decide(WORD, subject)
    scene.do(
        """create function public.immutable_summary() returns trigger language plpgsql as
           $$ begin new.summary := old.summary; return new; end $$"""
    )
    scene.do(
        "create trigger keep before update on public.agent_memories for each row execute function public.immutable_summary()"
    )
    told = scene.service.refused("RL500", "erase_subject", subject_type="candidate", subject_id=subject)
    assert "agent_memories" in str(told.message_primary)
    assert scene.ledger.get(erased)["content"] == f"{WORD}content stands here"
    assert scene.do("select count(*) from long_term_memory.erasures") == [(0,)]
    scene.do("drop trigger keep on public.agent_memories")
    assert counted(scene.erase(subject))["decisions"] == 1


def test_triggers_that_may_copy_rows_are_named(scene: Scene) -> None:
    subject = str(uuid4())
    scene.decide(WORD, subject)
    scene.do("create table public.history (row jsonb)")
    scene.do(
        """create function public.keep_history() returns trigger language plpgsql security definer as
           $$ begin insert into public.history values (to_jsonb(old)); return null; end $$"""
    )
    scene.do(
        "create trigger keep_history after update on public.agent_memories for each row execute function public.keep_history()"
    )
    (note,) = (note for note in scene.erase(subject)["notes"] if "Triggers" in note)
    assert "keep_history on agent_memories" in note
    assert scene.left(WORD) == {"public.history.row"}
    assert not any("Triggers" in note for note in scene.erase(subject)["notes"]), "nothing was changed"


def test_materialized_views_that_keep_rows_are_named(scene: Scene) -> None:
    subject = str(uuid4())
    scene.decide(WORD, subject)
    scene.do("create view public.shown as select content from public.agent_memories")
    scene.do("create materialized view public.kept as select * from public.shown")
    (note,) = (note for note in scene.erase(subject)["notes"] if "Materialized" in note)
    assert note.endswith("refresh kept.")
    assert scene.left(WORD) == {"public.kept.content"}
    scene.do("refresh materialized view public.kept")
    assert scene.left(WORD) == set()


def test_rows_that_a_policy_hides_stop_the_erasure(scene: Scene) -> None:
    subject = str(uuid4())
    scene.decide(WORD, subject)
    scene.do("alter table public.thoughts force row level security")
    scene.do("alter role postgres nobypassrls")
    try:
        told = scene.service.refused("42501", "erase_subject", subject_type="candidate", subject_id=subject)
    finally:
        scene.do("alter role postgres bypassrls")
    assert "thoughts" in str(told.message_primary)
    assert counted(scene.erase(subject))["decisions"] == 1


@pytest.mark.parametrize("joint", [False, True], ids=["single", "joint"])
def test_what_the_planner_kept_of_values_goes(scene: Scene, joint: bool) -> None:
    subject = str(uuid4())
    for number in range(8):
        scene.decide(WORD, subject, axis=number, idempotency_key=str(number), metadata={"who": WORD})
        scene.ledger.id(f"another {number}")
    scene.do("create index on public.agent_memories ((upper(content)))")
    if joint:
        scene.do("create statistics public.both_of (mcv) on content, workspace_id from public.agent_memories")
        scene.do("create statistics public.made_of on (left(summary, 10)) from public.agent_memories")
    scene.do("analyze")
    assert {
        "statistics of public.agent_memories.content",
        "statistics of public.thoughts.content",
    } <= scene.left(WORD)
    assert "statistics of ranked_ledger.postings.term" in scene.left(f"{WORD}content")
    assert ("statistics of public.agent_memories.both_of" in scene.left(WORD)) == joint
    assert any("upper" in place for place in scene.left(WORD))
    answer = scene.erase(subject)
    assert scene.left(WORD, f"{WORD}content") == set()
    assert not any("ANALYZE" in note for note in answer["notes"])
    ((kept,),) = scene.do(
        "select count(*) from pg_stats where tablename = 'agent_memories' and attname in ('workspace_id', 'lifecycle_status')"
    )
    assert kept == 2, "of names and closed lists they stay"


def test_statistics_that_cannot_be_renewed_are_told(scene: Scene) -> None:
    subject = str(uuid4())
    scene.decide(WORD, subject)
    scene.ledger.id("another")
    scene.do("analyze")
    with scene.database.connect("supabase_admin") as other, other.transaction():
        other.execute("lock table public.agent_memories in share update exclusive mode")
        notes = scene.erase(subject)["notes"]
    assert any("ANALYZE" in note and "agent_memories" in note for note in notes)


def test_without_the_ledger_the_tables_of_a_host_are_left_alone(open_brain_host: HostMaker) -> None:
    database = open_brain_host()
    deploy.apply(database, "long_term_memory")
    scene, subject = Scene(database), str(uuid4())
    scene.remember("Invoices are immutable", subject)
    answer = scene.erase(subject, also_containing=["Invoices are immutable"])
    assert counted(answer) == {"memories": 1}
    assert scene.do("select count(*) from agent_memories where content ~ 'Invoices are immutable'") == [(1,)]
    # the ledger arrives: nobody is attributed anything, and nothing is mapped
    deploy.apply(database, "open_brain", "decision_ledger", "long_term_memory")
    assert scene.erase(subject, also_containing=["Invoices are immutable"])["counts"] == NOTHING
    scene.map("acme")
    assert counted(scene.erase(subject, also_containing=["Invoices are immutable"])) == {"strings_cleaned": 1}
    assert failed_checks(scene.database.value("select ledger_status()", role="service_role")) == []  # type: ignore[arg-type]
