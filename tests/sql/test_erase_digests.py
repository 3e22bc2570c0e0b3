"""Keyed digests of what was erased: HMAC-SHA256 without an extension, and what is known again by it."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from tests.rig import hosts
from tests.rig.databases import Database, Server

KEY = "a key of at least 16 characters"
OTHER_KEY = "another key of 16 characters"

# RFC 4231, test cases 1 to 4, 6 and 7 (5 is of a truncated code).
RFC_4231 = (
    ("0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (
        b"Jefe".hex(),
        b"what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ),
    ("aa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (
        bytes(range(1, 26)).hex(),
        b"\xcd" * 50,
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
    ),
    (
        "aa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
    (
        "aa" * 131,
        b"This is a test using a larger than block-size key and a larger than block-size data. "
        b"The key needs to be hashed before being used by the HMAC algorithm.",
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    ),
)


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[Database]:
    database = hosts.memory_project(server)
    yield database
    server.remove(database)


@pytest.fixture
def org(database: Database) -> str:
    return str(
        database.value(
            "insert into long_term_memory.organizations (name) values ('o') returning id", role="service_role"
        )
    )


def mac(database: Database, key: bytes, message: bytes) -> str:
    code = database.value("select encode(long_term_memory.hmac_sha256(%s, %s), 'hex')", (key, message))
    assert isinstance(code, str)
    return code


@pytest.mark.parametrize(("key", "message", "expected"), RFC_4231)
def test_the_code_is_that_of_rfc_4231(database: Database, key: str, message: bytes, expected: str) -> None:
    assert mac(database, bytes.fromhex(key), message) == expected


def test_the_code_is_that_of_another_implementation(database: Database) -> None:
    draw = random.Random(4231)
    for length in (0, 1, 63, 64, 65, 200):
        key, message = draw.randbytes(length), draw.randbytes(draw.randrange(300))
        assert mac(database, key, message) == hmac.new(key, message, hashlib.sha256).hexdigest()


def erase(database: Database, org: str, subject: str, text: str, key: str = KEY) -> None:
    database.service.execute(
        """
        with e as (
          insert into long_term_memory.erasures (org_id, subject_type, subject_id, grade, key_check)
          values (%(org)s, 'candidate', %(subject)s, 'service', long_term_memory.key_check(%(key)s, %(org)s)) returning id)
        insert into long_term_memory.erased_digests (erasure_id, org_id, subject_type, subject_id, digest)
        select e.id, %(org)s, 'candidate', %(subject)s,
               long_term_memory.text_digest(%(key)s, %(org)s, 'candidate', %(subject)s, %(text)s) from e""",
        {"org": org, "subject": subject, "text": text, "key": key},
    )


def before(
    database: Database, org: str, subject: str | None, text: str, key: str | None = KEY, **of: str
) -> object:
    return database.value(
        "select long_term_memory.erased_before(%s, %s, %s, %s, %s)",
        (org, of.get("kind", "candidate"), subject, text, key),
        role="service_role",
    )


def test_an_erased_text_is_known_again_whatever_its_case_and_blanks(database: Database, org: str) -> None:
    subject = str(uuid4())
    assert before(database, org, subject, "She prefers the night shift") == "clear"
    erase(database, org, subject, "She prefers the night shift")
    for text in ("She prefers the night shift", "  SHE prefers\tthe night\nshift "):
        assert before(database, org, subject, text) == "flagged"
    assert before(database, org, subject, "She prefers the day shift") == "clear"


def test_it_is_known_for_this_subject_of_this_organization_alone(database: Database, org: str) -> None:
    subject, text = str(uuid4()), "She prefers the night shift"
    erase(database, org, subject, text)
    assert before(database, org, str(uuid4()), text) == "clear"
    assert before(database, str(uuid4()), subject, text) == "clear"
    assert before(database, org, subject, text, kind="user") == "clear"
    assert before(database, org, None, text, kind="workspace") == "not_checked"


def test_the_answer_tells_that_it_was_not_checked_or_by_another_key(database: Database, org: str) -> None:
    subject, text = str(uuid4()), "She prefers the night shift"
    assert before(database, org, subject, text, OTHER_KEY) == "clear", "nothing was erased"
    erase(database, org, subject, text)
    assert before(database, org, subject, text, None) == "not_checked"
    assert before(database, org, subject, text, OTHER_KEY) == "other_key"
    erase(database, org, subject, "another text", OTHER_KEY)
    assert before(database, org, subject, text, OTHER_KEY) == "clear"
    assert before(database, org, subject, "another text", OTHER_KEY) == "flagged"


def test_a_key_that_could_be_guessed_is_refused_and_not_repeated(database: Database, org: str) -> None:
    for key in ("fifteen letters", "", "x" * 4097):
        with pytest.raises(psycopg.Error) as raised:
            before(database, org, str(uuid4()), "text", key)
        assert raised.value.sqlstate == "22023"
        told = raised.value.diag
        for part in (told.message_primary, told.message_detail, told.message_hint, told.context):
            assert not key or key not in str(part)
