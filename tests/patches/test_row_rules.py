"""A copy's own rules about rows, which a ranked recall does not apply, are named when the patch is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranked_ledger import patching
from ranked_ledger.patching import finding
from tests.patches import rig
from tests.patches.variants import names, variant

CONTRACT = (rig.CONTRACT_FUNCTION / "index.ts").read_text(encoding="utf-8")
LAST_FILTER = "    .filter((m) => Date.parse(m.created_at) >= oldest)\n"
LOADED = '    .in("thought_id", [...similarities.keys()])'


def columns(text: str) -> list[tuple[str, ...]]:
    found = finding.find(text, ".ts")
    assert not found.refusals
    return [rule.columns for rule in found.row_rules]


def filtered(by: str, declared: str = "") -> str:
    assert LAST_FILTER in CONTRACT
    return CONTRACT.replace(LAST_FILTER, f"{LAST_FILTER}    {by}\n") + declared


def queried(more: str) -> str:
    assert LOADED in CONTRACT
    return CONTRACT.replace(LOADED, LOADED + more)


def test_what_the_ranked_policy_applies_itself_is_no_news() -> None:
    assert columns(CONTRACT) == []
    told = {name: columns(variant(name).text) for name in names() if variant(name).is_patched}
    assert {name: one for name, one in told.items() if one} == {}


@pytest.mark.parametrize(
    ("by", "declared", "found"),
    [
        ('.filter((m) => m.channel_id !== "secret")', "", "channel_id"),
        (".filter((m) => { if (!m.owner) return false; return true; })", "", "owner"),
        (".filter(({ tenant }) => tenant)", "", "tenant"),
        (".filter(mine)", "\nfunction mine(row: any) { return row.owner === 1; }\n", "owner"),
        (
            ".filter((m) => allowed(limits, m))",
            "\nconst allowed = (_: unknown, row: any) => open(row);\nconst open = (row: any) => !row.sealed;\n",
            "sealed",
        ),
    ],
)
def test_a_filter_of_the_list(by: str, declared: str, found: str) -> None:
    assert columns(filtered(by, declared)) == [(found,)]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ('.eq("tenant", "acme")', ("tenant",)),
        ('.not("metadata->>hidden", "is", null)', ("metadata",)),
        ('.or("owner.eq.1,and(team.is.null,visibility.neq.personal)")', ("owner", "team")),
        ('.eq("project_id", payload.project_id).gte("confidence", 0.5)', ("confidence",)),
        ('.eq("project_id", "here")', ("project_id",)),
        ('.neq("visibility", "personal").eq("review_status", "confirmed")', ("review_status", "visibility")),
    ],
)
def test_a_filter_of_the_query(more: str, found: tuple[str, ...]) -> None:
    assert columns(queried(more)) == [found]


def test_a_loop_that_passes_rows_by() -> None:
    loop = "  for (const row of memories) {\n    if (row.owner !== 1) continue;\n    seen.push(row);\n  }\n"
    text = CONTRACT.replace(
        "  const pool = memories\n", f"  const seen = [];\n{loop}  const pool = memories\n"
    )
    assert columns(text) == [("owner",)]


def test_a_query_that_a_function_of_the_file_narrows() -> None:
    loaded = CONTRACT.index(
        'await supabase\n    .from("agent_memories")\n    .select()\n    .eq("workspace_id"'
    )
    text = (
        f"{CONTRACT[:loaded]}await mine(supabase\n{CONTRACT[loaded:].removeprefix('await supabase').lstrip()}"
    )
    text = text.replace(LOADED + ";", LOADED + ");", 1)
    assert columns(text + '\nconst mine = (query: any) => query.eq("exposure", "all");\n') == [("exposure",)]


def test_the_plan_names_them_with_their_lines(tmp_path: Path) -> None:
    text = filtered('.filter((m) => m.channel_id !== "secret")')
    (tmp_path / "index.ts").write_text(text, encoding="utf-8")
    planned = patching.plan(tmp_path, type_check=False)
    (rule,) = planned.as_dict()["row_rules"]
    assert rule["columns"] == ["channel_id"]
    assert "channel_id" in text.splitlines()[rule["line"] - 1]
