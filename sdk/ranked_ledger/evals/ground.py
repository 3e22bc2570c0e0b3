"""The throwaway stack that a run stands on: the product as it is shipped, and the evaluation's own arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import psycopg

from ranked_ledger import RankedLedger, doctor, shipped
from ranked_ledger.stack import StackInfo, temporary_stack
from ranked_ledger.stack.connecting import connect

_AREAS: Final = (shipped.OPEN_BRAIN, shipped.LEDGER)
_SEARCH_PATH: Final = "public, extensions, pg_temp"
# the host's own index ends at 2,000 dimensions; every arm compares every row, so none is wanted here
_DIMENSION: Final = """
drop index if exists public.thoughts_embedding_idx;
alter table public.thoughts alter column embedding type vector({dimension});
"""
# ids in the order of recording: rows that tie on score and step have the same order in every run
_IDS: Final = """
create sequence ranked_ledger_evals.ids;
create function ranked_ledger_evals.next_id() returns uuid language sql security definer as $$
  select lpad(to_hex(nextval('ranked_ledger_evals.ids')), 32, '0')::uuid
$$;
alter table public.agent_memories alter column id set default ranked_ledger_evals.next_id();
"""


@dataclass(frozen=True)
class Ground:
    """A running stack with the ledger in it."""

    info: StackInfo

    def parameters(self) -> frozenset[str]:
        """What the installed `recall_decisions` takes."""
        with connect(self.info.db_url) as owner:
            rows = owner.execute(
                "select unnest(p.proargnames) from pg_proc p where p.oid = 'public.recall_decisions'::regproc"
            )
            return frozenset(str(name) for (name,) in rows)

    def presets(self) -> dict[str, dict[str, Any]]:
        """What the installed presets weigh by, so that a log says which weights its arms had."""
        with connect(self.info.db_url) as owner:
            rows = owner.execute(
                "select p, to_jsonb(ranked_ledger.preset(p)) from unnest(array['published', 'tuned']) as p"
            )
            return dict(rows.fetchall())

    def versions(self) -> dict[str, str]:
        with connect(self.info.db_url) as owner:
            row = owner.execute(
                "select current_setting('server_version'),"
                " (select extversion from pg_extension where extname = 'vector'),"
                " public.ledger_schema_version()::text"
            ).fetchone()
        postgres, pgvector, schema = row or ("", "", "")
        return {"PostgreSQL": postgres, "pgvector": pgvector, "schema": schema}


@contextmanager
def ground(dimension: int | None, on_stage: Callable[[str], None] = lambda _: None) -> Iterator[Ground]:
    """A stack whose vectors have that dimension, for as long as the block lasts."""
    with temporary_stack(on_progress=on_stage) as stack:
        info = stack.info()
        on_stage("installing the ledger and the arms")
        with connect(info.db_url) as owner:
            for area in _AREAS:
                _apply(owner, *(one.text for one in shipped.migrations() if one.area == area))
                if area == shipped.OPEN_BRAIN and dimension is not None:
                    _apply(owner, _DIMENSION.format(dimension=dimension))
            _apply(owner, *_sql())
        with RankedLedger(info.url, info.secret_key, workspace="eval") as ledger:
            doctor.await_functions(ledger)
        yield Ground(info)


def _sql() -> Iterator[str]:
    """The files of `sql/`, in order of their names; the access comes last, after what it is given to."""
    files = [
        one
        for one in resources.files("ranked_ledger.evals").joinpath("sql").iterdir()
        if one.name.endswith(".sql")
    ]
    first, *rest = sorted(files, key=lambda one: one.name)
    yield first.read_text(encoding="utf-8") + _IDS
    for file in rest:
        yield file.read_text(encoding="utf-8")


def _apply(owner: psycopg.Connection, *texts: str) -> None:
    for text in texts:
        with owner.transaction():
            owner.execute("select set_config('search_path', %s, true)", (_SEARCH_PATH,))
            # without parameters: the simple protocol, so that a file may hold many statements
            owner.execute(text.encode())
    owner.execute("notify pgrst, 'reload schema'")
    owner.commit()
