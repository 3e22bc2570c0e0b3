"""A project that we cannot work on: the push stops with a sentence of ours and leaves nothing behind."""

from __future__ import annotations

import re

import pytest

from tests.rig import deploy
from tests.rig.catalogue import SCHEMAS, catalogue
from tests.rig.hosts import OTHER_PRODUCT

ALL_SCHEMAS = (*SCHEMAS, "elsewhere")

REFUSED = {
    "the other product": (OTHER_PRODUCT, "public.agent_memories is the table of another product"),
    "no pgvector": ("drop extension vector", "The extension pgvector is not enabled"),
    "pgvector elsewhere": (
        "create schema elsewhere; alter extension vector set schema elsewhere",
        "The extension pgvector is in the schema elsewhere",
    ),
    "an odd thoughts table": (
        "create table public.thoughts (id bigint primary key, title text, body text)",
        "without columns that they need: thoughts.content (text), thoughts.created_at (timestamptz), "
        "thoughts.embedding (vector), thoughts.id (uuid), thoughts.metadata (jsonb)",
    ),
    "vectors as arrays": (
        "create table public.thoughts (id uuid primary key, content text, embedding real[], metadata jsonb, "
        "created_at timestamptz, updated_at timestamptz)",
        "without columns that they need: thoughts.embedding (vector)",
    ),
    "a view in the way": (
        "create view public.thoughts as select 1 as id",
        "A table of an Open Brain install is expected where something else stands: public.thoughts",
    ),
}


@pytest.mark.parametrize("found", REFUSED)
def test_open_brain_refuses_in_words_and_leaves_nothing(found, empty_project):
    setup, sentence = REFUSED[found]
    database = empty_project()
    database.superuser.execute(setup)
    before = catalogue(database, ALL_SCHEMAS)

    done = deploy.psql(database, deploy.migration("open_brain"))

    assert done.returncode != 0
    assert "RL501" in done.stderr
    assert sentence in done.stderr
    assert "HINT:" in done.stderr
    assert catalogue(database, ALL_SCHEMAS) == before


@pytest.mark.parametrize("found", ["the other product", "no pgvector", "an odd thoughts table"])
def test_a_refused_push_shows_what_was_found_and_what_to_do(found, empty_project, tmp_path):
    setup, sentence = REFUSED[found]
    database = empty_project()
    database.superuser.execute(setup)
    before = catalogue(database, ALL_SCHEMAS)

    done = deploy.push(database, deploy.project_folder(tmp_path, *deploy.migrations()))

    assert done.returncode != 0
    # the CLI shows no hint, so the message says both; after it the CLI repeats the statement
    shown = done.stderr.split("(SQLSTATE RL501)")[0]
    assert sentence in shown
    assert re.search(r"push (again|to another project)", shown)
    assert catalogue(database, ALL_SCHEMAS) == before
    assert _versions(database) == []


def _versions(database) -> list[str]:
    if (
        database.superuser.execute("select to_regclass('supabase_migrations.schema_migrations')").fetchone()[
            0
        ]
        is None
    ):
        return []
    rows = database.superuser.execute("select version from supabase_migrations.schema_migrations").fetchall()
    return [version for (version,) in rows]


LEDGER_REFUSED = {
    "an empty project": (
        "select 1",
        "some are missing: public.thoughts, public.agent_memories",
        "init --with-open-brain",
    ),
    "the other product": (OTHER_PRODUCT, "is the table of another product", "never changes a table"),
}


@pytest.mark.parametrize("found", LEDGER_REFUSED)
def test_the_ledger_alone_refuses_in_words_and_leaves_nothing(found, empty_project):
    setup, sentence, hint = LEDGER_REFUSED[found]
    database = empty_project()
    database.owner.execute(setup)
    before = catalogue(database)

    done = deploy.psql(database, deploy.migration("decision_ledger"))

    assert done.returncode != 0
    assert "RL501" in done.stderr
    assert sentence in done.stderr
    assert hint in done.stderr
    assert catalogue(database) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("drop table agent_memory_audit_events", "some are missing: public.agent_memory_audit_events"),
        ("alter table agent_memories drop column review_status", "agent_memories.review_status (text)"),
        ("alter table agent_memories owner to supabase_admin", "belongs to the role supabase_admin"),
    ],
)
def test_the_ledger_refuses_an_install_that_it_cannot_stand_on(change, sentence, open_brain_host):
    host = open_brain_host()
    host.superuser.execute(change)
    before = catalogue(host)

    done = deploy.psql(host, deploy.migration("decision_ledger"))

    assert done.returncode != 0
    assert "RL501" in done.stderr
    assert sentence in done.stderr
    assert catalogue(host) == before


def test_columns_that_nobody_needs_may_be_missing_and_others_may_be_there(open_brain_host):
    host = open_brain_host(fingerprint=False)
    host.owner.execute(
        "alter table agent_memories drop column runtime_version, add column mood text; "
        "alter table thoughts add column source text"
    )
    deploy.apply(host, "open_brain", "decision_ledger")
