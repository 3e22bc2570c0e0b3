"""What a database still holds of strings: in a dump with its statistics, in every column, in the planner's own tables."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

from psycopg import sql

from ranked_ledger.stack.postgres import find_programs
from tests.patches.marked import House, Marks, Person
from tests.rig.residue import hashes

# Also those of the planner, whose values are words, and as many as ANALYZE liked.
_TABLES = """
select n.nspname, c.relname, array_agg(a.attname::text order by a.attnum)
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
where a.attnum > 0 and not a.attisdropped and (
  c.relkind in ('r', 'p', 'm') and c.relispopulated and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  or c.oid in ('pg_statistic'::regclass, 'pg_statistic_ext_data'::regclass))
group by 1, 2 order by 1, 2
"""

Columns = dict[str, Counter[str]]

_VECTORS = """
select t.embedding::text from thoughts t where t.embedding is not null
  and exists (select from agent_memories m where m.thought_id = t.id and m.id = any (%(decisions)s))
  and not exists (select from agent_memories m where m.thought_id = t.id and m.id <> all (%(decisions)s))
union
select v.embedding::text from ranked_ledger.decision_vectors v join ranked_ledger.standings s on s.row_no = v.row_no
where s.memory_id = any (%(decisions)s)
  and not exists (select from agent_memories m where m.thought_id = s.thought_id and m.id <> all (%(decisions)s))
union
select a.embedding::text from long_term_memory.agent_memories a where a.id = any (%(memories)s) and a.embedding is not null
"""

_DIGESTS = """
select encode(k.digest, 'hex') from ranked_ledger.idempotency_keys k where k.memory_ids && %(decisions)s::uuid[]
union
select encode(k.digest, 'hex') from long_term_memory.idempotency_keys k where k.memory_id = any (%(memories)s)
union
select t.content_fingerprint from thoughts t join agent_memories m on m.thought_id = t.id
where m.id = any (%(decisions)s) and t.content_fingerprint is not null
  and not exists (select from agent_memories o where o.thought_id = t.id and o.id <> all (%(decisions)s))
"""

_TERMS = """
select distinct ranked_ledger.term_of(ranked_ledger.workspace_key(l.workspace_id), x.lexeme)::text
from agent_decision_ledger l cross join unnest(l.search_lexemes) as x
where l.memory_id = any (%(decisions)s) and x.lexeme like any (%(stems)s)
"""


def columns(house: House) -> Columns:
    """Every column of every table, as text, with how many rows have each value."""
    held: Columns = {}
    for schema, table, names in house.rows(_TABLES):
        values = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in names)
        query = sql.SQL("select array[{}] from {}").format(values, sql.Identifier(schema, table))
        kept: list[Counter[str]] = [Counter() for _ in names]
        for (row,) in house.database.execute(query):
            for counter, value in zip(kept, row, strict=True):
                if value is not None:
                    counter[value] += 1
        held |= {f"{schema}.{table}.{name}": counter for name, counter in zip(names, kept, strict=True)}
    return held


def dump(house: House) -> str:
    """Everything that a backup holds: schema, data and statistics."""
    program = find_programs().bin_dir / "pg_dump"
    command = [program, "--statistics", house.project.superuser_db_url]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def words(text: str, *marks: Marks) -> set[str]:
    """The words of these marks in a text, whatever became of them at their end: they may be stems."""
    stems = "|".join(one.stem for one in marks)
    return set(re.findall(f"(?:{stems})[a-z]*", text.lower()))


def places(held: Columns, *marks: Marks) -> dict[str, set[str]]:
    """The columns that hold words of these marks, in plain or in the hexadecimal form of a bytea."""
    stems = [form for one in marks for form in (one.stem, one.stem.encode().hex())]
    found = {
        place: {value for value in values if any(stem in value.lower() for stem in stems)}
        for place, values in held.items()
    }
    return {place: values for place, values in found.items() if values}


def made_of(house: House, person: Person, *others: Marks) -> dict[str, set[str]]:
    """What else tells somebody's words, as it stands in a dump: vectors, digests of requests, terms of an index."""
    given: dict[str, Any] = {
        "decisions": person.decisions,
        "memories": person.memories,
        "stems": [f"{one.stem}%" for one in (person.marks, *others)],
    }
    query = house.database.execute
    made = {
        "vectors": {value.strip("[]")[:60] for (value,) in query(_VECTORS, given)},
        "digests": {value for (value,) in query(_DIGESTS, given) if value},
        "terms": {value for (value,) in query(_TERMS, given)},
    }
    assert all(made.values()), made
    return made


def hashed(text: str, texts: Iterable[str]) -> set[str]:
    """Those of the texts of which a dump holds a hash, whatever the hash, of the text as it is or folded."""
    runs = " ".join(re.findall(r"[0-9A-Za-z+/]{22,}={0,2}", text)).lower()
    return {one for one in texts if any(form.rstrip("=") in runs for form in hashes(one))}


def left_of(text: str, made: dict[str, set[str]]) -> dict[str, set[str]]:
    """What of these strings stands in a dump."""
    found = {kind: {one for one in strings if one in text} for kind, strings in made.items()}
    return {kind: strings for kind, strings in found.items() if strings}
