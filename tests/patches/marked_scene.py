"""Projects in which three people's strings stand everywhere: one is erased, two stay."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg

from ranked_ledger.stack import StackInfo, temporary_stack
from tests.contract.conftest import await_reload
from tests.patches import remains, rig
from tests.patches.marked import House, Marks, Person
from tests.patches.marked_between import Between, fill_loose, fill_shared
from tests.patches.marked_decisions import fill_ledger
from tests.patches.marked_memories import fill_memories
from tests.patches.patched import patched
from tests.rig import deploy

OWN_DIMENSION = 1536


@dataclass
class Scene:
    """Of one organization `erased` and `other`; of another the same candidate, as `foreigner`."""

    house: House
    erased: Person
    other: Person
    foreigner: Person
    between: Between

    @property
    def gone(self) -> tuple[Marks, ...]:
        """Whose strings an erasure has to find by what ties them."""
        return (self.erased.marks, self.between.dual)

    @property
    def staying(self) -> tuple[Marks, ...]:
        return (self.other.marks, self.foreigner.marks)

    @property
    def has_loose(self) -> bool:
        return bool(self.between.loose.words)

    def texts(self) -> list[str]:
        """The whole texts that have to go: none of them leaves a hash."""
        return [text for marks in (*self.gone, self.between.loose) for text in marks.texts.values()]

    def made(self) -> dict[str, set[str]]:
        """Vectors, digests and terms that have to go."""
        made = remains.made_of(self.house, self.erased, self.between.dual)
        if self.has_loose:
            more = remains.made_of(self.house, self.between.nobody)
            made = {kind: made[kind] | more[kind] for kind in made}
        return made

    @property
    def all(self) -> tuple[Marks, ...]:
        between = self.between
        return (*self.gone, *self.staying, between.loose, between.name, between.everywhere)


@contextmanager
def embeddings_by_words(dimension: int) -> Iterator[str]:
    """A service for which texts are the nearer the more words they share."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            draws = [random.Random(word) for word in asked["input"].split()]
            vector = [sum(draw.uniform(-1, 1) for draw in draws) for _ in range(dimension)]
            answer = json.dumps({"data": [{"embedding": vector}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: its log would be among the tests'."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def own_open_brain() -> Iterator[tuple[StackInfo, str, int]]:
    """A project with nothing but our migrations."""
    with temporary_stack() as stack, embeddings_by_words(OWN_DIMENSION) as embeddings:
        info = stack.info()
        with psycopg.connect(info.db_url, autocommit=True) as owner:
            for migration in deploy.migrations():
                owner.execute(migration.read_bytes())
        yield info, embeddings, OWN_DIMENSION


@contextmanager
def host_with_a_model() -> Iterator[tuple[StackInfo, str, int]]:
    """A host's own Open Brain, and a real model, whose vectors are short enough for the planner's statistics."""
    with rig.served_project() as info, rig.embedding_model() as embeddings:
        yield info, embeddings, rig.DIMENSION


@contextmanager
def filled(kind: str, folder: Path, *, with_loose: bool) -> Iterator[Scene]:
    """A scene, in a project of its own: what is looked at is all of the database."""
    projects = {"host": host_with_a_model, "own": own_open_brain}
    with (
        projects[kind]() as (project, embeddings, dimension),
        rig.running(patched(folder), project, embeddings) as function,
    ):
        await_reload(project)
        house = House(project, function, dimension)
        try:
            yield _fill(house, with_loose=with_loose)
        finally:
            house.close()


def _fill(house: House, *, with_loose: bool) -> Scene:
    first, second, foreign = house.workspaces.values()
    erased = Person(Marks("amber", house.dimension), house.ours, first)
    other = Person(Marks("birch", house.dimension), house.ours, second, kind="user", id=house.ours.new_user())
    foreigner = Person(Marks("cedar", house.dimension), house.theirs, foreign, id=erased.id)
    between = Between.empty(house)
    for person in (foreigner, other, erased):
        fill_memories(house, person)
        fill_ledger(house, person)
    _quote_in_failures(house, erased)
    fill_shared(house, between, erased, other, foreigner)
    if with_loose:
        fill_loose(house, between, other, foreigner)
    house.database.execute("analyze")
    return Scene(house, erased, other, foreigner, between)


def _quote_in_failures(house: House, person: Person) -> None:
    """Why the ledger could not enrol a decision, and could not follow another one, in the words of the host's trigger."""
    doors = ("a failure to enrol", "a failure to follow")
    enrolled, followed = (person.marks.text(door) for door in doors)
    innocent = person.attribute(house.ledger(person.workspace).record("An innocent decision"))
    with house.refusing_host([person.marks.words[door] for door in doors]):
        house.change("agent_memories", innocent, content=followed)
        person.attribute(
            house.insert(
                "agent_memories",
                workspace_id=person.workspace,
                memory_type="decision",
                summary="s",
                content=enrolled,
            )
        )
    reasons = house.column("select reason from ranked_ledger.enrolment_failures order by operation")
    assert reasons == [f"refused: {enrolled}", f"refused: {followed}"]
