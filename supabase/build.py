"""Build supabase/migrations from supabase/schemas: one file a product area, sources in name order.

    python supabase/build.py            write the migrations
    python supabase/build.py --check    exit 1 and name the stale ones
    python supabase/build.py --list     print each migration with its sources

A built file has to work in three ways: as `supabase db push` sends it (one transaction a file), by
`psql -1 -f`, and pasted as one multi-statement query. Each of them is one transaction, so the search path is
set for the transaction only, and a statement that ends the transaction or that only psql knows is refused.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

SUPABASE = Path(__file__).resolve().parent
SCHEMAS = SUPABASE / "schemas"
MIGRATIONS = SUPABASE / "migrations"


@dataclass(frozen=True)
class Area:
    """One folder of schemas/, one migration. The version is its place in every user's history."""

    name: str
    version: str
    uses_ranking: bool = False

    @property
    def target(self) -> Path:
        return MIGRATIONS / f"{self.version}_{self.name}.sql"


AREAS = (
    Area("open_brain", "20261130000100"),
    Area("decision_ledger", "20261130000200", uses_ranking=True),
    Area("long_term_memory", "20261130000300", uses_ranking=True),
)

HEADER = """\
-- Ranked Ledger: {area}
-- Built from supabase/schemas by supabase/build.py. Do not edit: edit the sources and run `make migrations`.
-- Runs once or many times, with the same result; changes no table that it did not create.

-- For this transaction only: a `set` would stay behind in a pooled session. pgvector is in one of the two.
select set_config('search_path', 'public, extensions, pg_temp', true);

-- Two pushes at once take turns; the second one finds everything done.
select pg_advisory_xact_lock(hashtextextended('ranked_ledger: migration', 0));
"""

FOOTER = """
-- The API learns at commit what is new.
notify pgrst, 'reload schema';
"""

# How a statement must not begin. A transaction statement makes the CLI drop its own transaction, a `set`
# stays behind in a pooled session, and the rest only psql knows.
FORBIDDEN_STATEMENTS = (
    (
        re.compile(r"(begin|commit|end|rollback|savepoint|start\s+transaction)\b", re.I),
        "a transaction statement",
    ),
    (re.compile(r"\\"), "a psql command"),
    (re.compile(r"copy\b.*\bfrom\s+stdin\b", re.I | re.S), "copy from stdin"),
    (re.compile(r"set\s+(?!constraints\b)", re.I), "a set that outlives the migration (set_config)"),
)
# What the CLI's splitter cuts in the wrong place.
FORBIDDEN_TEXT = (
    (re.compile(r"\bbegin\s+atomic\b", re.I), "begin atomic"),
    (re.compile(r"\be'", re.I), "an E'' string (use dollar quotes)"),
)
COMMENT_OR_QUOTED = re.compile(r"--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|(?<![eE])'(?:[^']|'')*'", re.S)


class SourceError(Exception):
    """A source that must not be built in."""


def sources(area: Area) -> list[Path]:
    """The files of an area in the order in which they apply.

    What looks before anything is written (000_...) goes first, then the ranking functions, then the rest: a
    host that we cannot work on hears why in our words.
    """
    own = sorted((SCHEMAS / area.name).glob("*.sql"))
    ranking = sorted((SCHEMAS / "ranking").glob("*.sql")) if area.uses_ranking else []
    first = [path for path in own if path.name.startswith("000_")]
    return [*first, *ranking, *own[len(first) :]]


def text_of(path: Path) -> str:
    """A source as it is built in: checked, one newline at its end."""
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n").strip("\n") + "\n"
    bare = COMMENT_OR_QUOTED.sub(" ", text)
    for statement in bare.split(";"):
        for pattern, what in FORBIDDEN_STATEMENTS:
            if pattern.match(statement.strip()):
                raise SourceError(f"{path.relative_to(SUPABASE)}: {what}")
    for pattern, what in FORBIDDEN_TEXT:
        if pattern.search(bare):
            raise SourceError(f"{path.relative_to(SUPABASE)}: {what}")
    return text


def build(area: Area) -> str:
    """The text of an area's migration."""
    parts = [HEADER.format(area=area.name.replace("_", " "))]
    for path in sources(area):
        title = f"-- {path.relative_to(SCHEMAS).as_posix()} "
        parts.append(f"\n{title.ljust(118, '-')}\n\n{text_of(path)}")
    parts.append(FOOTER)
    return "".join(parts)


def stale() -> list[Path]:
    """The migrations whose file is not what the schemas say."""
    return [
        area.target
        for area in AREAS
        if not area.target.is_file() or area.target.read_text(encoding="utf-8") != build(area)
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build supabase/migrations from supabase/schemas.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the stale files")
    what.add_argument("--list", action="store_true", help="print each migration with its sources")
    options = parser.parse_args(argv)
    try:
        if options.list:
            for area in AREAS:
                print(area.target.relative_to(SUPABASE))
                print("".join(f"  {path.relative_to(SUPABASE)}\n" for path in sources(area)), end="")
            return 0
        outdated = stale()
        if options.check:
            for path in outdated:
                print(f"stale: supabase/{path.relative_to(SUPABASE)} (run: make migrations)", file=sys.stderr)
            return 1 if outdated else 0
        MIGRATIONS.mkdir(exist_ok=True)
        for area in AREAS:
            if area.target in outdated:
                area.target.write_text(build(area), encoding="utf-8")
                print(f"built supabase/{area.target.relative_to(SUPABASE)}")
    except SourceError as error:
        print(f"refused: supabase/{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
