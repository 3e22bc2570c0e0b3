"""A ledger behind gateway and PostgREST, its server set as the benchmark's own is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from ranked_ledger.stack import StackInfo, temporary_stack
from tests.bench import decisions
from tests.bench.bench import Bench
from tests.bench.server import SETTINGS
from tests.bench.vectors import Space
from tests.contract.conftest import await_reload
from tests.rig.deploy import migrations


@contextmanager
def loaded(bench: Bench, space: Space) -> Iterator[StackInfo]:
    """One workspace, and gone at the end."""
    with temporary_stack() as stack:
        with psycopg.connect(stack.info().superuser_db_url, autocommit=True) as admin:
            for name, value in SETTINGS.items():
                admin.execute(
                    sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))
                )
        stack.down()
        info = stack.up()
        with psycopg.connect(info.db_url, autocommit=True) as owner:
            for migration in migrations():
                owner.execute(migration.read_bytes())
            workspace = decisions.Workspace(0, bench.plan.small)
            bench.load("a workspace behind the API", owner, [workspace], space)
        with psycopg.connect(info.superuser_db_url, autocommit=True) as admin:
            admin.execute("vacuum (analyze)")
            admin.execute("checkpoint")
        await_reload(info)
        yield info
