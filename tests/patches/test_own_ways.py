"""Copies that go their own way where the request has a say in others: their workspace, their limit, their checks hold."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ranked_ledger import RankedLedger, patching
from ranked_ledger.patching import deno, folder, rules
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import ask, body, ids, patched, question, recall, write

QUEUE = "The job queue lives in PostgreSQL, beside the data"
LOGIN = "People sign in with a passkey"
OWN_WORKSPACE = (
    ("  const embedding = ", '  const tenant = c.req.header("x-tenant") ?? "";\n  const embedding = '),
    (
        '    .select()\n    .eq("workspace_id", payload.workspace_id)\n    .in("thought_id"',
        '    .select()\n    .eq("workspace_id", tenant)\n    .in("thought_id"',
    ),
)


def contract(*changes: tuple[str, str]) -> str:
    text = (rig.CONTRACT_FUNCTION / "index.ts").read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def planned(into: Path, *changes: tuple[str, str]) -> patching.Plan:
    (into / "index.ts").write_text(contract(*changes), encoding="utf-8")
    return patching.plan(into, type_check=False)


# --- what is inserted ---


def test_a_workspace_of_the_copys_own_is_the_ranked_lists_too(tmp_path: Path) -> None:
    assert 'rankedLedger.list("*", { workspace: tenant })' in planned(tmp_path, *OWN_WORKSPACE).patched


def test_a_limit_of_the_copys_own_is_the_ranked_lists_too(tmp_path: Path) -> None:
    cut = ("pool.slice(0, payload.limits.max_items)", "pool.slice(0, Math.min(payload.limits.max_items, 3))")
    listed = 'rankedLedger.list("*", { limit: Math.min(payload.limits.max_items, 3) })'
    assert listed in planned(tmp_path, cut).patched
    of_the_matches = ("pool.slice(0, payload.limits.max_items)", "pool.slice(0, Math.min(pool.length, 3))")
    assert "rankedLedger.list()" in planned(tmp_path, of_the_matches).patched


def test_what_is_awaited_beside_the_match_call_runs_for_both(tmp_path: Path) -> None:
    call = (
        'const { data: matches, error: matchError } = await supabase.rpc("match_thoughts", {',
        'const [{ data: matches, error: matchError }, settings] = await Promise.all([supabase.rpc("match_thoughts", {',
    )
    end = ("    filter: {},\n  });\n", '    filter: {},\n  }), supabase.from("settings").select()]);\n')
    text = planned(tmp_path, call, end).patched
    before = text[: text.index('supabase.rpc("match_thoughts"')]
    assert before.rstrip().endswith("rankedLedger.nothing() : /* ranked-ledger:end */")
    assert before.rindex("Promise.all([") < before.rindex("rankedLedger.nothing()")
    assert 'supabase.from("settings").select()]' in text


def test_a_field_of_the_same_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(patching.PlacesError, match="it has a field recall_policy of its own"):
        planned(
            tmp_path,
            ("  query: z.string().min(1),\n", "  query: z.string(),\n  recall_policy: z.string(),\n"),
        )


MAY_READ = "!(await mayRead(payload))"
CHECKS = [
    pytest.param(f"  if (matchError || {MAY_READ}) return c.json({{}}, 403);", id="in a condition"),
    pytest.param(
        f"  if (matchError) throw matchError; else if ({MAY_READ}) return c.json({{}}, 403);", id="in an else"
    ),
    pytest.param(
        f"  let isIn = !matchError;\n  if (matches) isIn = true;\n  if ({MAY_READ}) isIn = false;\n"
        "  if (!isIn) return c.json({}, 403);",
        id="in a flag",
    ),
    pytest.param(
        f"  {{\n    if ({MAY_READ}) return c.json({{}}, 403);\n    matches?.length;\n  }}", id="in a block"
    ),
    pytest.param("  if (matchError || !quotaLeft(payload)) return c.json({}, 429);", id="without a wait"),
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_is_not_stepped_over_with_the_matches(tmp_path: Path, check: str) -> None:
    first = "  if (matchError) throw new Error(matchError.message);\n"
    with pytest.raises(patching.PlacesError, match="a statement of its own"):
        planned(tmp_path, (first, f"{check}\n"))
    apart = f"{first}  if ({MAY_READ}) return c.json({{}}, 403);\n"
    text = planned(tmp_path, (first, apart)).patched
    assert f"\n  if ({MAY_READ})" in text
    assert "goesOn" not in text[: text.index(f"  if ({MAY_READ})")].splitlines()[-1]


def test_a_name_that_is_shadowed_is_another_one(tmp_path: Path) -> None:
    first = "  if (matchError) throw new Error(matchError.message);\n"
    check = "  { const matches = await mayRead(payload); if (!matches) return c.json({}, 403); }\n"
    text = planned(tmp_path, (first, f"{first}{check}")).patched
    assert "goesOn" not in text[: text.index("  { const matches")].splitlines()[-1]


def test_a_generator_of_the_copys_is_left_as_it_is(tmp_path: Path) -> None:
    first = "  if (matchError) throw new Error(matchError.message);\n"
    pairs = "  function* pairs() { for (const match of matches) yield match.id; }\n"
    text = planned(tmp_path, (first, first + pairs)).patched
    assert "else /* ranked-ledger:end */\n  function*" not in text


def test_what_only_the_vector_policy_has_is_named_where_it_is_read(tmp_path: Path) -> None:
    first = "  if (matchError) throw new Error(matchError.message);\n"
    made = planned(
        tmp_path,
        (first, f"{first}  const top = matches.length;\n"),
        ("      request_id: requestId,\n      query", "      request_id: requestId,\n      top,\n      query")
        if "      request_id: requestId,\n      query" in contract()
        else ("  const requestId = crypto.randomUUID();\n", "  const requestId = `${top}`;\n"),
    )
    ((_, names),) = made.read_later
    assert names == ("top",)
    assert planned(tmp_path).read_later == ()


# --- what is seen of an edit, of a version, of a seal ---


@pytest.fixture
def applied(tmp_path: Path) -> Path:
    (tmp_path / "index.ts").write_text(contract(), encoding="utf-8")
    patching.apply(tmp_path, type_check=False)
    return tmp_path


def test_a_call_that_is_none_any_more_is_an_edit(applied: Path) -> None:
    file = applied / "index.ts"
    file.write_text(file.read_text().replace("rankedLedger.ranked() ? await", "rankedLedger.ranked ? await"))
    with pytest.raises(patching.EditedError):
        patching.plan(applied, type_check=False)


def test_a_patch_of_a_newer_version_is_left_alone(applied: Path) -> None:
    file = applied / "index.ts"
    file.write_text(file.read_text().replace("ranked-ledger:route 1:", "ranked-ledger:route 2:"))
    for command in (patching.plan, patching.revert):
        with pytest.raises(patching.PatchError, match="newer version"):
            command(applied)


@pytest.mark.parametrize("end", ["", " 1", "1 " + "0" * 64, "x y z"])
def test_a_broken_seal_of_the_module_is_an_edit(applied: Path, end: str) -> None:
    module = applied / rules.MODULE
    text = module.read_text(encoding="utf-8")
    body, _, seal = text.rpartition(folder._SEAL)
    for broken in (f"{body}{folder._SEAL}{end}", f"{text}export const more = 1; // {seal.split()[1]}\n"):
        module.write_text(broken, encoding="utf-8")
        with pytest.raises(patching.PatchError, match="was edited"):
            patching.plan(applied, type_check=False)


def test_the_module_and_the_marks_say_the_same_version() -> None:
    assert f'export const VERSION = "{patching.marks.VERSION}";' in rules.module_text()


def test_a_file_that_formatters_pass_by_is_parsed_all_the_same() -> None:
    assert deno.parses("// deno-fmt-ignore-file\nf(1,, 2);\n", ".ts") is False


def test_a_link_that_leads_nowhere_is_passed_by(applied: Path) -> None:
    (applied / "gone.ts").symlink_to(applied / "nothing.ts")
    assert patching.plan(applied, type_check=False).state == "current"


def test_looking_makes_no_folder_of_packages(tmp_path: Path) -> None:
    (tmp_path / "deno.json").write_text('{ "nodeModulesDir": "auto" }')
    (tmp_path / "index.ts").write_text(contract(), encoding="utf-8")
    patching.plan(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["deno.json", "index.ts"]


# --- what is answered ---


def test_a_ranked_recall_stays_in_the_workspace_that_the_copy_says(
    project: StackInfo, embeddings: str, tmp_path: Path, workspace: str
) -> None:
    other = f"{workspace}-other"
    with rig.running(patched(tmp_path, *OWN_WORKSPACE), project, embeddings) as function:
        (own,) = ids(write(function, workspace, QUEUE))
        write(function, other, QUEUE)
        for asked in (workspace, other):
            sent = question(asked, "job queue")
            answer = function.http.post("/recall", json=sent, headers={"x-tenant": workspace})
            assert ids(answer.json()) == [own]
        nobody = function.http.post("/recall", json=question(other, "job queue"))
        assert nobody.status_code == 400


def test_a_limit_of_the_copys_own_holds(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    cut = ("pool.slice(0, payload.limits.max_items)", "pool.slice(0, Math.min(payload.limits.max_items, 2))")
    for part in range(4):
        ledger.record(f"Queue decision {part}")
    with rig.running(patched(tmp_path, cut), project, embeddings) as function:
        assert len(ids(recall(function, ledger.workspace, "queue decision"))) == 2


def test_a_check_that_fails_is_no_leave_to_review(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    guard = (
        'app.patch("/memories/:id/review", async (c) => {\n',
        'app.patch("/memories/:id/review", async (c) => {\n'
        '  if (c.req.header("x-role") !== "reviewer") throw new Error("reviewers only");\n',
    )
    old, new = ledger.record(QUEUE), ledger.record(LOGIN)
    path, sent = f"/memories/{old.memory_id}/review", {"action": "supersede", "by": str(new.memory_id)}
    with rig.running(patched(tmp_path, guard), project, embeddings) as function:
        assert function.http.patch(path, json=sent).status_code == 500
        assert ledger.get(old).lifecycle_status == "active"
        assert function.http.patch(path, json=sent, headers={"x-role": "reviewer"}).status_code == 200
        assert ledger.get(old).lifecycle_status == "superseded"


def test_a_request_of_before_is_parsed_to_what_it_was(
    project: StackInfo, embeddings: str, tmp_path: Path, workspace: str
) -> None:
    """A copy may spread what was parsed into a row, or keep it with its trace: no key comes in by itself."""
    echo = (
        "    request_id: requestId,\n    memories",
        "    request_id: requestId,\n    payload,\n    memories",
    )
    with rig.running(patched(tmp_path, echo), project, embeddings) as function:
        sent = body(workspace, query="job queue")
        answer = function.http.post("/recall", json=sent)
        assert answer.status_code == 200
        assert not {"recall_policy", "ranking", "with_hits"} & answer.json()["payload"].keys()


def test_a_ranked_request_is_one_also_where_the_code_loses_the_field(
    project: StackInfo, embeddings: str, tmp_path: Path, workspace: str
) -> None:
    lost = (
        "  const payload = recallSchema.parse(await c.req.json());\n",
        "  const { recall_policy: _, ...payload } = recallSchema.parse(await c.req.json()) as any;\n",
    )
    with rig.running(patched(tmp_path, lost), project, embeddings) as function:
        assert recall(function, workspace, "job queue")["policy"]["recall_policy"] == "ranked_ledger"
        assert "policy" not in recall(function, workspace, "job queue", recall_policy="vector")


def test_what_the_function_itself_refuses_while_it_embeds_stays_refused(
    project: StackInfo, embeddings: str, tmp_path: Path, workspace: str
) -> None:
    quota = (
        "async function embed(input: string): Promise<number[]> {\n",
        "async function embed(input: string): Promise<number[]> {\n"
        '  if (input === "too much") throw new HTTPException(403, { message: "no quota left" });\n',
    )
    with rig.running(patched(tmp_path, quota), project, embeddings) as function:
        for policy in ("vector", "ranked_ledger"):
            assert ask(function, workspace, "too much", recall_policy=policy).status_code == 403
        assert ask(function, workspace, "enough").status_code == 200


def test_an_answer_before_the_body_is_there_waits_for_nothing(
    project: StackInfo, embeddings: str, tmp_path: Path
) -> None:
    early = (
        'app.post("/recall", async (c) => {\n',
        'app.post("/recall", async (c) => {\n  if (c.req.query("ping")) return c.json({ pong: true });\n',
    )
    with rig.running(patched(tmp_path, early), project, embeddings) as function:
        address = urlsplit(function.url)
        head = (
            f"POST {address.path}/recall?ping=1 HTTP/1.1\r\nhost: x\r\nx-brain-key: {rig.ACCESS_KEY}\r\n"
            "content-length: 100\r\n\r\n{"
        )
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=20) as client:
            client.sendall(head.encode())
            assert b"200 OK" in client.recv(1000)


def test_a_decision_whose_text_the_copy_changes_keeps_what_was_said_of_it(
    project: StackInfo, embeddings: str, tmp_path: Path, ledger: RankedLedger
) -> None:
    prefixed = ("        ...entry,\n", "        ...entry,\n        content: `Decided: ${entry.content}`,\n")
    with rig.running(patched(tmp_path, prefixed), project, embeddings) as function:
        answer = write(function, ledger.workspace, LOGIN, {"content": QUEUE, "rationale": "One backup"})
    assert answer["ledger"]["not_written"] == []
    assert ledger.get(ids(answer)[1]).rationale == "One backup"
    assert ledger.get(ids(answer)[0]).rationale is None
