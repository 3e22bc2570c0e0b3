"""What the clients of the long-term memory send, give and refuse, over written answers. Each runs sync and async."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
import respx

import ranked_ledger as rl
from tests.unit import memory_answers as answers
from tests.unit.conftest import KEY, ORG, MakeDriver
from tests.unit.sdk_answers import error
from tests.unit.sdk_drivers import Driver
from tests.unit.test_settings import jwt

CANDIDATE = ("candidate", answers.CANDIDATE)
ABOUT = {"p_subject_type": "candidate", "p_subject_id": str(answers.CANDIDATE)}
TOKEN = jwt("authenticated")


def sent(route: respx.Route) -> list[dict[str, Any]]:
    return [json.loads(call.request.content) for call in route.calls]


class Lengths:
    model = "lengths"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


class Broken:
    model = "broken"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise OSError("no model here")


AGENT = [
    ("remember", ("x",), {"idempotency_key": "k"}, answers.remembered(), {"p_text": "x", "p_idempotency_key": "k"}),
    ("recall", ("x",), {}, answers.recall(), {"p_query": "x", "p_match_count": 10}),
    ("correct", (answers.MEMORY, "y"), {"note": "n"}, answers.memory(changed=True),
     {"p_memory_id": str(answers.MEMORY), "p_text": "y", "p_note": "n"}),
    ("forget", (answers.MEMORY,), {}, {"memory_id": str(answers.MEMORY), "forgotten_at": answers.NOW, "already": False},
     {"p_memory_id": str(answers.MEMORY)}),
]  # fmt: skip
STEWARD = [
    ("remember", ("x",), {"asserted_by": answers.PERSON, "idempotency_key": "k"}, answers.remembered(),
     {"p_text": "x", "p_author": "person", "p_asserted_by": str(answers.PERSON), "p_idempotency_key": "k"}),
    ("remember", ("x",), {"idempotency_key": "k"}, answers.remembered(),
     {"p_text": "x", "p_author": "person", "p_idempotency_key": "k"}),
    ("review", (answers.MEMORY, "approved"), {"can_use_as_instruction": True}, answers.memory(changed=True),
     {"p_memory_id": str(answers.MEMORY), "p_outcome": "approved", "p_can_use_as_instruction": True}),
    ("review", (answers.MEMORY, "rejected"), {"reviewer": answers.PERSON}, answers.memory(changed=True),
     {"p_memory_id": str(answers.MEMORY), "p_outcome": "rejected", "p_reviewer": str(answers.PERSON)}),
    ("subject_access", (CANDIDATE,), {}, answers.access(), ABOUT),
    ("erase", (CANDIDATE,), {"also_containing": ["Ada L."], "digest_key": "0123456789abcdef"}, answers.erasure(),
     {**ABOUT, "p_also_containing": ["Ada L."], "p_digest_key": "0123456789abcdef"}),
    ("erase", (CANDIDATE,), {"dry_run": True, "asserted_by": answers.PERSON}, answers.erasure(receipt_id=None),
     {**ABOUT, "p_dry_run": True, "p_asserted_by": str(answers.PERSON)}),
    ("usage", (answers.MEMORY,), {}, {"memory_id": str(answers.MEMORY), "reads": 0, "runs": []},
     {"p_memory_id": str(answers.MEMORY), "p_limit": 100}),
    ("attribute_decision", (answers.OTHER, CANDIDATE), {"remove": True},
     {"memory_id": str(answers.OTHER), "subject_type": "candidate", "subject_id": str(answers.CANDIDATE), "changed": True},
     {"p_memory_id": str(answers.OTHER), **ABOUT, "p_remove": True}),
    ("map_workspace", ("acme",), {}, {"workspace_id": "acme", "org_id": ORG, "changed": True, "attributions_lost": 0},
     {"p_workspace_id": "acme"}),
    ("set_organization", (), {"name": "Acme", "allow_asserted": False},
     {"org_id": ORG, "name": "Acme", "allow_asserted": False, "created": True}, {"p_name": "Acme", "p_allow_asserted": False}),
    ("set_member", (answers.PERSON, "admin"), {},
     {"org_id": ORG, "user_id": str(answers.PERSON), "role": "admin", "changed": True},
     {"p_user_id": str(answers.PERSON), "p_role": "admin"}),
]  # fmt: skip
FUNCTIONS = {
    "remember": "remember",
    "recall": "recall_memories",
    "correct": "correct_memory",
    "forget": "forget_memory",
    "review": "review_memory",
    "erase": "erase_subject",
    "usage": "memory_usage",
    "expire": "expire_memories",
    "adopt": "adopt_memories",
}


def asked(
    server: respx.MockRouter, driver: Driver, case: tuple[str, tuple[Any, ...], dict[str, Any], Any, Any]
) -> Any:
    verb, arguments, named, answer, body = case
    route = server.post(f"/{FUNCTIONS.get(verb, verb)}").respond(json=answer)
    found = getattr(driver, verb)(*arguments, **named)
    assert sent(route) == [{"p_org_id": ORG, **body}]
    return found


@pytest.mark.parametrize("case", AGENT, ids=lambda case: case[0])
def test_an_agents_verb_calls_its_function_in_its_organization(
    server: respx.MockRouter, memory: Driver, case: Any
) -> None:
    assert asked(server, memory, case) is not None


@pytest.mark.parametrize("case", STEWARD, ids=lambda case: case[0])
def test_a_stewards_verb_calls_its_function_in_its_organization(
    server: respx.MockRouter, steward: Driver, case: Any
) -> None:
    assert asked(server, steward, case) is not None


def test_upkeep_is_of_every_organization(server: respx.MockRouter, steward: Driver) -> None:
    expire = server.post("/expire_memories").respond(json={"expired": 2, "recalls_deleted": 1, "more": True})
    skipped = {"id": "row-3", "reason": "no text"}
    adopt = server.post("/adopt_memories").respond(
        json={
            "adopted": 1,
            "present": 0,
            "skipped": [skipped],
            "skipped_total": 1,
            "next": str(answers.OTHER),
        }
    )
    done = steward.expire(limit=2, usage_before=datetime(2026, 1, 1, tzinfo=UTC))
    assert (done.expired, done.recalls_deleted, done.more) == (2, 1, True)
    page = steward.adopt(after=answers.MEMORY, dry_run=True)
    assert (page.adopted, page.skipped[0].reason, page.next) == (1, "no text", answers.OTHER)
    assert sent(expire) == [{"p_limit": 2, "p_usage_before": "2026-01-01T00:00:00+00:00"}]
    assert sent(adopt) == [{"p_limit": 500, "p_after": str(answers.MEMORY), "p_dry_run": True}]


def test_each_memory_is_written_with_a_key_of_its_own_and_repeated_with_it(
    server: respx.MockRouter, memory: Driver, waits: list[float]
) -> None:
    route = server.post("/remember")
    route.side_effect = [
        httpx.ReadTimeout("slow"),
        httpx.Response(200, json=answers.remembered(replayed=True)),
        httpx.Response(200, json=answers.remembered()),
    ]
    assert memory.remember("x").replayed
    memory.remember("x")
    keys = [UUID(body["p_idempotency_key"]) for body in sent(route)]
    assert keys[0] == keys[1] != keys[2]
    assert len(waits) == 1


def test_an_erasure_whose_answer_was_lost_is_not_repeated(
    server: respx.MockRouter, steward: Driver, waits: list[float]
) -> None:
    route = server.post("/erase_subject").mock(side_effect=httpx.ReadError("reset"))
    with pytest.raises(rl.NetworkError):
        steward.erase(CANDIDATE)
    assert route.call_count == 1
    with pytest.raises(rl.NetworkError):
        steward.erase(CANDIDATE, dry_run=True)
    assert route.call_count == 5
    assert len(waits) == 3


def test_an_erasure_that_never_began_is_repeated(server: respx.MockRouter, steward: Driver) -> None:
    route = server.post("/erase_subject")
    route.side_effect = [
        httpx.ConnectError("refused"),
        httpx.Response(500, json=error("40P01")),
        httpx.Response(200, json=answers.erasure()),
    ]
    assert steward.erase(CANDIDATE).counts["memories"] == 3


def test_what_takes_long_is_waited_for(server: respx.MockRouter, make_steward: MakeDriver) -> None:
    erase = server.post("/erase_subject").respond(json=answers.erasure())
    usage = server.post("/memory_usage").respond(json={"memory_id": str(answers.MEMORY), "reads": 0})
    steward = make_steward(timeout=0.5)
    steward.erase(CANDIDATE)
    steward.usage(answers.MEMORY)
    assert erase.calls.last.request.extensions["timeout"]["read"] == 65.0
    assert usage.calls.last.request.extensions["timeout"]["read"] == 0.5


def test_an_embedder_embeds_what_brings_no_embedding(
    server: respx.MockRouter, make_memory: MakeDriver
) -> None:
    memory = make_memory(embedder=Lengths())
    remember = server.post("/remember").respond(json=answers.remembered())
    correct = server.post("/correct_memory").respond(json=answers.memory(changed=True))
    recall = server.post("/recall_memories").respond(json=answers.recall())
    memory.remember("four")
    memory.remember("own", embedding=[1, 2], embedding_model="own")
    memory.correct(answers.MEMORY, "three")
    memory.recall("query")
    memory.recall(" ")
    memory.with_options(embedder=None).recall("query")
    assert [(body["p_embedding"], body["p_embedding_model"]) for body in sent(remember)] == [
        ("[4.0,1.0]", "lengths"),
        ("[1.0,2.0]", "own"),
    ]
    assert sent(correct)[0]["p_embedding"] == "[5.0,1.0]"
    assert [body.get("p_query_embedding") for body in sent(recall)] == ["[5.0,1.0]", None, None]
    assert sent(recall)[0]["p_embedding_model"] == "lengths"


def test_a_failing_embedder_is_an_error_or_leaves_it_to_the_words(
    server: respx.MockRouter, make_memory: MakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    route = server.post("/recall_memories").respond(json=answers.recall())
    memory = make_memory(embedder=Broken())
    for call in (
        lambda: memory.remember("x"),
        lambda: memory.recall("x"),
        lambda: memory.correct(answers.MEMORY, "x"),
    ):
        with pytest.raises(rl.EmbeddingError, match="no model here"):
            call()
    assert not route.called
    memory.with_options(on_embedding_failure="text").recall("x")
    assert "p_query_embedding" not in sent(route)[0]
    assert "no model here" in caplog.text


def test_a_recall_is_a_sequence_that_goes_into_a_prompt_as_data(
    server: respx.MockRouter, memory: Driver
) -> None:
    server.post("/recall_memories").respond(
        json=answers.recall(answers.hit(), answers.hit(rank=2, memory_id=str(answers.OTHER)), new_field=1)
    )
    recall = memory.recall("x")
    assert ([hit.rank for hit in recall], recall[1].memory_id, len(recall)) == ([1, 2], answers.OTHER, 2)
    assert (recall.recall_id, recall.recorded) == (answers.RECALL, True)
    assert json.loads(json.dumps(recall.as_dict()))["hits"][0]["review_grade"] == "verified"
    block = recall.to_prompt()
    assert answers.hit()["line"] in block
    assert block.startswith("<memories-")
    assert recall.to_prompt(max_tokens=1) == ""


def test_a_hint_of_an_empty_recall_speaks_of_the_sdk(server: respx.MockRouter, memory: Driver) -> None:
    hint = "Nothing is reviewed yet: p_include_unreviewed shows it, pending_reviews lists it."
    server.post("/recall_memories").respond(json=answers.recall(hint=hint))
    recall = memory.recall("x")
    assert not recall
    assert recall.hint == "Nothing is reviewed yet: include_unreviewed shows it, pending() lists it."
    assert recall.to_prompt() == ""


def test_what_waits_is_asked_for_as_it_is_walked(server: respx.MockRouter, steward: Driver) -> None:
    pages = [
        {
            "memories": [answers.memory(), answers.memory(memory_id=str(answers.OTHER))],
            "next": {"at": 1},
            "pending": 3,
        },
        {"memories": [answers.memory()], "next": None, "pending": 3},
    ]
    route = server.post("/pending_reviews")
    route.side_effect = [httpx.Response(200, json=page) for page in pages * 2]
    waiting = steward.pending(page_size=2)
    assert not route.called
    assert [one.memory_id for one in steward.walked(waiting)] == [
        answers.MEMORY,
        answers.OTHER,
        answers.MEMORY,
    ]
    found = steward.walked(steward.pending(page_size=2, limit=2).pages())
    assert [(len(page), page.pending, page[0].author) for page in found] == [(2, 3, "model")]
    assert sent(route) == [
        {"p_org_id": ORG, "p_limit": 2},
        {"p_org_id": ORG, "p_limit": 2, "p_after": {"at": 1}},
        {"p_org_id": ORG, "p_limit": 2},
    ]


# --- who asks ---------------------------------------------------------------------------------------------------------


def headers_of(server: respx.MockRouter, driver: Driver) -> httpx.Headers:
    route = server.post("/recall_memories").respond(json=answers.recall())
    driver.recall("x")
    return route.calls.last.request.headers


def test_a_secret_key_goes_in_apikey_only(server: respx.MockRouter, memory: Driver) -> None:
    headers = headers_of(server, memory)
    assert headers["apikey"] == KEY
    assert "authorization" not in headers


@pytest.mark.parametrize("key", [KEY, "sb_publishable_x", jwt("anon"), jwt("service_role")])
def test_a_persons_token_goes_as_bearer_beside_any_key(
    server: respx.MockRouter, make_memory: MakeDriver, key: str
) -> None:
    headers = headers_of(server, make_memory(key, access_token=TOKEN))
    assert headers["apikey"] == key
    assert headers["authorization"] == f"Bearer {TOKEN}"


def test_a_copy_may_ask_with_another_token(server: respx.MockRouter, make_memory: MakeDriver) -> None:
    memory = make_memory("sb_publishable_x", access_token=TOKEN)
    fresh = jwt("authenticated") + "x"
    assert headers_of(server, memory.with_options(access_token=fresh))["authorization"] == f"Bearer {fresh}"
    assert headers_of(server, memory)["authorization"] == f"Bearer {TOKEN}"
    other = memory.with_options(org=answers.OTHER)
    assert headers_of(server, other)["authorization"] == f"Bearer {TOKEN}"
    assert other.client.org == answers.OTHER
    assert server["memory_version"].call_count == 1


def test_neither_repr_nor_log_nor_traceback_shows_the_token(
    server: respx.MockRouter, make_memory: MakeDriver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.post("/recall_memories").mock(side_effect=httpx.ConnectError("refused"))
    memory = make_memory("sb_publishable_x", access_token=TOKEN, max_retries=0)
    with pytest.raises(rl.NetworkError) as caught:
        memory.recall("x")
    client = memory.client
    shown = (
        f"{client!r} {client._connection!r} {client._options!r} {caught.value!r} {caught.value.__cause__!r}"
    )
    ours = [entry for entry in caught.traceback if "ranked_ledger" in str(entry.path)]
    assert len(ours) >= 3
    shown += " ".join(repr(entry.frame.f_locals) for entry in ours)
    assert TOKEN not in shown + caplog.text
    assert repr(client).endswith(f"('http://ledger.test/rest/v1', org={ORG!r})")


# --- what the server refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        *((f"RL47{number}", rl.InvalidArgumentError) for number in range(1, 6)),
        ("RL476", rl.ErasedTextError),
        ("RL404", rl.NotFoundError),
        ("RL409", rl.ConflictError),
        ("RL410", rl.GoneError),
        ("22023", rl.InvalidArgumentError),
        ("0A000", rl.APIError),
        ("42501", rl.PermissionDeniedError),
    ],
)
def test_a_refusal_is_mapped_by_its_code(
    server: respx.MockRouter, memory: Driver, code: str, expected: type[rl.APIError]
) -> None:
    told = error(code, "p_text is refused", hint="forget_memory takes p_memory_id.")
    route = server.post("/remember").respond(400, json=told)
    with pytest.raises(rl.RankedLedgerError) as caught:
        memory.remember("x")
    assert type(caught.value) is expected
    assert caught.value.message == "text is refused"
    assert caught.value.hint == "forget() takes memory."
    assert route.call_count == 1


@pytest.mark.parametrize(
    "hint", [None, "Grant the required privileges to the current role with: GRANT EXECUTE ON FUNCTION ..."]
)
def test_a_refusal_of_a_right_says_what_helps_here(
    server: respx.MockRouter, steward: Driver, hint: str | None
) -> None:
    told = error("42501", "permission denied for function set_member", hint=hint)
    server.post("/set_member").respond(403, json=told)
    with pytest.raises(rl.PermissionDeniedError, match="access_token") as caught:
        steward.set_member(answers.PERSON, "admin")
    assert "ledger answers to the service role only" not in str(caught.value)
    assert "GRANT" not in str(caught.value)


def test_an_expired_token_says_so(server: respx.MockRouter, make_memory: MakeDriver) -> None:
    server["memory_version"].respond(401, json=error("PGRST301", "JWT expired"))
    with pytest.raises(rl.AuthenticationError, match="fresh access token"):
        make_memory("sb_publishable_x", access_token=TOKEN).recall("x")


def test_a_store_that_is_not_there_names_the_command(server: respx.MockRouter, memory: Driver) -> None:
    server["memory_version"].respond(404, json=error("PGRST202"))
    with pytest.raises(rl.NotInstalledError, match="init --long-term-memory"):
        memory.recall("x")


@pytest.mark.parametrize(
    ("version", "expected", "command"),
    [
        (0, rl.SchemaTooOldError, "init --long-term-memory"),
        (2, rl.SchemaTooNewError, "pip install --upgrade"),
    ],
)
def test_a_schema_that_does_not_fit_is_told_before_anything_is_called(
    server: respx.MockRouter, steward: Driver, version: int, expected: type[Exception], command: str
) -> None:
    server["memory_version"].respond(json=version)
    route = server.post("/memory_usage")
    with pytest.raises(expected, match=command) as caught:
        steward.usage(answers.MEMORY)
    assert "the long-term memory's schema" in str(caught.value)
    assert not route.called


def test_the_version_is_asked_once_of_this_store_alone(server: respx.MockRouter, memory: Driver) -> None:
    server.post("/recall_memories").respond(json=answers.recall())
    memory.recall("x")
    memory.with_options(timeout=1).recall("x")
    assert server["memory_version"].call_count == 1
    assert not server["version"].called


@pytest.mark.parametrize("answer", ["null", "[]", "3", '{"hits": 1}'])
def test_json_that_is_no_answer_is_unexpected(
    server: respx.MockRouter, memory: Driver, steward: Driver, answer: str
) -> None:
    for function in ("recall_memories", "remember", "pending_reviews"):
        server.post(f"/{function}").respond(200, text=answer)
    for call in (
        lambda: memory.recall("x"),
        lambda: memory.remember("x"),
        lambda: steward.walked(steward.pending()),
    ):
        with pytest.raises(rl.UnexpectedResponseError):
            call()


def test_another_shape_never_shows_the_memory(server: respx.MockRouter, memory: Driver) -> None:
    server.post("/recall_memories").respond(json=answers.recall(answers.hit(score="Ada Lovelace")))
    with pytest.raises(rl.UnexpectedResponseError, match="score") as caught:
        memory.recall("x")
    assert "Ada" not in str(caught.value)


# --- the surface ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [rl.LongTermMemory, rl.AsyncLongTermMemory])
def test_nothing_that_an_agent_holds_names_a_person_who_acts(kind: type) -> None:
    people = {"asserted_by", "reviewer", "reviewed_by", "written_by", "actor", "user", "member"}
    for name, method in inspect.getmembers(kind, callable):
        if not name.startswith("_"):
            assert not people & set(inspect.signature(method).parameters), name
    assert not {"review", "erase", "subject_access", "pending"} & set(dir(kind))
