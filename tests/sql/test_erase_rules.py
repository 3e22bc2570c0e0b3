"""An erasure beside rules of the host's: closed lists of values, constraints that stand against it, and long texts of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.rig.databases import Database
from tests.sql.memory_rpc import Memories

COLUMNS = """
create domain kind as text check (value in ('x', 'y'));
create domain code as text check (char_length(value) = 3);
create table public.host (
  id int primary key,
  listed text check (listed in ('p', 'q')),
  listed_varchar varchar(9) check (listed_varchar in ('p', 'q') or listed_varchar is null),
  chained text check (chained = 'x' or chained = 'y'),
  "with blank" text check ("with blank" in ('a')),
  of_domain kind,
  half_listed text check (half_listed = any (array['a', 'b']) or char_length(half_listed) < 300),
  not_empty text check (not_empty <> ''),
  of_code code)
"""


@pytest.fixture
def full(full_project: HostMaker) -> Database:
    return full_project()


def test_only_a_column_of_which_nothing_but_a_list_is_said_is_a_closed_list(full: Database) -> None:
    full.owner.execute(COLUMNS)
    found = full.rows("select name from long_term_memory.word_columns('public.host')")
    assert [name for (name,) in found] == ["half_listed", "not_empty", "of_code"]


def attributed(full: Database, content: str) -> tuple[Memories, str, dict[str, str]]:
    memories = Memories(full)
    service = memories.as_service()
    service("map_workspace", workspace_id="acme")
    decision = full.service.execute(
        "select record_decision('acme', %s) ->> 'memory_id'", (content,)
    ).fetchone()
    assert decision is not None
    about = {"subject_type": "candidate", "subject_id": str(uuid4())}
    service("attribute_decision", memory_id=decision[0], **about)
    return memories, decision[0], about


def test_a_rule_that_stands_against_an_erasure_is_named_without_the_row(full: Database) -> None:
    memories, decision, about = attributed(full, "They prefer Lisbon")
    full.owner.execute(
        "alter table agent_memories add column code text not null default 'abc' check (char_length(code) = 3)"
    )
    full.owner.execute("alter table agent_memories alter column code drop default")
    said = memories.as_service().refused("RL500", "erase_subject", **about)
    assert "agent_memories_code_check" in str(said.message_primary)
    assert said.message_hint
    assert "Lisbon" not in f"{said.message_primary} {said.message_detail} {said.message_hint}"
    assert full.value("select content from agent_memories where id = %s", (decision,)) == "They prefer Lisbon"


def test_half_a_list_keeps_no_words(full: Database) -> None:
    full.owner.execute(
        "alter table agent_memories add column label text check (label = any (array['a', 'b']) or char_length(label) < 300)"
    )
    memories, decision, about = attributed(full, "They prefer Lisbon")
    full.owner.execute("update agent_memories set label = 'prefers Lisbon' where id = %s", (decision,))
    memories.as_service()("erase_subject", **about)
    assert full.rows("select content, label from agent_memories where id = %s", (decision,)) == [
        ("[erased]", None)
    ]


def test_a_long_memory_of_somebody_else_loses_the_string_alone(full: Database) -> None:
    memories = Memories(full)
    long = "secret " * 9362  # 65,534 bytes, and longer with each mark
    kept = memories.insert(long)
    service = memories.as_service()
    service("erase_subject", subject_type="candidate", subject_id=str(uuid4()), also_containing=["secret"])
    assert memories.row(kept)["text"] == long.replace("secret", "[erased]")
    service.refused("22023", "remember", text="x" * 65_537)


def test_a_stranger_holds_up_no_erasure(full: Database) -> None:
    memories = Memories(full)
    stranger = memories.new_user()
    with full.connect("service_role", autocommit=False) as erasing:
        erasing.execute(
            "select erase_subject(%s, 'candidate', gen_random_uuid(), array['no such string'])",
            (memories.org,),
        )
        answer = memories.as_user(stranger)("erase_subject", subject_type="user", subject_id=stranger)
        assert answer["receipt_id"] is None
        assert set(answer["counts"].values()) == {0}
        erasing.rollback()


NO_LISTS = """
create domain inner_text as text;
create domain outer_text as inner_text;
alter table agent_memories add column note text not null default '', add column deep outer_text;
alter table agent_memories add constraint content_is_there check (content is not null);
alter table agent_memories add constraint note_is_there check (note is not null) not valid;
"""


def test_that_something_is_not_null_is_no_list_of_values(full: Database) -> None:
    full.owner.execute(NO_LISTS)
    memories, decision, about = attributed(full, "They prefer Lisbon")
    full.owner.execute(
        "update agent_memories set note = 'Lisbon', deep = 'Lisbon' where id = %s", (decision,)
    )
    memories.as_service()("erase_subject", **about)
    assert full.rows("select content, note, deep from agent_memories where id = %s", (decision,)) == [
        ("[erased]", "", None)
    ]


def test_what_hangs_on_a_decision_and_is_being_written_is_waited_for(full: Database) -> None:
    memories, decision, about = attributed(full, "They prefer Lisbon")
    other = full.value("select record_decision('acme', 'Another one') ->> 'memory_id'", role="service_role")
    writing = full.connect("service_role", autocommit=False)
    writing.execute(
        "select link_decisions('acme', %s, %s, 'informs', '{\"why\": \"Lisbon\"}')", (decision, other)
    )
    with ThreadPoolExecutor(1) as pool:
        erasing = pool.submit(memories.as_service(), "erase_subject", **about)
        full.wait_until(
            "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' and query like '%erase_subject%'"
        )
        writing.commit()
        assert erasing.result()["counts"]["decisions"] == 1
    assert full.rows("select metadata from agent_decision_edges") == [({},)]


def test_statistics_of_what_was_forgotten_before_go_with_an_erasure(full: Database) -> None:
    memories = Memories(full)
    about = {"subject_type": "candidate", "subject_id": str(uuid4())}
    service = memories.as_service()
    made = [service.id("Prefers the lisbonian sun", **about) for _ in range(5)]
    full.superuser.execute("analyze long_term_memory.agent_memories")
    for one in made:
        service("forget_memory", memory_id=one)
    quoted = "select count(*) from pg_stats where most_common_vals::text like '%lisbonian%'"
    assert full.superuser.execute(quoted).fetchone() == (1,)
    service("erase_subject", **about)
    assert full.superuser.execute(quoted).fetchone() == (0,)
