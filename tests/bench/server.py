"""The server that everything is measured on, set as a hosted project's would be, and the databases on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from ranked_ledger.stack.postgres import throwaway_cluster
from tests.rig.databases import Database, Server

SETTINGS = {
    "shared_buffers": "2GB",
    # vacuumed and analysed after each load instead, so that nothing else works while it is measured
    "autovacuum": "off",
    # no checkpoint in the middle of a measurement
    "max_wal_size": "16GB",
    "checkpoint_timeout": "60min",
}
# What a throwaway cluster gives up, and what a host has.
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def bench_server() -> Iterator[Server]:
    """Gone at the end, with all of its databases."""
    with throwaway_cluster(settings=SETTINGS) as cluster:
        server = Server(cluster)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def durable(superuser: str) -> Iterator[None]:
    """Writes cost what they cost a host: each commit is on the disk before it is answered. `superuser`: a DSN."""
    with psycopg.connect(superuser, autocommit=True) as admin:
        for name in _DURABLE:
            admin.execute(f"alter system set {name} = on")
        admin.execute("select pg_reload_conf()")
        admin.execute("checkpoint")
        try:
            yield
        finally:
            for name in _DURABLE:
                admin.execute(f"alter system reset {name}")
            admin.execute("select pg_reload_conf()")


def tidy(database: Database) -> None:
    """What autovacuum would have done by then, and every page on the disk."""
    with database.connect("supabase_admin") as admin:
        admin.execute("vacuum (analyze)")
        admin.execute("checkpoint")
    # a throwaway cluster does not wait for its disk: what the kernel still has to write would be written beside the first case
    os.sync()
