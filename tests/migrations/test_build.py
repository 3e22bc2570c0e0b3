"""The shipped migrations are what the schemas say, and the build refuses what a push could not carry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences
from tests.rig.contents import contents

AREAS = [area.name for area in deploy.build.AREAS]


def test_migrations_are_up_to_date():
    assert [path.name for path in deploy.build.stale()] == []


def test_check_names_the_stale_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(deploy.build, "MIGRATIONS", tmp_path)
    monkeypatch.setattr(deploy.build, "SUPABASE", tmp_path.parent)

    assert deploy.build.main(["--check"]) == 1
    assert "20261130000100_open_brain.sql" in capsys.readouterr().err


def test_schema_files_one_by_one_build_what_the_migrations_build(empty_project):
    by_source, by_migration = empty_project(), empty_project()
    for area in AREAS:
        deploy.apply_sources(by_source, area)
    deploy.apply(by_migration, *AREAS)

    assert differences(catalogue(by_source), catalogue(by_migration)) == []
    assert contents(by_source) == contents(by_migration)


@pytest.mark.parametrize("area", AREAS)
def test_a_migration_sets_its_search_path_for_itself_and_wakes_the_api_last(area: str):
    statements = deploy.migration(area).read_text(encoding="utf-8")
    code = "\n".join(line for line in statements.splitlines() if line and not line.startswith("--"))

    assert code.startswith("select set_config('search_path', 'public, extensions, pg_temp', true);")
    assert code.endswith("notify pgrst, 'reload schema';")


@pytest.mark.parametrize("area", ["decision_ledger", "long_term_memory"])
def test_ranking_is_built_in_after_the_preflight_and_before_the_rest(area: str):
    (found,) = (one for one in deploy.build.AREAS if one.name == area)
    sources = deploy.build.sources(found)
    folders = [path.parent.name for path in sources]
    ranking = folders.count("ranking")

    assert sources[0].name == "000_preflight.sql"
    assert folders[1 : 1 + ranking] == ["ranking"] * ranking
    assert {*folders[:1], *folders[1 + ranking :]} == {area}


def test_what_the_two_stores_share_is_what_ranking_makes_and_no_name_is_made_twice(memory_project):
    def made(folder: Path) -> set[str]:
        text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.sql"))
        return set(re.findall(r"^create or replace function ranked_ledger\.(\w+)", text, re.M))

    shared = memory_project().value("select ranked_ledger.shared_functions()")
    assert sorted(made(deploy.build.SCHEMAS / "ranking")) == shared
    for area in AREAS:
        assert made(deploy.build.SCHEMAS / area).isdisjoint(shared)


@pytest.mark.parametrize(
    "statement",
    [
        "begin; select 1; commit;",
        "select 1;\nCOMMIT;",
        "savepoint here;",
        "\\set name value",
        "copy t from stdin;",
        "set search_path = public;",
        "set local lock_timeout = 0;",
        "create function f() returns int language sql begin atomic select case when true then 1 end; end;",
        "select E'it\\'s; x';",
    ],
)
def test_the_build_refuses_what_a_push_cannot_carry(statement: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(deploy.build, "SUPABASE", tmp_path)
    source = tmp_path / "010_source.sql"
    source.write_text(statement)

    with pytest.raises(deploy.build.SourceError, match=r"010_source\.sql"):
        deploy.build.text_of(source)


@pytest.mark.parametrize(
    "statement",
    [
        "create function f() returns int language plpgsql\nset search_path = public\nas $$ begin end $$;",
        "set constraints all immediate;",
        "comment on table t is 'begin; commit; it''s';",
        "-- begin;\nselect 1;",
    ],
)
def test_the_build_takes_what_only_looks_like_it(statement: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(deploy.build, "SUPABASE", tmp_path)
    source = tmp_path / "010_source.sql"
    source.write_text(statement)

    assert deploy.build.text_of(source) == statement + "\n"


def test_both_preflights_want_the_same_columns():
    def wanted(area: str) -> str:
        text = (deploy.build.SCHEMAS / area / "000_preflight.sql").read_text(encoding="utf-8")
        found = re.search(r"-- contract columns: begin\n(.*?)-- contract columns: end", text, re.S)
        assert found is not None
        return found[1]

    assert wanted("open_brain") == wanted("decision_ledger")
