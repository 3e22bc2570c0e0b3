"""The platform's own linter, run on projects of the old kind, where it finds most."""

from __future__ import annotations

import json
import re

import pytest

from tests.rig import deploy, hosts
from tests.rig.hosts import Port

# (finding, pattern over its detail, reason). One that finds nothing any more has to go.
ACCEPTED = [
    (
        "function_search_path_mutable",
        r"Function `(ranked_ledger|long_term_memory)\.\w+` has a role mutable search_path",
        "Pure `return <expression>` functions: a SET clause would keep them from being inlined, and their names are "
        "bound when they are created. test_catalog_checks.py holds every other function to its search path.",
    ),
    (
        "unused_index",
        r"Index `\w+` on table `(public|ranked_ledger|long_term_memory)\.\w+` has not been used",
        "The project is new and nothing was asked yet.",
    ),
]


def findings(database, folder) -> list[dict]:
    done = deploy.cli(
        deploy.project_folder(folder),
        *("db", "advisors", "--db-url", database.dsn(), "--type", "all", "--level", "info"),
        *("--fail-on", "none", "-o", "json", "--agent", "no"),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def accepted(finding: dict) -> bool:
    return any(
        finding["name"] == name and re.search(pattern, finding["detail"])
        for name, pattern, _reason in ACCEPTED
    )


def test_no_finding_about_our_objects_but_the_accepted(full_project, tmp_path):
    found = findings(full_project(default_privileges="old"), tmp_path)

    assert [(f["name"], f["detail"]) for f in found if not accepted(f)] == []
    for name, pattern, _reason in ACCEPTED:
        assert any(f["name"] == name and re.search(pattern, f["detail"]) for f in found), name


@pytest.mark.parametrize("kind", [hosts.open_brain_host, hosts.published_proposal_host])
def test_an_install_adds_no_finding_to_a_hosts_own(kind, databases, tmp_path):
    host = databases(kind, Port(default_privileges="old"))
    before = {f["cache_key"] for f in findings(host, tmp_path / "before")}
    deploy.apply(host, "open_brain", "decision_ledger", "long_term_memory")
    after = findings(host, tmp_path / "after")

    assert [(f["name"], f["detail"]) for f in after if f["cache_key"] not in before and not accepted(f)] == []


def test_the_linter_sees_what_we_take_care_to_avoid(ledger_project, tmp_path):
    database = ledger_project(default_privileges="old")
    database.owner.execute(
        "create table public.careless (id int); create view public.peep as select * from thoughts"
    )

    names = {f["name"] for f in findings(database, tmp_path)}

    assert {"rls_disabled_in_public", "security_definer_view", "no_primary_key"} <= names
