"""What the tables of a database hold, as text: proof that nothing was lost or changed."""

from __future__ import annotations

from psycopg import sql

from tests.rig.databases import Database
from tests.rig.rights import SCHEMAS


def contents(database: Database, *schemas: str) -> dict[str, list[str]]:
    """Each table of the schemas with its rows as sorted texts."""
    held = {}
    with database.connect("supabase_admin") as connection:
        tables = connection.execute(
            "select schemaname, tablename from pg_tables where schemaname = any(%s) order by 1, 2",
            (list(schemas or SCHEMAS),),
        ).fetchall()
        for schema, table in tables:
            query = sql.SQL("select t::text from {} t order by 1").format(sql.Identifier(schema, table))
            held[f"{schema}.{table}"] = [row for (row,) in connection.execute(query)]
    return held
