"""What a Supabase client meets at the gateway's URL."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import jwt
import psycopg
import pytest
import supabase

from ranked_ledger.stack import Stack, StackInfo, temporary_stack

USER = "3f1c0b8e-0d8a-4a52-9a0e-0a8d6a1c7a11"

# Made by the owner, who is no superuser, as a migration makes them.
SCHEMA = """
create table notes (id int primary key, owner uuid, body text);
alter table notes enable row level security;
create policy notes_select_authenticated on notes for select to authenticated
  using (owner = (select auth.uid()));
grant select on notes to anon, authenticated;
grant select, insert, update, delete on notes to service_role;
insert into notes values (1, '3f1c0b8e-0d8a-4a52-9a0e-0a8d6a1c7a11', 'mine'), (2, null, 'nobody''s');

create function whoami() returns jsonb language sql stable as $$
  select jsonb_build_object('user', current_user, 'role', auth.role(), 'uid', auth.uid(), 'jwt', auth.jwt(),
    'timeout', current_setting('statement_timeout'), 'path', current_setting('search_path'))
$$;
create function linger(seconds float8) returns int language sql volatile as
  $$ select 1 from (select pg_sleep(seconds)) as slept $$;
create function numbers(n int) returns setof int language sql stable as $$ select generate_series(1, n) $$;
create function echo(body jsonb) returns jsonb language sql immutable as $$ select body $$;
create function distance() returns float8 language sql stable as
  $$ select '[1,0]'::vector <=> '[0,1]'::vector $$;
notify pgrst, 'reload schema';
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with temporary_stack() as running:
        with psycopg.connect(running.info().db_url) as connection:
            connection.execute(SCHEMA)
        await_schema(running.info())
        yield running


@pytest.fixture(scope="module")
def info(stack: Stack) -> StackInfo:
    return stack.info()


def rpc(info: StackInfo, name: str, body: object = None, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=30) as client:
        return client.post(f"{info.url}/rest/v1/rpc/{name}", json=body or {}, headers=headers)


def await_schema(info: StackInfo) -> None:
    deadline = time.monotonic() + 10
    while rpc(info, "whoami", apikey=info.secret_key).status_code != 200:
        assert time.monotonic() < deadline, "the notification did not reload the schema"


@contextmanager
def client_with(info: StackInfo, key: str) -> Iterator[supabase.Client]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the client about its own defaults
        client = supabase.create_client(info.url, key)
        yield client
    client.postgrest.session.close()
    client.auth.close()


def user_token(info: StackInfo) -> str:
    return jwt.encode({"sub": USER, "role": "authenticated"}, info.jwt_secret, algorithm="HS256")


@pytest.mark.parametrize("kind", ["secret_key", "service_role_key"])
def test_a_supabase_client_with_a_service_key_reads_and_writes_everything(info: StackInfo, kind: str) -> None:
    with client_with(info, getattr(info, kind)) as client:
        client.table("notes").insert({"id": 10, "body": "new"}).execute()
        rows: Any = client.table("notes").select("id").order("id").execute().data
        client.table("notes").delete().eq("id", 10).execute()
        who: Any = client.rpc("whoami", {}).execute().data
    assert [row["id"] for row in rows] == [1, 2, 10]
    assert who["user"] == "service_role"


@pytest.mark.parametrize("kind", ["publishable_key", "anon_key"])
def test_a_supabase_client_with_a_public_key_is_anon(info: StackInfo, kind: str) -> None:
    with client_with(info, getattr(info, kind)) as client:
        assert client.table("notes").select("*").execute().data == []
        who: Any = client.rpc("whoami", {}).execute().data
        assert who["user"] == "anon"
        with pytest.raises(supabase.PostgrestAPIError) as refused:
            client.table("notes").insert({"id": 11}).execute()
    assert refused.value.code == "42501"


def test_a_users_own_token_passes_through_beside_a_public_key(info: StackInfo) -> None:
    headers = {"apikey": info.publishable_key, "Authorization": f"Bearer {user_token(info)}"}

    who = rpc(info, "whoami", **headers).json()
    rows = httpx.get(f"{info.url}/rest/v1/notes?select=id", headers=headers).json()

    assert (who["user"], who["role"], who["uid"]) == ("authenticated", "authenticated", USER)
    assert who["jwt"]["sub"] == USER
    assert rows == [{"id": 1}]


@pytest.mark.parametrize("kind", ["secret_key", "publishable_key"])
def test_an_opaque_key_as_bearer_alone_is_401(info: StackInfo, kind: str) -> None:
    answer = rpc(info, "whoami", Authorization=f"Bearer {getattr(info, kind)}")
    assert answer.status_code == 401
    assert answer.json()["message"] == "No API key found in request"
    assert "apikey" in answer.json()["hint"]


def test_an_opaque_key_as_bearer_beside_another_key_is_401(info: StackInfo) -> None:
    answer = rpc(info, "whoami", apikey=info.publishable_key, Authorization=f"Bearer {info.secret_key}")
    assert answer.status_code == 401
    assert answer.json()["code"] == "PGRST301"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_an_opaque_key_in_both_headers_is_exchanged(info: StackInfo, scheme: str) -> None:
    answer = rpc(info, "whoami", apikey=info.secret_key, Authorization=f"{scheme} {info.secret_key}")
    assert answer.json()["user"] == "service_role"


@pytest.mark.parametrize("key", ["sb_secret_x", "x", "", "sb_sécret"])
def test_an_unknown_key_is_401(info: StackInfo, key: str) -> None:
    answer = httpx.get(f"{info.url}/rest/v1/notes", headers={b"apikey": key.encode()})
    assert answer.status_code == 401
    assert answer.json()["message"] in ("Invalid API key", "No API key found in request")


def test_a_token_signed_with_another_secret_is_401(info: StackInfo) -> None:
    forged = jwt.encode({"role": "service_role"}, "x" * 40, algorithm="HS256")
    assert rpc(info, "whoami", apikey=info.anon_key, Authorization=f"Bearer {forged}").status_code == 401
    assert rpc(info, "whoami", apikey=forged).status_code == 401


def test_a_key_in_the_url_works_and_is_no_filter(stack: Stack, info: StackInfo) -> None:
    answer = httpx.get(f"{info.url}/rest/v1/notes?select=id&apikey={info.secret_key}&order=id")
    assert answer.json() == [{"id": 1}, {"id": 2}]
    logged = "\n".join(line for _, line in stack.logs("gateway", lines=10_000))
    assert "/rest/v1/notes" in logged
    assert info.secret_key not in logged


def test_the_query_reaches_postgrest_byte_for_byte(info: StackInfo) -> None:
    answer = httpx.get(
        f"{info.url}/rest/v1/notes?body=eq.nobody%27s&select=body,%22id%22",
        headers={"apikey": info.secret_key},
    )
    assert answer.json() == [{"body": "nobody's", "id": 2}]


@pytest.mark.parametrize(
    ("key", "timeout"), [("publishable_key", "3s"), ("secret_key", "8s"), ("service_role_key", "8s")]
)
def test_each_role_has_its_statement_timeout(info: StackInfo, key: str, timeout: str) -> None:
    assert rpc(info, "whoami", apikey=getattr(info, key)).json()["timeout"] == timeout


def test_a_users_statement_timeout_is_8_seconds(info: StackInfo) -> None:
    who = rpc(info, "whoami", apikey=info.anon_key, Authorization=f"Bearer {user_token(info)}").json()
    assert who["timeout"] == "8s"


def test_a_slow_statement_ends_at_anons_limit_and_not_at_the_services(info: StackInfo) -> None:
    with ThreadPoolExecutor(2) as both:
        anon = both.submit(rpc, info, "linger", {"seconds": 4}, apikey=info.publishable_key)
        service = both.submit(rpc, info, "linger", {"seconds": 4}, apikey=info.secret_key)
    assert (anon.result().status_code, anon.result().json()["code"]) == (500, "57014")
    assert (service.result().status_code, service.result().json()) == (200, 1)


def test_pgvector_is_found_in_the_schema_extensions(info: StackInfo) -> None:
    assert rpc(info, "distance", apikey=info.publishable_key).json() == 1
    who = rpc(info, "whoami", apikey=info.publishable_key).json()
    assert "extensions" in who["path"]


def test_a_browser_may_call_it_from_any_origin(info: StackInfo) -> None:
    asked = "apikey,authorization,content-profile,x-client-info,x-supabase-api-version"
    preflight = httpx.options(
        f"{info.url}/rest/v1/notes",
        headers={
            "Origin": "http://localhost:5173",
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": asked,
        },
    )
    answer = httpx.get(
        f"{info.url}/rest/v1/notes",
        headers={"Origin": "http://x", "apikey": info.anon_key, "Prefer": "count=exact"},
    )

    assert preflight.status_code == 200
    assert set(asked.split(",")) <= set(
        preflight.headers["access-control-allow-headers"].replace(" ", "").split(",")
    )
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    assert "Content-Range" in answer.headers["access-control-expose-headers"]
    assert answer.headers["content-range"] == "*/0"


def test_a_refusal_is_readable_in_a_browser_too(info: StackInfo) -> None:
    answer = httpx.get(f"{info.url}/rest/v1/notes", headers={"Origin": "http://x"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "*"


def test_headers_of_one_connection_are_not_passed_on(info: StackInfo) -> None:
    # PostgREST would answer 406 to a profile that it does not serve; `Connection` marks it as not for it
    headers = {"apikey": info.secret_key, "Accept-Profile": "nowhere"}
    url = f"{info.url}/rest/v1/notes"
    assert httpx.get(url, headers=headers).status_code == 406
    assert httpx.get(url, headers=headers | {"Connection": "close, Accept-Profile"}).status_code == 200


def test_a_large_body_streams_both_ways(info: StackInfo) -> None:
    body = {"body": {"text": "ä" * 3_000_000}}
    assert rpc(info, "echo", body, apikey=info.secret_key).json() == body["body"]

    def chunks() -> Iterator[bytes]:
        yield b'{"body": ['
        yield b"1," * 100_000
        yield b"1]}"

    headers = {"apikey": info.secret_key, "Content-Type": "application/json"}
    chunked = httpx.post(f"{info.url}/rest/v1/rpc/echo", content=chunks(), headers=headers)
    assert len(chunked.json()) == 100_001


def test_head_and_counts_work(info: StackInfo) -> None:
    headers = {"apikey": info.secret_key, "Prefer": "count=exact"}
    answer = httpx.head(f"{info.url}/rest/v1/notes", headers=headers)
    assert (answer.status_code, answer.headers["content-range"], answer.content) == (200, "0-1/2", b"")


def test_a_set_is_cut_at_the_hosted_limit(info: StackInfo) -> None:
    assert len(rpc(info, "numbers", {"n": 1500}, apikey=info.secret_key).json()) == 1000


def test_other_services_are_named_as_absent(info: StackInfo) -> None:
    answer = httpx.get(f"{info.url}/auth/v1/user", headers={"apikey": info.anon_key})
    assert answer.status_code == 404
    assert "/rest/v1" in answer.json()["hint"]


def test_many_requests_at_once_are_answered(info: StackInfo) -> None:
    url = f"{info.url}/rest/v1/rpc/echo"
    with (
        httpx.Client(headers={"apikey": info.secret_key}, trust_env=False, timeout=30) as client,
        ThreadPoolExecutor(40) as many,
    ):
        answers = list(many.map(lambda n: client.post(url, json={"body": n}), range(1, 200)))
    assert [answer.json() for answer in answers] == list(range(1, 200))


def test_the_gateway_listens_on_loopback_only(stack: Stack, info: StackInfo) -> None:
    import psutil

    addresses = {
        connection.laddr.ip
        for pid in stack.status().pids.values()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}
