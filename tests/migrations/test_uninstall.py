"""docs/uninstall.md: either store goes without the other, the host stays as it was, and what went can come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import HostMaker
from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.contents import contents
from tests.rig.databases import Database

PAGE = Path(__file__).parents[2] / "docs" / "uninstall.md"
ORG = "00000000-0000-4000-8000-00000000000a"


def script(section: str) -> str:
    """The SQL of a section of the page."""
    (text,) = re.findall(
        rf"^## {section}\n.*?```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S | re.M
    )
    return text


LEDGER = script("The decision ledger")
MEMORY = script("The long-term memory")


def remember(database: Database) -> None:
    database.owner.execute(f"insert into long_term_memory.organizations (id) values ('{ORG}')")
    database.service.execute(
        "insert into long_term_memory.agent_memories (org_id, subject_type, text, author) "
        f"values ('{ORG}', 'workspace', 'Invoices go out on Mondays', 'person')"
    )


def recalled(database: Database) -> list[str]:
    answer = database.value(
        f"select recall_memories('{ORG}', 'When do invoices go out?')", role="service_role"
    )
    return [hit["text"] for hit in answer["hits"]]  # type: ignore[index]


def test_the_host_is_left_as_it_was_and_the_ledger_can_come_back(open_brain_host: HostMaker) -> None:
    host = open_brain_host()
    before = catalogue(host)
    memories = host.rows("select * from agent_memories order by id")
    deploy.apply(host, "decision_ledger")
    host.owner.execute(LEDGER)
    assert differences(before, catalogue(host)) == []
    assert host.rows("select * from agent_memories order by id") == memories
    host.owner.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) values ('acme', 'decision', 's', 'c')"
    )
    deploy.apply(host, "decision_ledger")
    assert host.value("select count(*) from agent_decision_ledger") == host.value(
        "select count(*) from agent_memories where memory_type = 'decision'"
    )


@pytest.mark.parametrize("default_privileges", ["old", "none"])
def test_the_long_term_memory_goes_and_leaves_an_empty_project_empty(
    empty_project: HostMaker, default_privileges: str
) -> None:
    project = empty_project(default_privileges=default_privileges)
    before = catalogue(project)
    deploy.apply(project, "long_term_memory")
    remember(project)
    project.owner.execute(MEMORY)
    assert differences(before, catalogue(project)) == []
    deploy.apply(project, "long_term_memory")
    remember(project)
    assert recalled(project) == ["Invoices go out on Mondays"]


def test_the_sweep_is_not_scheduled_any_more(memory_project: HostMaker) -> None:
    project = memory_project()
    project.owner.execute(  # stands for pg_cron, which no server that tests run on has
        "create schema cron; create table cron.job (jobid bigint, jobname text);"
        "insert into cron.job values (1, 'theirs'), (2, 'ranked-ledger-expire-memories');"
        "create function cron.unschedule(bigint) returns void language sql as 'delete from cron.job where jobid = $1'"
    )
    project.owner.execute(MEMORY)
    assert project.rows("select jobname from cron.job") == [("theirs",)]


@pytest.mark.parametrize("memory_first", [True, False], ids=["before the ledger", "after the ledger"])
def test_the_long_term_memory_goes_and_the_ledger_stays(
    open_brain_host: HostMaker, ledger_host: HostMaker, memory_first: bool
) -> None:
    host = open_brain_host()
    areas = ("open_brain", "long_term_memory", "decision_ledger")
    deploy.apply(host, *areas) if memory_first else deploy.apply(host, areas[0], areas[2], areas[1])
    remember(host)
    held = contents(host, "public", "ranked_ledger")
    host.owner.execute(MEMORY)
    assert differences(catalogue(ledger_host()), catalogue(host)) == []
    assert contents(host, "public", "ranked_ledger") == held
    assert host.value("select record_decision('w', 'some text') ->> 'memory_id'", role="service_role")
    assert host.value(
        "select recall_decisions('w', 'some text') -> 'hits' -> 0 ->> 'content'", role="service_role"
    )


def test_the_ledger_goes_and_the_long_term_memory_stays_and_works(
    full_host: HostMaker, open_brain_host: HostMaker
) -> None:
    host, memory_alone = full_host(), open_brain_host()
    deploy.apply(memory_alone, "open_brain", "long_term_memory")
    remember(host)
    host.owner.execute(LEDGER)
    assert differences(catalogue(memory_alone), catalogue(host)) == []
    assert recalled(host) == ["Invoices go out on Mondays"]
    host.service.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) values ('acme', 'decision', 's', 'c')"
    )
    deploy.apply(host, "long_term_memory", "decision_ledger")
    assert differences(catalogue(full_host()), catalogue(host)) == []
    assert recalled(host) == ["Invoices go out on Mondays"]


@pytest.mark.parametrize(
    "scripts", [(LEDGER, MEMORY), (MEMORY, LEDGER)], ids=["ledger first", "memory first"]
)
def test_both_go_and_the_host_is_left_as_it_was(open_brain_host: HostMaker, scripts: tuple[str, str]) -> None:
    host = open_brain_host()
    deploy.apply(host, "open_brain")  # it stays: these tables are the host's
    before = catalogue(host)
    memories = host.rows("select * from agent_memories order by id")
    deploy.apply(host, "decision_ledger", "long_term_memory")
    remember(host)
    for one in scripts:
        host.owner.execute(one)
    assert differences(before, catalogue(host)) == []
    assert host.rows("select * from agent_memories order by id") == memories
