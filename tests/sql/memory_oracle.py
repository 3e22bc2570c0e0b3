"""The rules of writing a memory, said a second time: what a row is refused with, and what holds for every row that stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]

FUTURE = ("2999-01-01T00:00:00+00:00", "infinity")
PAST = ("2001-01-01T00:00:00+00:00", "-infinity")

# What a row has that does not say.
DEFAULTS: Row = {
    "subject_type": None,
    "subject_id": None,
    "workspace_id": None,
    "text": None,
    "author": "model",
    "source_run_id": None,
    "written_by": None,
    "asserted_by": None,
    "reviewed_at": None,
    "reviewed_by": None,
    "review_outcome": None,
    "review_grade": None,
    "can_use_as_instruction": False,
    "embedding": None,
    "embedding_model": "",
    "expires_at": None,
    "redacted_at": None,
}

# What an erased memory has left of these.
EMPTIED: Row = {
    "text": "",
    "embedding": None,
    "embedding_model": "",
    "asserted_by": None,
    "source_run_id": None,
    "can_use_as_instruction": False,
}

SUBJECT_TYPES = ("workspace", "candidate", "user")
AUTHORS = ("model", "person")
OUTCOMES = ("approved", "evidence_only", "rejected")
GRADES = ("verified", "asserted")


def written(given: Mapping[str, Any], before: Row | None = None) -> Row:
    """The row as it stands once it is written: a tombstone stays one, and an erased row is empty."""
    row = {**(before or DEFAULTS), **given}
    if before is not None and before["redacted_at"] is not None:
        row["redacted_at"] = before["redacted_at"]
    return row | EMPTIED if row["redacted_at"] is not None else row


def refusal(
    given: Mapping[str, Any],
    before: Row | None = None,
    *,
    runs: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
) -> str | None:
    """The SQLSTATE that an INSERT (or an UPDATE of `before`) is refused with; None where it passes."""
    row = written(given, before)
    if row["redacted_at"] is None and (code := _said_in_words(row, before)):
        return code
    required = ("subject_type", "text", "author", "can_use_as_instruction", "embedding_model")
    if any(row[column] is None for column in required):
        return "23502"
    if not _checks_hold(row):
        return "23514"
    unknown_run = row["source_run_id"] is not None and row["source_run_id"] not in runs
    unknown_user = any(row[c] is not None and row[c] not in users for c in ("written_by", "reviewed_by"))
    return "23503" if unknown_run or unknown_user else None


def _said_in_words(row: Row, before: Row | None) -> str | None:
    text, expiry = row["text"] or "", row["expires_at"]
    personal = row["subject_type"] != "workspace"
    rules = (  # in the order in which they are looked at
        ("RL471", bool(text.strip(" \t\n\r\f\v"))),
        ("22023", len(text.encode()) <= 65_536),
        ("RL472", row["subject_type"] in SUBJECT_TYPES),
        ("RL474", not personal or row["subject_id"] is not None),
        ("22023", not personal or row["workspace_id"] is None),
        ("RL473", row["author"] in AUTHORS),
        ("RL475", expiry not in PAST or (before is not None and before["expires_at"] == expiry)),
    )
    return next((code for code, holds in rules if not holds), None)


def _checks_hold(row: Row) -> bool:
    personal = row["subject_type"] != "workspace"
    return (
        row["subject_type"] in SUBJECT_TYPES
        and (not personal or (row["subject_id"] is not None and row["workspace_id"] is None))
        and row["author"] in AUTHORS
        and len({row[c] is None for c in ("reviewed_at", "review_outcome", "review_grade")}) == 1
        and row["review_outcome"] in (None, *OUTCOMES)
        and row["review_grade"] in (None, *GRADES)
        and (not row["can_use_as_instruction"] or verified(row))
    )


def verified(row: Row) -> bool:
    return row["review_outcome"] == "approved" and row["review_grade"] == "verified"


def broken(row: Row) -> list[str]:
    """The rules that a row of the store breaks."""
    erased = row["redacted_at"] is not None
    rules = {
        "the subject type is known": row["subject_type"] in SUBJECT_TYPES,
        "a person is named": row["subject_type"] == "workspace" or row["subject_id"] is not None,
        "the author is known": row["author"] in AUTHORS,
        "a live memory has words": erased or bool(row["text"].strip(" \t\n\r\f\v")),
        "an erased one has none": not erased or all(row[c] == v for c, v in EMPTIED.items()),
        "a review is whole": len({row[c] is None for c in ("reviewed_at", "review_outcome", "review_grade")})
        == 1,
        "an instruction was approved by a person's own token": not row["can_use_as_instruction"]
        or verified(row),
        "a vector has its model beside it": row["embedding"] is None or row["embedding_model"] is not None,
    }
    return [rule for rule, holds in rules.items() if not holds]


def recalled(row: Row, *, unreviewed: bool, expired: bool) -> bool:
    """Whether a recall of everything returns the memory. `expired`: its time is over, swept or not."""
    reviewed = row["review_outcome"] in ("approved", "evidence_only")
    seen = reviewed or (row["review_outcome"] is None and (unreviewed or row["author"] == "person"))
    return row["redacted_at"] is None and not expired and seen
