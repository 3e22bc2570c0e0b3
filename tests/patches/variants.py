"""Copies of the contract's function as people have them: each file of `cases/` is one, as edits of `function/index.ts`.

A case holds:
- `drift`: what is different. `with`: other cases whose edits come first; they are combined here.
- `edits`: `old` becomes `new`; it is there exactly once, so that a function that changed is noticed, or `everywhere`.
- `format`: options of `deno fmt`, which goes over the text afterwards.
- `expect`: "patched", or "refused" at the `place`, with a `reason` and the `nearest` line.
- For a patched one, what differs from the function itself: `places` by rule, each the text that it is found at; `guarded`:
  what runs for the vector policy only, each as it begins; `missing`: optional places that are not there.
"""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deno import find_deno_bin

from tests.patches import rig

CASES = Path(__file__).parent / "cases"

PLACES = {
    "import": 'import { z } from "zod";',
    "request-fields": "const recallSchema = z.object({",
    "route": 'app.post("/recall", async (c) => {',
    "query-embedding": "const embedding = await embed(payload.query);",
    "match-call": 'const { data: matches, error: matchError } = await supabase.rpc("match_thoughts", {',
    "ranked-list": "const ranked = pool.slice(0, payload.limits.max_items);",
    "trace-policy": "response_policy: {",
    "item-snapshot": "use_policy_snapshot: {",
    "review-changes": "const { data: after, error } = await supabase",
    "usage": 'app.post("/recall/:request_id/usage", async (c) => {',
    "review": 'app.patch("/memories/:id/review", async (c) => {',
    "write-back": 'app.post("/writeback", async (c) => {',
    "write-back-rows": "const { data: memories, error } = await supabase",
}
GUARDED = (
    'await supabase.rpc("match_thoughts", {',
    "if (matchError) throw",
    "for (const match of matches)",
    "await supabase",
    "if (memoriesError) throw",
    "memories",
)


@dataclass(frozen=True)
class Variant:
    """A case, its edits made. `said` is what its file says beyond them."""

    name: str
    text: str
    said: dict[str, Any]

    @property
    def is_patched(self) -> bool:
        return bool(self.said["expect"] == "patched")

    @property
    def places(self) -> dict[str, str]:
        missing = self.said.get("missing", [])
        return {rule: text for rule, text in (PLACES | self.said["places"]).items() if rule not in missing}

    @property
    def guarded(self) -> tuple[str, ...]:
        return tuple(self.said.get("guarded", GUARDED))


@cache
def base() -> str:
    return (rig.CONTRACT_FUNCTION / "index.ts").read_text(encoding="utf-8")


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in CASES.glob("*.toml")))


@cache
def variant(name: str) -> Variant:
    said = _said(name)
    text = base()
    for case, edit in said["edits"]:
        found = text.count(edit["old"])
        wanted = found >= 1 if edit.get("everywhere") else found == 1
        assert wanted, f"{case}: found {found} times, and the case has to follow the function:\n{edit['old']}"
        text = text.replace(edit["old"], edit["new"])
    if "format" in said:
        text = formatted(text, said["format"])
    return Variant(name, text, said)


def _said(name: str) -> dict[str, Any]:
    own = tomllib.loads((CASES / f"{name}.toml").read_text(encoding="utf-8"))
    said: dict[str, Any] = {"edits": [], "places": {}, "missing": []}
    for other in own.pop("with", []):
        before = _said(other)
        for key in ("edits", "missing"):
            said[key] += before[key]
        said["places"] |= before["places"]
    edits = [(name, edit) for edit in own.pop("edits", [])]
    places = said["places"] | own.pop("places", {})
    missing = said["missing"] + own.pop("missing", [])
    return said | own | {"edits": said["edits"] + edits, "places": places, "missing": missing}


def formatted(text: str, options: list[str]) -> str:
    """What `deno fmt` makes of a text."""
    done = subprocess.run(
        [find_deno_bin(), "fmt", "--no-config", "--ext=ts", *options, "-"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()
