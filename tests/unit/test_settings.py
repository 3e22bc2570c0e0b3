"""Where a client connects to, with which headers, and which mistakes it names before anything is sent."""

from __future__ import annotations

import base64
import json

import pytest
import supabase

from ranked_ledger import (
    AsyncLongTermMemory,
    AsyncMemorySteward,
    AsyncRankedLedger,
    ConfigurationError,
    LongTermMemory,
    MemorySteward,
    RankedLedger,
    settings,
)

URL = "https://abc.supabase.co"


def jwt(role: object) -> str:
    parts = [{"alg": "HS256"}, {"role": role}]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*coded, "c2lnbmF0dXJl"])


SERVICE = jwt("service_role")
PERSON = jwt("authenticated")
ORG = "0f000000-0000-4000-8000-00000000000f"


def test_a_new_key_goes_in_apikey_only() -> None:
    headers = settings.project(URL, "sb_secret_x").headers
    assert headers["apikey"] == "sb_secret_x"
    assert "Authorization" not in headers


def test_a_legacy_key_goes_in_both() -> None:
    headers = settings.project(URL, SERVICE).headers
    assert headers["apikey"] == SERVICE
    assert headers["Authorization"] == f"Bearer {SERVICE}"


def test_a_token_of_postgrest_goes_in_authorization_only() -> None:
    connection = settings.postgrest("http://127.0.0.1:3000/", SERVICE)
    assert connection.rest_url == "http://127.0.0.1:3000"
    assert connection.headers["Authorization"] == f"Bearer {SERVICE}"
    assert "apikey" not in connection.headers


def test_a_new_key_is_refused_by_a_bare_postgrest() -> None:
    with pytest.raises(ConfigurationError, match="means nothing to PostgREST"):
        RankedLedger.from_postgrest("http://127.0.0.1:3000", token="sb_secret_x", workspace="acme")


@pytest.mark.parametrize("key", ["sb_publishable_x", jwt("anon"), jwt("authenticated")])
def test_a_public_key_is_refused_before_anything_is_sent(key: str) -> None:
    with pytest.raises(ConfigurationError, match="secret key") as caught:
        RankedLedger(URL, key, workspace="acme")
    assert key not in str(caught.value)


@pytest.mark.parametrize("key", [jwt(None), jwt(["anon"]), "eyJ.eyJ.x", "eyJhbGciOi.%%%.x", "opaque"])
def test_a_key_that_cannot_be_read_is_left_to_the_server(key: str) -> None:
    assert settings.project(URL, key).headers["apikey"] == key


@pytest.mark.parametrize("key", ["", "  ", "a b", "schlüssel", "a\nb", None])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError):
        settings.project(URL, key)


def test_white_space_around_a_key_is_dropped() -> None:
    assert settings.project(URL, "sb_secret_x\n").headers["apikey"] == "sb_secret_x"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "abc.supabase.co",
        "ftp://x",
        "https://",
        "https://u:p@x",
        "https://x?a=1",
        "http://x:y",
        "https://a..b",
        f"https://{'a' * 64}.co",
        "https://\ud800",
        None,
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        settings.project(url, "sb_secret_x")


@pytest.mark.parametrize("url", [URL, f"{URL}/", f" {URL} ", f"{URL}/rest/v1", f"{URL}/rest/v1/"])
def test_a_url_is_taken_with_or_without_its_path(url: str) -> None:
    assert settings.project(url, "sb_secret_x").rest_url == f"{URL}/rest/v1"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (settings.URL_VARIABLE, *settings.KEY_VARIABLES, *settings.PUBLIC_KEY_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_environment_prefers_the_secret_key(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("SUPABASE_URL", URL)
    environment.setenv("SUPABASE_SERVICE_ROLE_KEY", SERVICE)
    assert settings.environment().headers["apikey"] == SERVICE
    environment.setenv("SUPABASE_SECRET_KEY", "sb_secret_x")
    assert settings.environment().headers["apikey"] == "sb_secret_x"
    with RankedLedger.from_env(workspace="acme", project="billing") as ledger:
        assert ledger.url == f"{URL}/rest/v1"
        assert (ledger.workspace, ledger.project) == ("acme", "billing")


@pytest.mark.parametrize("kind", [RankedLedger, AsyncRankedLedger])
def test_a_missing_variable_is_named(
    environment: pytest.MonkeyPatch, kind: type[RankedLedger] | type[AsyncRankedLedger]
) -> None:
    with pytest.raises(
        ConfigurationError, match=r"SUPABASE_URL and SUPABASE_SECRET_KEY or SUPABASE_SERV"
    ) as caught:
        kind.from_env(workspace="acme")
    assert "ranked-ledger stack env" in str(caught.value)
    environment.setenv("SUPABASE_URL", URL)
    environment.setenv("SUPABASE_SECRET_KEY", "")
    with pytest.raises(ConfigurationError, match="lacks SUPABASE_SECRET_KEY or"):
        kind.from_env(workspace="acme")


def test_a_supabase_client_is_read_for_url_and_key() -> None:
    client = supabase.create_client(URL, SERVICE)
    client.options.headers["Authorization"] = "Bearer somebody"
    with RankedLedger.from_supabase(client, workspace="acme") as ledger:
        assert ledger.url == f"{URL}/rest/v1"
        assert ledger._connection.headers["Authorization"] == f"Bearer {SERVICE}"


def test_something_else_is_no_supabase_client() -> None:
    with pytest.raises(ConfigurationError, match="no supabase client"):
        RankedLedger.from_supabase(object(), workspace="acme")  # type: ignore[arg-type]


def test_no_repr_shows_a_key() -> None:
    with RankedLedger(URL, "sb_secret_x", workspace="acme") as ledger:
        assert "sb_secret" not in f"{ledger!r} {ledger._connection!r} {ledger._options!r}"


@pytest.mark.parametrize(
    "named",
    [
        {"workspace": ""},
        {"project": " "},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"max_retries": -1},
        {"embedder": object()},
        {"on_embedding_failure": "ignore"},
    ],
)
def test_a_wrong_option_is_refused(named: dict) -> None:
    with pytest.raises(ValueError, match=r"workspace|project|timeout|max_retries|embedder|on_embedding"):
        RankedLedger(URL, "sb_secret_x", **{"workspace": "acme", **named})


@pytest.mark.parametrize("url", ["http://x\x00y", "http://xn--\u0661"])
def test_a_url_that_the_http_client_refuses_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError), RankedLedger(url, "sb_secret_x", workspace="acme") as ledger:
        ledger.status()


# --- the long-term memory, which people may ask too --------------------------------------------------------------------

FAMILIES = [LongTermMemory, AsyncLongTermMemory, MemorySteward, AsyncMemorySteward]


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("key", ["sb_publishable_x", jwt("anon"), PERSON])
def test_a_public_key_needs_a_persons_token_beside_it(kind: type, key: str) -> None:
    with pytest.raises(ConfigurationError, match="access_token") as caught:
        kind(URL, key, org=ORG)
    assert key not in str(caught.value)
    headers = kind(URL, key, org=ORG, access_token=f" {PERSON}\n")._connection.headers
    assert (headers["apikey"], headers["Authorization"]) == (key, f"Bearer {PERSON}")


@pytest.mark.parametrize(
    "token", ["sb_secret_x", "sb_publishable_x", SERVICE, jwt("anon"), "", "a b", None, 3]
)
def test_what_is_no_persons_token_is_refused(token: str) -> None:
    with pytest.raises(ConfigurationError, match=r"access_token|no key has") as caught:
        settings.acting(settings.people(URL, "sb_secret_x", None), token)
    assert not token or str(token) not in str(caught.value)


def test_a_token_that_cannot_be_read_is_left_to_the_server() -> None:
    assert (
        settings.people(URL, "sb_publishable_x", jwt(None)).headers["Authorization"] == f"Bearer {jwt(None)}"
    )


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_environment_gives_a_person_the_public_key(kind: type, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("SUPABASE_URL", URL)
    with pytest.raises(
        ConfigurationError, match="lacks SUPABASE_PUBLISHABLE_KEY or SUPABASE_ANON_KEY or SUPABASE_SE"
    ):
        kind.from_env(org=ORG, access_token=PERSON)
    environment.setenv("SUPABASE_SECRET_KEY", "sb_secret_x")
    environment.setenv("SUPABASE_ANON_KEY", jwt("anon"))
    assert kind.from_env(org=ORG)._connection.headers["apikey"] == "sb_secret_x"
    assert kind.from_env(org=ORG, access_token=PERSON)._connection.headers["apikey"] == jwt("anon")
    environment.setenv("SUPABASE_PUBLISHABLE_KEY", "sb_publishable_x")
    assert kind.from_env(org=ORG, access_token=PERSON)._connection.headers["apikey"] == "sb_publishable_x"


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_supabase_client_with_a_public_key_needs_a_token_too(kind: type) -> None:
    client = supabase.create_client(URL, jwt("anon"))
    with pytest.raises(ConfigurationError, match="access_token"):
        kind.from_supabase(client, org=ORG)
    headers = kind.from_supabase(client, org=ORG, access_token=PERSON)._connection.headers
    assert headers["Authorization"] == f"Bearer {PERSON}"


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_bare_postgrest_takes_anybodys_token_and_no_key(kind: type) -> None:
    for token in (PERSON, SERVICE):
        made = kind.from_postgrest("http://127.0.0.1:3000", token=token, org=ORG)
        assert made._connection.headers["Authorization"] == f"Bearer {token}"
        assert "apikey" not in made.with_options(access_token=jwt("authenticated"))._connection.headers
    with pytest.raises(ConfigurationError, match="means nothing to PostgREST"):
        kind.from_postgrest("http://127.0.0.1:3000", token="sb_secret_x", org=ORG)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("org", ["", "acme", None, 5, object()])
def test_an_organization_is_named_by_its_id(kind: type, org: object) -> None:
    with pytest.raises(ValueError, match="org"):
        kind(URL, "sb_secret_x", org=org)
    with pytest.raises(ValueError, match="org"):
        kind(URL, "sb_secret_x", org=ORG).with_options(org=org)
