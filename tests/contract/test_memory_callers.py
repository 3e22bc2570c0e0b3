"""Who asks the long-term memory, with which key and token: let in, or told what helps."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
import supabase

import ranked_ledger as rl
from tests.contract.company import Company, token_of
from tests.unit.sdk_drivers import Driver


def test_every_kind_of_key_lets_its_caller_in(company: Company) -> None:
    stack = company.stack
    for key in (stack.secret_key, stack.service_role_key):
        assert company.agent(key=key).remember("x").written_by is None
    for key in (stack.publishable_key, stack.anon_key, stack.secret_key, stack.service_role_key):
        made = company.agent("member", key=key).remember("x")
        assert made.written_by == company.person("member"), "the token says who acts, whatever the key"


def test_the_client_that_supabase_gives_connects(company: Company) -> None:
    token = token_of(company.stack, company.person("member"))
    public = supabase.create_client(company.stack.url, company.stack.anon_key)
    service = supabase.create_client(company.stack.url, company.stack.service_role_key)
    kind = company.agent_kind
    theirs = company.driven(kind.from_supabase(public, org=company.org, access_token=token))
    ours = company.driven(kind.from_supabase(service, org=company.org))
    assert theirs.remember("x").written_by == company.person("member")
    assert ours.remember("x").written_by is None


def test_a_bare_postgrest_takes_tokens_of_people_and_of_the_service(
    company: Company, rest_socket: str
) -> None:
    person = token_of(company.stack, company.person("member"))
    synchronous = company.agent_kind is rl.LongTermMemory
    http: Any = (
        httpx.Client(transport=httpx.HTTPTransport(uds=rest_socket))
        if synchronous
        else httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=rest_socket))
    )

    def at(kind: Any, token: str | None) -> Driver:
        made = kind.from_postgrest("http://postgrest", token=token, org=company.org, http_client=http)
        return company.driven(made)

    assert at(company.agent_kind, person).remember("x").written_by == company.person("member")
    assert not at(company.steward_kind, company.stack.service_role_key).set_organization().created
    for token in (None, company.stack.anon_key):
        with pytest.raises((rl.PermissionDeniedError, rl.AuthenticationError)):
            at(company.agent_kind, token).recall("x")
    company.steward().result(http.close() if synchronous else http.aclose())


def test_a_token_that_is_expired_or_forged_is_no_token(company: Company) -> None:
    agent = company.agent("member")
    member = company.person("member")
    expired = token_of(company.stack, member, exp=1_700_000_000)
    forged = jwt.encode({"sub": str(member), "role": "authenticated"}, "x" * 40, algorithm="HS256")
    for token in (expired, forged):
        with pytest.raises(rl.AuthenticationError, match="access token"):
            agent.with_options(access_token=token).recall("x")


def test_a_stranger_is_told_the_same_whether_the_organization_exists_or_not(company: Company) -> None:
    token = token_of(company.stack, company.new_user())
    stranger = company.agent(access_token=token, key=company.stack.publishable_key)
    told = set()
    for org in (company.org, uuid4()):
        with pytest.raises(rl.PermissionDeniedError) as caught:
            stranger.with_options(org=org).recall("x")
        told.add(str(caught.value))
    assert len(told) == 1
    with pytest.raises(rl.NotFoundError):
        company.agent(org=uuid4()).recall("x")


def test_what_only_the_service_may_do_is_refused_with_what_helps(company: Company) -> None:
    owner = company.steward("owner")
    for act in (
        lambda: owner.set_member(company.person("member"), "admin"),
        lambda: owner.map_workspace("acme"),
        owner.expire,
        owner.adopt,
        owner.set_organization,
    ):
        with pytest.raises(rl.PermissionDeniedError, match="secret key"):
            act()


def test_another_organizations_memory_is_not_there(company: Company) -> None:
    memory = company.approved("Only ours")
    elsewhere = uuid4()
    company.steward(org=elsewhere).set_organization(name="Other")
    other = company.agent(org=elsewhere)
    assert not other.recall("ours")
    for act in (lambda: other.correct(memory, "x"), lambda: other.forget(memory)):
        with pytest.raises(rl.NotFoundError):
            act()
    assert company.agent().recall("ours")[0].text == "Only ours"
