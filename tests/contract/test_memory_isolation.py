"""Who may do what, through the gateway and PostgREST: every caller against every RPC, and one organization against another."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import jwt
import psycopg
import pytest

from ranked_ledger.stack import StackInfo
from tests.contract.company import token_of

OK = "ok"
NO = "42501"
BAD_TOKEN = "PGRST301"
NO_KEY = "no key"

PEOPLE = ("member", "admin", "owner", "subject", "stranger", "owner of another", "admin of another")
CALLERS = ("no key", "anon", *PEOPLE, "service", "expired", "forged", "of another project", "custom role")


def _row(*allowed: str, refused: str = NO) -> dict[str, str]:
    """The outcome of each caller: allowed, a token that is none, or refused."""
    outcomes = dict.fromkeys(CALLERS, refused) | dict.fromkeys(allowed, OK)
    return outcomes | {
        "no key": NO_KEY,
        "expired": BAD_TOKEN,
        "forged": BAD_TOKEN,
        "of another project": BAD_TOKEN,
        # of which authenticator is no member
        "custom role": NO,
    }


EVERYBODY = ("member", "admin", "owner", "service")
MATRIX = {
    "remember": _row(*EVERYBODY),
    "recall_memories": _row(*EVERYBODY),
    "correct_memory": _row("admin", "owner", "service"),
    "forget_memory": _row("admin", "owner", "service"),
    "pending_reviews": _row("admin", "owner"),
    "review_memory": _row("admin", "owner"),
    "subject_access": _row("admin", "owner", "subject", "service"),
    "erase_subject": _row("owner", "subject", "service"),
    "memory_usage": _row("admin", "owner", "service"),
    "attribute_decision": _row("service"),
    "map_workspace": _row("service"),
    "expire_memories": _row("service"),
    # it is let in: this project's agent_memories is Open Brain's, and nothing to adopt
    "adopt_memories": _row("service") | {"service": "22023"},
    "set_organization": _row("service"),
    "set_member": _row("service"),
}
# What a new member, or the service where the organization allows it, may do besides.
OWN = {"correct_memory": OK, "forget_memory": OK}


@dataclass
class Org:
    id: str
    people: dict[str, str]
    workspace: str
    decision: str


@dataclass
class World:
    stack: StackInfo
    http: httpx.Client
    ours: Org
    theirs: Org
    subject: str
    stranger: str

    def headers(self, caller: str) -> dict[str, str]:
        if caller == "no key":
            return {}
        if caller == "service":
            return {"apikey": self.stack.secret_key}
        headers = {"apikey": self.stack.publishable_key}
        return headers if caller == "anon" else headers | {"Authorization": f"Bearer {self._token(caller)}"}

    def _token(self, caller: str) -> str:
        owner = self.ours.people["owner"]
        usual = {"sub": owner, "role": "authenticated", "exp": int(time.time()) + 600}
        match caller:
            case "expired":
                return token_of(self.stack, owner, exp=int(time.time()) - 3600)
            case "forged":
                header, _, signature = token_of(self.stack, self.stranger).split(".")
                claims = jwt.utils.base64url_encode(json.dumps(usual).encode()).decode()
                return f"{header}.{claims}.{signature}"
            case "of another project":
                return jwt.encode(usual, "the secret of another project, of 32 bytes", algorithm="HS256")
            case "custom role":
                return token_of(self.stack, owner, role="postgres")
        user = {
            "subject": self.subject,
            "stranger": self.stranger,
            "owner of another": self.theirs.people["owner"],
            "admin of another": self.theirs.people["admin"],
        }.get(caller) or self.ours.people[caller]
        return token_of(self.stack, user)

    def post(self, caller: str, function: str, **arguments: Any) -> httpx.Response:
        body = {f"p_{name}": value for name, value in arguments.items()}
        return self.http.post(
            f"{self.stack.url}/rest/v1/rpc/{function}", json=body, headers=self.headers(caller)
        )

    def must(self, caller: str, function: str, **arguments: Any) -> Any:
        response = self.post(caller, function, **arguments)
        assert response.status_code == 200, response.text
        return response.json()

    def memory(self, org: Org, caller: str = "service", **arguments: Any) -> str:
        made = self.must(caller, "remember", org_id=org.id, text=f"A memory {uuid4()}", **arguments)
        return str(made["memory_id"])

    def arguments(self, function: str, org: Org) -> dict[str, Any]:
        """A call about this organization that its owner, or else the service, could make."""
        about = {"subject_type": "user", "subject_id": self.subject}
        one = {"org_id": org.id}
        return {
            "remember": lambda: one | {"text": f"A memory {uuid4()}"},
            "recall_memories": lambda: one | {"query": "memory"},
            "correct_memory": lambda: one | {"memory_id": self.memory(org), "text": f"Otherwise {uuid4()}"},
            "forget_memory": lambda: one | {"memory_id": self.memory(org)},
            "pending_reviews": lambda: one,
            "review_memory": lambda: one | {"memory_id": self.memory(org), "outcome": "approved"},
            "subject_access": lambda: one | about,
            "erase_subject": lambda: one | about,
            "memory_usage": lambda: one | {"memory_id": self.memory(org)},
            "attribute_decision": lambda: one | about | {"memory_id": org.decision},
            "map_workspace": lambda: one | {"workspace_id": org.workspace},
            "expire_memories": dict,
            "adopt_memories": lambda: {"dry_run": True},
            "set_organization": lambda: one,
            "set_member": lambda: one | {"user_id": self.stranger, "role": None},
        }[function]()


@pytest.fixture(scope="module")
def world(stack: StackInfo) -> Iterator[World]:
    with httpx.Client(timeout=30) as http, psycopg.connect(stack.superuser_db_url, autocommit=True) as admin:

        def user() -> str:
            made = str(uuid4())
            admin.execute("insert into auth.users (id) values (%s)", (made,))
            return made

        def org() -> Org:
            made = Org(str(uuid4()), {}, f"w-{uuid4()}", "")
            service("set_organization", org_id=made.id, name="One")
            for role in ("member", "admin", "owner"):
                made.people[role] = user()
                service("set_member", org_id=made.id, user_id=made.people[role], role=role)
            service("map_workspace", org_id=made.id, workspace_id=made.workspace)
            recorded = service(
                "record_decision", workspace_id=made.workspace, content=f"Decided by {made.id} alone"
            )
            made.decision = recorded["memory_id"]
            return made

        def service(function: str, **arguments: Any) -> Any:
            body = {f"p_{name}": value for name, value in arguments.items()}
            url = f"{stack.url}/rest/v1/rpc/{function}"
            response = http.post(url, json=body, headers={"apikey": stack.secret_key})
            assert response.status_code == 200, response.text
            return response.json()

        yield World(stack, http, org(), org(), user(), user())


def outcome(response: httpx.Response) -> str:
    if response.status_code == 200:
        return OK
    answer = response.json()
    return str(answer["code"]) if "code" in answer else NO_KEY


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("function", MATRIX)
def test_each_caller_gets_what_the_table_says(world: World, function: str, caller: str) -> None:
    arguments = world.arguments(function, world.ours)
    if (function, caller) == ("review_memory", "service"):
        arguments["reviewer"] = world.ours.people["admin"]
    response = world.post(caller, function, **arguments)

    assert outcome(response) == MATRIX[function][caller], response.text
    if caller == "anon":
        assert response.status_code == 401
    elif MATRIX[function][caller] == NO:
        assert response.status_code == 403


REFUSED = [
    (function, caller)
    for function, outcomes in MATRIX.items()
    for caller, expected in outcomes.items()
    if caller != "service" and expected != OK and function not in ("expire_memories", "adopt_memories")
]


@pytest.mark.parametrize(("function", "caller"), REFUSED)
def test_a_refusal_does_not_tell_whether_the_thing_exists(world: World, function: str, caller: str) -> None:
    here = world.arguments(function, world.ours)
    nowhere = {
        name: str(uuid4()) if name in ("org_id", "memory_id", "workspace_id") else value
        for name, value in here.items()
    }
    if caller == "member" and function in OWN:
        nowhere["org_id"] = here["org_id"]  # a member sees in recalls that a colleague's memory exists
        assert outcome(world.post(caller, function, **nowhere)) == "RL404"
        return

    first, second = world.post(caller, function, **here), world.post(caller, function, **nowhere)

    assert (first.status_code, first.json()) == (second.status_code, second.json())


@pytest.mark.parametrize("function", OWN)
def test_a_member_changes_what_they_wrote_themself(world: World, function: str) -> None:
    arguments = world.arguments(function, world.ours)
    arguments["memory_id"] = world.memory(world.ours, "member", author="person")
    assert outcome(world.post("member", function, **arguments)) == OK


@pytest.mark.parametrize("function", ["pending_reviews", "review_memory"])
def test_the_service_reviews_only_where_the_organization_allows_it(world: World, function: str) -> None:
    arguments = world.arguments(function, world.theirs)
    if function == "review_memory":
        arguments["reviewer"] = world.theirs.people["admin"]
    assert outcome(world.post("service", function, **arguments)) == NO
    world.must("service", "set_organization", org_id=world.theirs.id, allow_asserted=True)
    try:
        answer = world.must("service", function, **arguments)
    finally:
        world.must("service", "set_organization", org_id=world.theirs.id, allow_asserted=False)
    if function == "review_memory":
        assert (answer["review_grade"], answer["can_use_as_instruction"]) == ("asserted", False)


@pytest.mark.parametrize("function", ["correct_memory", "forget_memory", "review_memory", "memory_usage"])
@pytest.mark.parametrize("caller", ["owner of another", "admin of another"])
def test_a_memory_of_another_organization_does_not_exist(world: World, function: str, caller: str) -> None:
    arguments = world.arguments(function, world.ours) | {"org_id": world.theirs.id}
    first = world.post(caller, function, **arguments)
    second = world.post(caller, function, **(arguments | {"memory_id": str(uuid4())}))
    assert outcome(first) == outcome(second) == "RL404"
    assert first.json()["message"].replace(arguments["memory_id"], "") == second.json()["message"].replace(
        second.json()["message"].split()[4], ""
    )


def test_the_owner_of_another_organization_reads_and_erases_no_decision_of_ours(world: World) -> None:
    about = {"subject_type": "candidate", "subject_id": str(uuid4())}
    words = f"Zanzibar {uuid4()}"
    decisions = [
        world.must(
            "service", "record_decision", workspace_id=world.ours.workspace, content=f"{words} {number}"
        )
        for number in range(3)
    ]
    for one in decisions:
        world.must("service", "attribute_decision", org_id=world.ours.id, memory_id=one["memory_id"], **about)
    world.must("service", "recall_decisions", workspace_id=world.ours.workspace, query=words)
    world.must("service", "remember", org_id=world.ours.id, text=f"{words} too", **about)

    def ours() -> Any:
        shown = world.must("owner", "subject_access", org_id=world.ours.id, **about)
        return {name: value for name, value in shown.items() if name != "as_of"}

    before = ours()
    assert (len(before["decisions"]), len(before["memories"]), len(before["traces"])) == (3, 1, 1)

    shown = world.must("owner of another", "subject_access", org_id=world.theirs.id, **about)
    assert words not in json.dumps(shown)
    assert [shown[part] for part in ("memories", "decisions", "recalls", "traces")] == [[], [], [], []]
    erased = world.must(
        "owner of another", "erase_subject", org_id=world.theirs.id, also_containing=[words], **about
    )
    assert set(erased["counts"].values()) == {0}
    for function in ("subject_access", "erase_subject"):
        assert outcome(world.post("owner of another", function, org_id=world.ours.id, **about)) == NO
    for one in decisions:
        for function, arguments in (
            ("attribute_decision", about),
            ("get_decision", {"workspace_id": world.ours.workspace}),
            ("forget_decision", {"workspace_id": world.ours.workspace}),
        ):
            named = {"memory_id": one["memory_id"], **arguments}
            if function == "attribute_decision":
                named["org_id"] = world.theirs.id
            assert outcome(world.post("owner of another", function, **named)) == NO
        # nor through the service, under the wrong organization
        refused = world.post(
            "service", "attribute_decision", org_id=world.theirs.id, memory_id=one["memory_id"], **about
        )
        assert outcome(refused) == "RL404"

    assert ours() == before


def test_a_person_reads_about_themself_and_nobody_else(world: World) -> None:
    other = world.ours.people["member"]
    assert (
        outcome(
            world.post(
                "subject", "subject_access", org_id=world.ours.id, subject_type="user", subject_id=other
            )
        )
        == NO
    )
    for org in (
        world.ours.id,
        str(uuid4()),
    ):  # an organization that does not exist holds nothing about them either
        shown = world.must(
            "stranger", "subject_access", org_id=org, subject_type="user", subject_id=world.stranger
        )
        assert [shown[part] for part in ("memories", "decisions", "recalls", "traces", "erasures")] == [
            []
        ] * 5


@pytest.mark.parametrize("table", ["agent_memories", "members", "recalls", "erasures", "memory_events"])
@pytest.mark.parametrize("caller", ["anon", "owner", "service"])
def test_no_table_of_the_store_is_reached_through_the_api(world: World, table: str, caller: str) -> None:
    for profile in ("long_term_memory", "public"):
        response = world.http.get(
            f"{world.stack.url}/rest/v1/{table}",
            headers=world.headers(caller) | {"Accept-Profile": profile},
        )
        if (table, profile, caller) == ("agent_memories", "public", "service"):
            continue  # the host's own table of that name
        assert response.status_code in (401, 403, 404, 406), response.text
