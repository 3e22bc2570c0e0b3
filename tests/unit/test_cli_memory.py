"""`ranked-ledger memory` against answers that a test writes: what is sent, what is refused before, what is shown."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures
from ranked_ledger.cli.memory_words import moment, person, scope
from ranked_ledger.errors import ErasedTextError, InvalidArgumentError

URL = "http://memory.test"
ORG = "00000000-0000-0000-0000-00000000000a"
WHOM = "00000000-0000-0000-0000-00000000000b"
ID = "00000000-0000-0000-0000-000000000001"
SECRET, TOKEN, DIGEST = "sb_secret_test", "eyJh.eyJyb2xlIjoiYXV0aGVudGljYXRlZCJ9.c2ln", "a digest key of ours"
NASTY = "safe\x1b]0;title\x07 [bold]not markup[/bold] \u202egnp"

MEMORY: dict[str, Any] = {
    "memory_id": ID, "org_id": ORG, "subject_type": "candidate", "subject_id": WHOM, "text": NASTY, "author": "model",
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "replayed": False, "erased_before": "clear",
}  # fmt: skip
RECEIPT: dict[str, Any] = {
    "receipt_id": ID, "erased_at": "2026-01-01T00:00:00Z", "dry_run": False, "already": False,
    "counts": {"memories": 2, "decisions": 0, "newer_things": 1}, "digests": 2, "notes": ["Backups are out of reach."],
}  # fmt: skip
DRY_RUN = RECEIPT | {"receipt_id": None, "erased_at": None, "dry_run": True, "digests": 0}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SUPABASE_", "RANKED_LEDGER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")  # what is said is not broken in the middle
    monkeypatch.setenv("SUPABASE_URL", URL)
    monkeypatch.setenv("SUPABASE_SECRET_KEY", SECRET)
    monkeypatch.setenv("RANKED_LEDGER_ORG", ORG)


class Server:
    """Answers of functions, the last one of each for good, and what they were asked."""

    def __init__(self, router: respx.MockRouter) -> None:
        self._router = router
        router.post("/memory_schema_version").respond(json=1)

    def answers(self, function: str, *bodies: Any, status: int = 200) -> None:
        given = [respx.MockResponse(status, json=body) for body in bodies]
        self._router.post(f"/{function}", name=function).side_effect = [*given, *given[-1:] * 9]

    def fails(self, function: str, error: Exception) -> None:
        self._router.post(f"/{function}", name=function).side_effect = error

    def asked(self, function: str) -> list[dict[str, Any]]:
        return [json.loads(call.request.content) for call in self._router[function].calls]

    @property
    def headers(self) -> list[dict[str, str]]:
        return [dict(call.request.headers) for call in self._router.calls]


@pytest.fixture
def server(environment: None) -> Iterator[Server]:
    with respx.mock(base_url=f"{URL}/rest/v1/rpc", assert_all_called=False) as router:
        yield Server(router)


class Terminal(io.StringIO):
    """Standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


def run(*arguments: str, expect: int = 0) -> None:
    assert cli.run(["memory", *arguments]) == expect


def test_whom_a_memory_is_about() -> None:
    assert scope("workspace") == (("workspace", None), None)
    assert scope("workspace:acme") == (("workspace", None), "acme")
    assert scope(f"candidate:{WHOM}") == (person(f"candidate:{WHOM}"), None)
    assert str(person(f" user:{WHOM} ")[1]) == WHOM
    assert person(f"workspace:{WHOM}")[0] == "workspace"


@pytest.mark.parametrize("about", ["", "candidate", "candidate:", "candidate:anna", f"person:{WHOM}", WHOM])
def test_whom_nobody_can_be(about: str) -> None:
    for read in (scope, person):
        with pytest.raises(InvalidArgumentError, match="--about names nobody"):
            read(about)
    with pytest.raises(InvalidArgumentError):
        person("workspace:acme")


def test_when() -> None:
    assert moment("--expires", "2030-01-31", ahead=True) == datetime(2030, 1, 31, tzinfo=UTC)
    assert moment("--expires", "2030-01-31T10:00+02:00", ahead=True) == datetime(2030, 1, 31, 8, tzinfo=UTC)
    now = datetime.now(UTC)
    assert abs(moment("--expires", "90d", ahead=True) - now - timedelta(days=90)) < timedelta(minutes=1)
    assert abs(now - moment("--usage-before", "2w", ahead=False) - timedelta(weeks=2)) < timedelta(minutes=1)


@pytest.mark.parametrize("text", ["", "soon", "90", "-1d", "9d9", "999999w", "2030-13-01"])
def test_when_no_time_is(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--expires is no time"):
        moment("--expires", text, ahead=True)


def test_remember_sends_what_was_said(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers("remember", MEMORY)
    run("remember", "Likes tea", "--about", f"candidate:{WHOM}", "--run", "r1", "--expires", "2030-01-01")
    run(
        "remember",
        "Deploys on Mondays",
        "--about",
        "workspace:acme",
        "--on-return",
        "flag",
    )
    first, second = server.asked("remember")
    assert (first["p_org_id"], first["p_subject_type"], first["p_subject_id"]) == (ORG, "candidate", WHOM)
    assert (first["p_text"], first["p_source_run_id"]) == ("Likes tea", "r1")
    assert first["p_expires_at"].startswith("2030-01-01T00:00:00")
    assert (second["p_subject_type"], second["p_workspace_id"]) == ("workspace", "acme")
    assert second["p_on_return"] == "flag"
    assert not {"p_digest_key", "p_asserted_by", "p_author"} & {*first, *second}
    shown = capsys.readouterr().out
    assert "not reviewed" in shown
    assert "ranked-ledger memory review" in shown
    assert "[bold]not markup[/bold]" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}


def test_a_text_may_come_by_standard_input(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers("remember", MEMORY)
    server.answers("correct_memory", MEMORY | {"changed": True})
    for words in (["remember", "-", "--about", f"user:{WHOM}"], ["correct", ID, "-"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("Likes tea\n"))
        run(*words)
    assert [one["p_text"] for one in server.asked("remember") + server.asked("correct_memory")] == [
        "Likes tea\n"
    ] * 2


def test_an_erased_text_is_refused_and_a_flagged_one_said(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_DIGEST_KEY", DIGEST)
    server.answers("remember", MEMORY | {"erased_before": "flagged"})
    run("remember", "x", "--about", f"user:{WHOM}")
    assert "erased for this person before" in capsys.readouterr().out
    assert server.asked("remember")[0]["p_digest_key"] == DIGEST
    server.answers(
        "remember", {"code": "RL476", "message": "The text was erased.", "hint": "p_on_return"}, status=400
    )
    run("remember", "x", "--about", f"user:{WHOM}", expect=failures.REFUSED)
    assert "Next: --on-return" in capsys.readouterr().err
    assert failures.exit_code(ErasedTextError("no")) == failures.REFUSED


def test_a_persons_token_goes_with_the_publishable_key(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("SUPABASE_PUBLISHABLE_KEY", "sb_publishable_test")
    server.answers("review_memory", MEMORY | {"changed": True})
    run("review", ID, "--approve", "--instruction", "--note", "asked them")
    assert {(one["apikey"], one["authorization"]) for one in server.headers} == {
        ("sb_publishable_test", f"Bearer {TOKEN}")
    }
    (asked,) = server.asked("review_memory")
    assert (asked["p_outcome"], asked["p_can_use_as_instruction"]) == ("approved", True)
    assert "p_reviewer" not in asked
    server.answers("review_memory", {"code": "PGRST301", "message": "JWT expired"}, status=401)
    run("review", ID, "--reject", "--json", expect=failures.NO_RIGHT)
    shown = capsys.readouterr()
    assert TOKEN not in shown.out + shown.err


def test_recall_sends_its_options_and_shows_who_said_it(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = {
        "rank": 1, "memory_id": ID, "text": NASTY, "subject_type": "candidate", "subject_id": WHOM, "author": "person",
        "grade": "asserted", "created_at": "2026-01-01T00:00:00Z", "age_days": 3.2, "relevance": 0.5,
        "relevance_source": "fts", "recency": 0.9, "score": 0.6, "line": "- a line",
    }  # fmt: skip
    answer = {
        "recall_id": ID, "hits": [hit], "shortened": [], "dropped": [WHOM], "recorded": False, "hint": None, "arguments": {},
    }  # fmt: skip
    server.answers("recall_memories", answer)
    words = [
        "tea",
        "--about",
        f"candidate:{WHOM}",
        "-n",
        "3",
        "--unreviewed",
        "--half-life",
        "7",
        "--relevance",
        "1",
    ]
    run("recall", *words, "--recency", "0", "--min-relevance", "0.1", "--max-tokens", "500", "--run", "r1")
    (asked,) = server.asked("recall_memories")
    assert asked == {
        "p_org_id": ORG, "p_query": "tea", "p_subject_type": "candidate", "p_subject_id": WHOM, "p_match_count": 3,
        "p_half_life_days": 7.0, "p_w_similarity": 1.0, "p_w_recency": 0.0, "p_min_relevance": 0.1,
        "p_include_unreviewed": True, "p_run_id": "r1", "p_max_tokens": 500,
    }  # fmt: skip
    shown = capsys.readouterr().out
    for said in ("person", "asserted", "3 d", "0.600", ID, "1 left out", "could not be written down"):
        assert said in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    run("recall", "tea", "--prompt")
    prompt = capsys.readouterr()
    assert prompt.out.startswith("<memories-")
    assert "left out" in prompt.err
    run("recall", "tea", "--prompt", "--json")
    prompt = capsys.readouterr()
    assert "- a line" in json.loads(prompt.out)["prompt"]
    assert prompt.err == ""


def test_an_empty_recall_says_why(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    hint = "3 memories wait for a review: p_include_unreviewed shows them, review_memory approves them."
    empty = {"recall_id": ID, "hits": [], "shortened": [], "dropped": [], "recorded": True, "arguments": {}}
    server.answers("recall_memories", empty | {"hint": hint}, empty)
    run("recall")
    shown = " ".join(capsys.readouterr().out.split())
    assert "--unreviewed shows them, `ranked-ledger memory review` approves them" in shown
    run("recall")
    assert capsys.readouterr().out == "Nothing is remembered.\n"


def test_what_waits_is_listed_over_pages(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = {
        "subject_type": "workspace",
        "subject_id": None,
        "workspace_id": NASTY,
        "source_run_id": NASTY,
    }
    page = {"memories": [MEMORY | workspace], "pending": 3}
    server.answers("pending_reviews", page | {"next": {"id": ID}}, page | {"next": {"id": WHOM}})
    run("review", "-n", "2")
    assert [one.get("p_after") for one in server.asked("pending_reviews")] == [None, {"id": ID}]
    shown = capsys.readouterr().out
    assert "3 memories wait for a review. -n shows more." in shown
    assert "--evidence-only" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    server.answers("pending_reviews", {"memories": [], "pending": 0, "next": None})
    run("review")
    assert capsys.readouterr().out == "Nothing waits for a review.\n"
    run("review", "--json")
    assert json.loads(capsys.readouterr().out) == {"memories": [], "pending": 0}


@pytest.mark.parametrize(
    "arguments",
    [
        ["review", "--approve"],
        ["review", ID],
        ["review", ID, "--approve", "--reject"],
        ["review", ID, "--reject", "--instruction"],
        ["remember", "x", "--about", "candidate:anna"],
        ["remember", "x", "--about", "workspace", "--expires", "soon"],
        ["remember", " ", "--about", "workspace"],
        ["erase", "--about", "workspace:acme", "--yes"],
        ["erase", "--about", f"user:{WHOM}", "--containing", "short", "--yes"],
        ["erase", "--about", f"user:{WHOM}", "--containing-file", "/does/not/exist", "--yes"],
        ["expire", "--usage-before", "then"],
        ["org", "set"],
        ["org", "create", "Acme", "--id", "acme"],
        ["member", "add", WHOM, "--role", "king"],
        ["usage", "no-uuid"],
    ],
)
def test_wrong_usage_sends_nothing(
    server: Server, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(*arguments, expect=failures.USAGE)
    assert capsys.readouterr().err.startswith("Error: ")
    assert server.headers == []


def test_an_organization_is_wanted(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RANKED_LEDGER_ORG")
    run("recall", "x", expect=failures.USAGE)
    assert "--org" in capsys.readouterr().err


def test_forget_wants_the_id_again(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers(
        "forget_memory", {"memory_id": ID, "forgotten_at": "2026-01-01T00:00:00Z", "already": False}
    )
    run("forget", ID, expect=failures.REFUSED)
    assert "--yes" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal(f"{WHOM}\n"))
    run("forget", ID, expect=failures.REFUSED)
    assert server.headers == []
    monkeypatch.setattr(sys, "stdin", Terminal(f"{ID}\n"))
    run("forget", ID, "--note", "wrong person")
    assert server.asked("forget_memory") == [{"p_org_id": ORG, "p_memory_id": ID, "p_note": "wrong person"}]
    run("forget", ID, "--yes")


def test_erase_refuses_where_nobody_can_be_asked(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    run("erase", "--about", f"candidate:{WHOM}", expect=failures.REFUSED)
    said = capsys.readouterr().err
    assert "--dry-run" in said
    assert "--yes" in said
    assert server.headers == []


def test_erase_shows_what_it_would_do_and_wants_the_subject_again(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers("erase_subject", DRY_RUN, DRY_RUN, RECEIPT)
    about = ["erase", "--about", f"candidate:{WHOM}"]
    monkeypatch.setattr(sys, "stdin", Terminal(f"{WHOM}\n"))
    run(*about, expect=failures.REFUSED)
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "would empty or delete" in refused.err
    assert "nothing was erased" in refused.err
    monkeypatch.setattr(sys, "stdin", Terminal(f"candidate:{WHOM}\n"))
    run(*about, "--json")
    done = capsys.readouterr()
    assert "2 memories" in done.err
    assert json.loads(done.out)["receipt_id"] == ID
    assert [one.get("p_dry_run") for one in server.asked("erase_subject")] == [True, True, None]


def test_erase_with_a_yes_prints_the_receipt(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_DIGEST_KEY", DIGEST)
    strings = tmp_path / "strings.txt"
    strings.write_text("Person 4711\r\n\r\n person@example.com\n")
    server.answers("erase_subject", RECEIPT)
    words = ["--containing", "Person 4.", "--containing-file", str(strings), "--asserted-by", WHOM, "--yes"]
    run("erase", "--about", f"user:{WHOM}", *words)
    (asked,) = server.asked("erase_subject")
    assert asked == {
        "p_org_id": ORG, "p_subject_type": "user", "p_subject_id": WHOM, "p_digest_key": DIGEST, "p_asserted_by": WHOM,
        "p_also_containing": ["Person 4.", "Person 4711", " person@example.com"],
    }  # fmt: skip
    shown = capsys.readouterr()
    for said in (
        f"user:{WHOM} is erased",
        "2 memories",
        "1 newer things",
        "Backups",
        f"Receipt {ID}",
        "2 keyed digests",
    ):
        assert said in shown.out
    assert DIGEST not in shown.out + shown.err
    assert "0 decisions" not in shown.out


def test_an_erasure_whose_answer_is_lost_says_where_to_look(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fails("erase_subject", httpx.ReadError("reset"))
    run("erase", "--about", f"candidate:{WHOM}", "--yes", expect=failures.NO_ANSWER)
    assert f"ranked-ledger memory subject-access --about candidate:{WHOM}" in capsys.readouterr().err
    assert len(server.asked("erase_subject")) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["map", "acme"],
        ["attribute", ID, "--about", f"user:{WHOM}"],
        ["expire"],
        ["adopt"],
        ["org", "create", "Acme"],
        ["member", "add", WHOM],
    ],
)
def test_what_the_secret_key_alone_may_do_is_not_tried_as_a_person(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_ACCESS_TOKEN", TOKEN)
    run(*arguments, expect=failures.USAGE)
    said = capsys.readouterr().err
    assert "env -u RANKED_LEDGER_ACCESS_TOKEN" in said
    assert TOKEN not in said
    assert server.headers == []


def test_a_dry_run_asks_nobody(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers("erase_subject", DRY_RUN, DRY_RUN | {"counts": {"memories": 0}, "notes": []})
    run("erase", "--about", f"candidate:{WHOM}", "--dry-run")
    assert "would empty or delete" in capsys.readouterr().out
    run("erase", "--about", f"candidate:{WHOM}", "--dry-run")
    assert capsys.readouterr().out == f"Nothing is held about candidate:{WHOM}.\n"


def test_a_second_erasure_and_one_of_a_stranger_say_so(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = {"counts": {"memories": 0}, "digests": 0, "notes": []}
    server.answers(
        "erase_subject", RECEIPT | nothing | {"already": True}, RECEIPT | nothing | {"receipt_id": None}
    )
    run("erase", "--about", f"candidate:{WHOM}", "--yes")
    assert "erased before; nothing was left" in capsys.readouterr().out
    run("erase", "--about", f"candidate:{WHOM}", "--yes")
    assert "Nothing is held about" in capsys.readouterr().out


def test_subject_access_goes_to_a_new_file_for_ones_own_eyes(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"subject": {"type": "candidate", "id": WHOM}, "memories": [{"text": NASTY}], "notes": ["One."]}
    server.answers("subject_access", held)
    about, file = ["subject-access", "--about", f"candidate:{WHOM}"], tmp_path / "held.txt"
    run(*about)
    shown = capsys.readouterr().out
    assert "Everything held about candidate" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    run(*about, "--json")
    assert json.loads(capsys.readouterr().out) == held
    run(*about, "--output", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text(encoding="utf-8") == shown
    capsys.readouterr()
    run(*about, "--output", str(file), expect=failures.USAGE)
    assert "is there already" in capsys.readouterr().err
    run(*about, "--output", str(tmp_path / "no" / "folder"), expect=failures.USAGE)
    run(*about, "--json", "--output", str(tmp_path / "held.json"))
    assert json.loads((tmp_path / "held.json").read_text(encoding="utf-8")) == held
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "held.json")}


def test_sweeping_goes_on_until_nothing_is_more(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    full = {"expired": 2, "recalls_deleted": 1, "more": True}
    server.answers("expire_memories", full, full, full | {"more": False})
    run("expire", "--batch", "2", "--usage-before", "2026-01-01")
    assert "6 memories deleted. 3 recalls from before 2026-01-01" in capsys.readouterr().out
    assert {one["p_limit"] for one in server.asked("expire_memories")} == {2}
    assert "p_org_id" not in server.asked("expire_memories")[0]
    run("expire", "--json")
    assert json.loads(capsys.readouterr().out) == {"expired": 2, "recalls_deleted": 1}


def test_adopting_goes_on_page_by_page_and_says_what_was_left_out(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    page = {"adopted": 2, "present": 1, "skipped": [{"id": WHOM, "reason": "no subject"}], "skipped_total": 1}
    server.answers("adopt_memories", page | {"next": ID}, page | {"next": None, "skipped_total": 2})
    run("adopt", "--dry-run")
    assert [one.get("p_after") for one in server.asked("adopt_memories")] == [None, ID]
    assert all(one["p_dry_run"] for one in server.asked("adopt_memories"))
    shown = capsys.readouterr().out
    for said in (
        "4 memories would be adopted; 2 are here already",
        "3 rows would be left out",
        "no subject",
        "1 more",
    ):
        assert said in shown
    server.answers("adopt_memories", page | {"next": None})
    run("adopt", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert (answer["adopted"], answer["skipped_total"], answer["dry_run"]) == (2, 1, False)


def test_organizations_members_workspaces_and_decisions(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"org_id": ORG, "name": "Acme", "allow_asserted": False, "created": True}
    server.answers("set_organization", made, made | {"allow_asserted": True})
    run("org", "create", "Acme")
    run("org", "set", "--allow-asserted")
    first, second = server.asked("set_organization")
    assert (first["p_name"], first["p_org_id"] != ORG) == ("Acme", True)
    assert second == {"p_org_id": ORG, "p_allow_asserted": True}
    member = {"org_id": ORG, "user_id": WHOM, "role": "admin", "changed": True}
    server.answers("set_member", member, member | {"role": None}, member | {"role": None, "changed": False})
    run("member", "add", WHOM, "--role", "admin")
    run("member", "remove", WHOM)
    run("member", "remove", WHOM)
    assert [one["p_role"] for one in server.asked("set_member")] == ["admin", None, None]
    mapped = {"workspace_id": "acme", "org_id": ORG, "changed": True, "attributions_lost": 2}
    server.answers(
        "map_workspace", mapped, mapped | {"org_id": None, "changed": False, "attributions_lost": 0}
    )
    run("map", "acme")
    run("map", "acme", "--remove")
    assert [one["p_org_id"] for one in server.asked("map_workspace")] == [ORG, None]
    attributed = {"memory_id": ID, "subject_type": "candidate", "subject_id": WHOM, "changed": True}
    server.answers("attribute_decision", attributed, attributed | {"changed": False})
    run("attribute", ID, "--about", f"candidate:{WHOM}")
    run("attribute", ID, "--about", f"candidate:{WHOM}", "--remove")
    shown = capsys.readouterr().out
    for said in (
        "may not name its members", "may name its members", f"{WHOM} is admin of", "is no member", "was already no member",
        "2 attributions are lost", "acme belonged already to no organization", f"{ID} is about candidate:{WHOM}",
        "was not about",
    ):  # fmt: skip
        assert said in shown


def test_what_a_member_said_is_asserted(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers("remember", MEMORY | {"author": "person", "grade": "asserted", "asserted_by": WHOM})
    run("assert", "I start in May", "--about", f"candidate:{WHOM}", "--asserted-by", WHOM)
    (asked,) = server.asked("remember")
    assert (asked["p_author"], asked["p_asserted_by"]) == ("person", WHOM)
    assert "by a person, asserted" in capsys.readouterr().out
    refusal = {
        "code": "42501",
        "message": "Not allowed.",
        "hint": "Allow it: set_organization with p_allow_asserted.",
    }
    server.answers("remember", refusal, status=403)
    run(
        "assert",
        "I start in May",
        "--about",
        f"candidate:{WHOM}",
        "--asserted-by",
        WHOM,
        expect=failures.NO_RIGHT,
    )
    assert "`ranked-ledger memory org` with --allow-asserted" in capsys.readouterr().err


def test_with_a_token_a_person_speaks_for_themself(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_ACCESS_TOKEN", "a.b.c")
    server.answers("remember", MEMORY | {"author": "person", "grade": "verified", "written_by": WHOM})
    run("assert", "I start in May", "--about", f"candidate:{WHOM}")
    (asked,) = server.asked("remember")
    assert asked["p_author"] == "person"
    assert "p_asserted_by" not in asked
    assert f"candidate:{WHOM}, by a person\n" in capsys.readouterr().out


def test_who_has_read_a_memory(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    read = {
        "recall_id": ID,
        "run_id": NASTY,
        "recalled_by": None,
        "at": "2026-01-01T00:00:00Z",
        "rank": 1,
        "score": 0.5,
    }
    server.answers(
        "memory_usage", {"memory_id": ID, "reads": 3, "runs": [read, read | {"recalled_by": WHOM}]}
    )
    run("usage", ID, "-n", "2")
    shown = capsys.readouterr().out
    for said in ("the service", WHOM, "The newest 2 of 3"):
        assert said in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    server.answers("memory_usage", {"memory_id": ID, "reads": 0, "runs": []})
    run("usage", ID)
    assert capsys.readouterr().out == "No recall has returned it yet.\n"


def test_a_store_that_is_not_installed(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers("recall_memories", {"code": "PGRST202", "message": "no such function"}, status=404)
    run("recall", "x", expect=failures.NOT_INSTALLED)
    assert "ranked-ledger init --long-term-memory" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["80", "120"])
def test_ids_stay_whole_on_any_terminal(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    long = MEMORY | {"text": "word " * 60, "source_run_id": "run " * 40, "subject_id": WHOM}
    server.answers("pending_reviews", {"memories": [long], "pending": 1, "next": None})
    run("review")
    shown = capsys.readouterr().out
    assert ID in shown
    assert f"candidate:{WHOM}" in shown
    assert max(map(len, shown.splitlines())) <= int(columns)
