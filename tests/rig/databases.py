"""Throwaway servers, template databases and connections in the roles of a Supabase project.

A database is built once a session as a template and cloned for each test that wants it: a clone takes tens of
milliseconds, a build seconds.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ranked_ledger.stack.platform import DefaultPrivileges, VectorSchema, database_sql, roles_sql
from ranked_ledger.stack.postgres import SUPERUSER, Cluster, throwaway_cluster

Connection = psycopg.Connection[tuple]
API_ROLES = ("anon", "authenticated", "service_role")
OWNER = "postgres"

# What PostgREST does at the start of every request, as far as names resolve by it.
_API_SEARCH_PATH = "public, extensions"

_SETTINGS = {
    "shared_buffers": "64MB",
    "max_connections": "150",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "jit": "off",
}


@dataclass
class Database:
    """One database and the connections that a test opened to it."""

    server: Server
    name: str
    _open: list[Connection] = field(default_factory=list)
    _kept: dict[str, Connection] = field(default_factory=dict)

    def dsn(self, user: str = OWNER) -> str:
        """A URL for the tools of the outside: psql, pg_dump, the Supabase CLI."""
        return self.server.cluster.dsn(self.name, user)

    def connect(self, role: str = OWNER, *, autocommit: bool = True) -> Connection:
        """A new connection in a role; the API's roles arrive as they do through PostgREST."""
        user = "authenticator" if role in API_ROLES else role
        connection = psycopg.connect(make_conninfo(self.dsn(user)), autocommit=True)
        if role in API_ROLES:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("set search_path = {}").format(sql.SQL(_API_SEARCH_PATH)))
            # the timeouts of these roles are the API's, and not what a test is about
            connection.execute("set statement_timeout = 0")
            connection.execute("set lock_timeout = 0")
        connection.autocommit = autocommit
        self._open.append(connection)
        return connection

    def _shared(self, role: str) -> Connection:
        if role not in self._kept or self._kept[role].closed:
            self._kept[role] = self.connect(role)
        return self._kept[role]

    @property
    def superuser(self) -> Connection:
        """Only for what a host's platform does, and for looking at everything."""
        return self._shared(SUPERUSER)

    @property
    def owner(self) -> Connection:
        """The role that owns the project: no superuser, as on hosted projects."""
        return self._shared(OWNER)

    @property
    def service(self) -> Connection:
        return self._shared("service_role")

    @property
    def anon(self) -> Connection:
        return self._shared("anon")

    @property
    def authenticated(self) -> Connection:
        return self._shared("authenticated")

    def rows(self, query: str, params: object = None, *, role: str = OWNER) -> list[tuple]:
        """All rows of a query; the owner's view unless another role is named."""
        return self._shared(role).execute(query, params).fetchall()

    def value(self, query: str, params: object = None, *, role: str = OWNER) -> object:
        """The first column of the only row."""
        ((value, *_),) = self.rows(query, params, role=role)
        return value

    def wait_until(self, query: str, seconds: float = 30) -> None:
        """Ask until the answer is true; fails with the query when it is not in time."""
        deadline = time.monotonic() + seconds
        while not self.superuser.execute(query).fetchone()[0]:
            if time.monotonic() > deadline:
                raise AssertionError(f"not true after {seconds} s: {query}")

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._kept.clear()


class Server:
    """A cluster with the platform's roles; its templates are built at their first use."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._templates: set[str] = set()
        self._numbers = itertools.count(1)
        self._admin = psycopg.connect(cluster.dsn("postgres"), autocommit=True)
        self._admin.execute(roles_sql())

    @property
    def major(self) -> int:
        return self.cluster.programs.major

    def clone(self, template: str, build: Callable[[Database], None], base: str | None = None) -> Database:
        """A new database like `template`, which is built from `base` by `build` where it is not there yet."""
        if template not in self._templates:
            self._create(template, base)
            database = Database(self, template)
            try:
                build(database)
            except BaseException:
                database.close()
                self._drop(template)
                raise
            database.close()
            self._templates.add(template)
        name = f"test_{next(self._numbers)}"
        self._create(name, template)
        return Database(self, name)

    def template(self, name: str, build: Callable[[Database], None], base: str | None = None) -> str:
        """Have the template built and answer its name."""
        if name not in self._templates:
            self.remove(self.clone(name, build, base))
        return name

    def remove(self, database: Database) -> None:
        database.close()
        self._drop(database.name)

    def close(self) -> None:
        self._admin.close()

    def _create(self, name: str, template: str | None) -> None:
        self._admin.execute(
            sql.SQL("create database {} template {} owner {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template or "template0"), sql.Identifier(OWNER)
            )
        )

    def _drop(self, name: str) -> None:
        self._admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@contextlib.contextmanager
def running_server(major: int | None = None) -> Iterator[Server]:
    """A non-durable server of its own, gone at the end."""
    with throwaway_cluster(major, settings=_SETTINGS) as cluster:
        server = Server(cluster)
        try:
            yield server
        finally:
            server.close()


def project_template(
    server: Server, default_privileges: DefaultPrivileges = "none", vector_schema: VectorSchema = "extensions"
) -> str:
    """A project in which nothing was created yet, of either kind of default privileges."""

    def build(database: Database) -> None:
        database.superuser.execute(database_sql(default_privileges, vector_schema))

    return server.template(f"project_{default_privileges}_{vector_schema}", build)
