"""One random ledger: changed at random and asked, and always answered as the oracle says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import IsolationLevel, Rollback

from tests.rig.databases import Connection, Database
from tests.sql import random_ledgers
from tests.sql.random_changes import REFUSALS, Change, Changes, refusable
from tests.sql.random_ledgers import Call, World
from tests.sql.ranking_oracle import assert_copies_are_right, assert_matches, assert_recalls, recall


class Run:
    """One ledger from a seed: changed, then asked, and so on."""

    def __init__(
        self, database: Database, seed: int, write: Callable[[Connection, random.Random], World]
    ) -> None:
        self.rand = random.Random(seed)
        self.database = database
        self.seed = seed
        self.asker = database.connect("service_role")
        self.writers = [database.connect("service_role"), database.connect()]
        for writer in self.writers:
            # who waits for another writer of this thread would wait for ever
            writer.execute("set lock_timeout = '40ms'")
        self.world = write(self.asker, self.rand)
        self.changes = Changes(self.world)
        self.log: list[str] = []
        self.relevances: list[float] = []

    def go(self, rounds: int) -> None:
        self.ask(12)
        for number in range(rounds):
            self.log = [f"round {number}"]
            self.rand.choices(
                (self.one_by_one, self.in_a_transaction, self.under_an_old_snapshot, self.beside_another),
                (40, 30, 15, 15),
            )[0]()
            for workspace in (self.world.workspace, self.world.other):
                assert_copies_are_right(self.asker, workspace, f"seed {self.seed}: {', '.join(self.log)}")
            self.ask(2)

    # asking

    def ask(self, calls: int, connection: Connection | None = None) -> None:
        connection = connection or self.asker
        configs = dict(
            connection.execute(
                "select workspace_id, text_config from ranked_ledger.workspace_settings"
            ).fetchall()
        )
        for _ in range(calls):
            call = random_ledgers.random_call(self.world, self.relevances)
            config = configs.get(call.arguments["p_workspace_id"], call.config)
            call = Call(call.arguments, config)
            where = f"seed {self.seed}: {', '.join(self.log)}"
            rows = assert_matches(connection, call, where)
            self.relevances = [row["relevance"] for row in rows] or self.relevances
            if self.rand.random() < 0.2:
                assert_recalls(connection, call, where)

    def catch_up(self) -> None:
        """What any next recall does: it makes good what writers had to leave."""
        for workspace in (self.world.workspace, self.world.other):
            recall(self.asker, {"p_workspace_id": workspace, "p_match_count": 1})

    # changing

    def draw(self, most: int, only: Callable[[Change], bool] = lambda change: True) -> list[Change]:
        drawn = [self.changes.draw() for _ in range(self.rand.randint(1, most))]
        return [change for change in drawn if only(change)]

    def note(self, change: Change) -> None:
        self.log.append(change.__name__)  # type: ignore[attr-defined]

    def one_by_one(self) -> None:
        """Each statement is a transaction."""
        writer = self.rand.choice(self.writers)
        for change in self.draw(3):
            self.note(change)
            try:
                change(writer)
            except psycopg.Error as error:
                if error.sqlstate not in REFUSALS:
                    raise

    def some_undone(self, writer: Connection, changes: list[Change]) -> None:
        for change in changes:
            undone = self.rand.random() < 0.25
            self.log.append("undone:" * undone)
            self.note(change)
            with refusable(writer):
                change(writer)
                if undone:
                    raise Rollback

    def in_a_transaction(self) -> None:
        """Savepoints, some rolled back; asked by another before the end, and by itself where every step has its place."""
        writer = self.rand.choice(self.writers)
        with writer.transaction():
            self.log.append("begin")
            self.some_undone(writer, self.draw(5))
            if self.rand.random() < 0.3 and not self.is_locked(writer):
                self.ask(1)
            if self.rand.random() < 0.5:
                writer.execute("set constraints all immediate")
                self.log.append("asked within")
                self.ask(1, writer)
            if self.rand.random() < 0.2:
                self.log.append("rollback")
                raise Rollback

    def is_locked(self, writer: Connection) -> bool:
        """Whether the writer truncated something: then nobody else reads it."""
        ((locked,),) = writer.execute(
            "select exists (select from pg_locks where pid = pg_backend_pid() and mode = 'AccessExclusiveLock'"
            " and locktype = 'relation')"
        ).fetchall()
        return bool(locked)

    @contextmanager
    def isolated(self, writer: Connection) -> Iterator[None]:
        level = self.rand.choice((IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE))
        self.log.append(level.name)
        writer.isolation_level = level
        try:
            with writer.transaction():
                yield
        except psycopg.Error as error:
            if error.sqlstate not in REFUSALS:
                raise
        finally:
            writer.isolation_level = None

    def under_an_old_snapshot(self) -> None:
        """What needs nobody's hindsight is seen at once; the rest by the next recall."""
        writer = self.rand.choice(self.writers)
        followed = self.rand.random() < 0.5
        with self.isolated(writer):
            self.some_undone(
                writer,
                self.draw(4, lambda change: followed or change.__name__ not in Changes.FOLLOWED),  # type: ignore[attr-defined]
            )
        if followed:
            self.catch_up()

    def beside_another(self) -> None:
        """Two writers at once; who meets the other's locks gives up. A language is changed by nobody at the same time:
        what is being written meanwhile stays read in the old one."""

        def allowed(change: Change) -> bool:
            return change.__name__ != "configure"  # type: ignore[attr-defined]

        first, second = self.rand.sample(self.writers, 2)
        plain = self.rand.random() < 0.4
        with first.transaction() if plain else self.isolated(first):
            self.log.append("first")
            first.execute("select count(*) from agent_decision_ledger")
            self.some_undone(first, self.draw(2, allowed))
            self.log.append("second")
            for change in self.draw(2, allowed):
                self.note(change)
                with refusable(second):
                    change(second)
            self.log.append("first")
            self.some_undone(first, self.draw(2, allowed))
        self.catch_up()
