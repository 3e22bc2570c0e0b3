"""What is left of words in a database: every column of every table, in plain, escaped, stemmed and hashed form.

    places(database, ["zebra17"], texts=["She is zebra17"], vectors=[vector()])  ->  {"public.thoughts.content", ...}

Words are looked for inside of values, whatever their case, and their lexemes of six letters or more, which nothing else may
have. Texts are whole: their hashes are looked for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator

from psycopg import sql

from tests.rig.databases import Connection, Database

_COLUMNS = """
select n.nspname, c.relname, a.attname, t.typname
from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
join pg_type t on t.oid = a.atttypid
where c.relkind in ('r', 'p', 'm') and a.attnum > 0 and not a.attisdropped and n.nspname <> 'information_schema'
  and n.nspname !~ '^pg_' and c.relispopulated
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by 1, 2, a.attnum
"""

# What ANALYZE keeps of a column, and of several at once, is its most common and its dividing values, word by word.
_STATISTICS = """
with kept as (
  select s.schemaname, s.tablename, s.attname::text as name,
         concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text, s.most_common_elems::text) as values
  from pg_stats s
  union all
  select s.schemaname, s.tablename, s.statistics_name, s.most_common_vals::text from pg_stats_ext s
  union all
  select s.schemaname, s.tablename, s.expr,
         concat_ws(' ', s.most_common_vals::text, s.histogram_bounds::text, s.most_common_elems::text)
  from pg_stats_ext_exprs s)
select format('statistics of %%s.%%s.%%s', k.schemaname, k.tablename, k.name) from kept k
where k.schemaname !~ '^(pg_|information_schema$)'
  and exists (select from unnest(%s::text[]) as f where strpos(lower(k.values), f) > 0)
"""

# Lexemes in eight bytes, of every workspace that has decisions: those that are posted, and those that ANALYZE keeps.
_POSTINGS = """
with terms as (
  select ranked_ledger.term_of(w.workspace_key, x.lexeme) as term
  from (select s.workspace_key from ranked_ledger.standings s
        union select ranked_ledger.workspace_key(m.workspace_id) from public.agent_memories m) as w
  cross join unnest(%s::text[]) as x (lexeme))
select 'ranked_ledger.postings' where exists (
  select from ranked_ledger.postings p where p.term in (select t.term from terms t))
union all
select 'statistics of ranked_ledger.postings.term' where exists (
  select from pg_stats s join terms t
    on t.term = any (s.most_common_vals::text::bigint[] || s.histogram_bounds::text::bigint[])
  where s.schemaname = 'ranked_ledger' and s.tablename = 'postings' and s.attname = 'term')
"""

_VECTORS = ("vector", "halfvec")


def folded(text: str) -> str:
    """As texts are compared: lower case, trimmed, white space folded."""
    return re.sub(r"\s+", " ", text).strip().lower()


def hashes(text: str) -> Iterator[str]:
    """What a digest of the text may look like in a text, or in the hexadecimal form of a bytea."""
    for form in {text, folded(text)}:
        for name in ("md5", "sha1", "sha256", "sha512"):
            digest = hashlib.new(name, form.encode()).digest()
            yield digest.hex()
            yield base64.b64encode(digest).decode().lower()


def _forms(word: str) -> Iterator[str]:
    low = word.lower()
    yield low
    yield json.dumps(low, ensure_ascii=False)[1:-1]
    yield json.dumps(low)[1:-1].lower()
    for form in {word, low}:
        yield form.encode().hex()


def lexemes(connection: Connection, words: Iterable[str]) -> list[str]:
    """The words as full-text search keeps them."""
    rows = connection.execute(
        """
        select distinct x.lexeme from unnest(%s::text[]) as w
        cross join unnest(array['english', 'simple']::regconfig[]) as c cross join unnest(to_tsvector(c, w)) as x
        where char_length(x.lexeme) >= 6""",
        (list(words),),
    )
    return [lexeme for (lexeme,) in rows]


def places(
    database: Database, words: Iterable[str], texts: Iterable[str] = (), vectors: Iterable[str] = ()
) -> set[str]:
    """The columns, statistics and postings in which anything of these is left."""
    words, vectors = list(words), list(vectors)
    found = set()
    with database.connect("supabase_admin") as connection:
        connection.execute("set search_path = public, extensions")
        stems = lexemes(connection, words)
        forms = {form for word in words for form in _forms(word)}
        forms |= {stem.lower() for stem in stems}
        forms |= {digest for text in (*texts, *words) for digest in hashes(text)}
        for schema, table, column, kind in connection.execute(_COLUMNS).fetchall():
            holder = sql.Identifier(schema, table)
            if _holds(connection, holder, column, list(forms)) or (
                kind in _VECTORS and _near(connection, holder, column, vectors)
            ):
                found.add(f"{schema}.{table}.{column}")
        found |= {place for (place,) in connection.execute(_STATISTICS, (list(forms),))}
        if connection.execute("select to_regclass('ranked_ledger.postings')").fetchone() != (None,):
            found |= {place for (place,) in connection.execute(_POSTINGS, (stems,))}
    return found


def _holds(connection: Connection, table: sql.Identifier, column: str, forms: list[str]) -> bool:
    query = sql.SQL(
        "select exists (select from {0} t join unnest(%s::text[]) as f on strpos(lower(t.{1}::text), f) > 0)"
    )
    ((held,),) = connection.execute(query.format(table, sql.Identifier(column)), (forms,)).fetchall()
    return bool(held)


def _near(connection: Connection, table: sql.Identifier, column: str, vectors: list[str]) -> bool:
    """Whether the column holds a vector of the same direction, whatever its length and precision."""
    query = sql.SQL(
        """
        select exists (select from {0} t join unnest(%s::text[]) as v on true
                       where vector_dims(t.{1}) = vector_dims(v::vector) and t.{1}::vector <=> v::vector < 1e-4)"""
    )
    ((near,),) = connection.execute(query.format(table, sql.Identifier(column)), (vectors,)).fetchall()
    return bool(near)


def dump(database: Database) -> str:
    """Everything that a backup holds, as text."""
    program = database.server.cluster.programs.bin_dir / "pg_dump"
    done = subprocess.run(
        [program, "--inserts", database.dsn("supabase_admin")], capture_output=True, text=True, check=True
    )
    return done.stdout


def in_dump(database: Database, words: Iterable[str]) -> dict[str, int]:
    """How often each of the words stands in a full dump; those that do not are left out."""
    text = dump(database).lower()
    counted = {word: sum(text.count(form) for form in set(_forms(word))) for word in words}
    return {word: number for word, number in counted.items() if number}
