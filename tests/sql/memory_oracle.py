"""The rules of writing a memory, said a second time: what a row is refused with, and what holds for every row that stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

# Two of them, so that one can try what is the other's.
MEMBERS = ("member", "other")


def written(given: Mapping[str, Any], before: Row | None = None) -> Row:
    """The row as it stands once it is written: a tombstone stays one, and an erased row is empty."""
    row = {**(before or DEFAULTS), **given}
    if before is not None and before["redacted_at"] is not None:
        row["redacted_at"] = before["redacted_at"]
    if row["redacted_at"] is not None:
        return row | EMPTIED
    return row | {"expires_at": None} if row["expires_at"] == "infinity" else row


def refusal(
    given: Mapping[str, Any],
    before: Row | None = None,
    *,
    runs: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
) -> str | None:
    """The SQLSTATE that an INSERT (or an UPDATE of `before`) is refused with; None where it passes."""
    row = written(given, before)
    if row["redacted_at"] is None and (codes := _said_in_words(row, before)):
        return codes[0]
    required = ("subject_type", "text", "author", "can_use_as_instruction", "embedding_model")
    if any(row[column] is None for column in required):
        return "23502"
    if not _checks_hold(row):
        return "23514"
    unknown_run = row["source_run_id"] is not None and row["source_run_id"] not in runs
    unknown_user = any(row[c] is not None and row[c] not in users for c in ("written_by", "reviewed_by"))
    return "23503" if unknown_run or unknown_user else None


def _said_in_words(row: Row, before: Row | None) -> list[str]:
    """The codes of the rules that it breaks, in the order in which the table looks at them."""
    text, expiry = row["text"] or "", row["expires_at"]
    personal = row["subject_type"] != "workspace"
    rules = (
        ("RL471", bool(text.strip(" \t\n\r\f\v"))),
        ("22023", len(text.encode()) <= 65_536),
        ("RL472", row["subject_type"] in SUBJECT_TYPES),
        ("RL474", not personal or row["subject_id"] is not None),
        ("22023", not personal or row["workspace_id"] is None),
        ("RL473", row["author"] in AUTHORS),
        ("RL475", expiry not in PAST or (before is not None and before["expires_at"] == expiry)),
    )
    return [code for code, holds in rules if not holds]


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
    return bool(row["review_outcome"] == "approved" and row["review_grade"] == "verified")


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


@dataclass
class Memory:
    """What the verbs made of a memory."""

    words: str
    author: str
    written_by: str | None
    remembered_by: str | None
    outcome: str | None = None
    grade: str | None = None
    instruction: bool = False
    erased: bool = False
    expired: bool = False
    swept: bool = False
    past: set[str] = field(default_factory=set)  # words that it had before

    def refuses(self, caller: str, user: str | None) -> str | None:
        """What whoever wants to change it hears. What has expired is gone, swept or not."""
        if self.swept or (self.expired and not self.erased):
            return "RL404"
        return "RL410" if self.erased else self.refuses_forgetting(caller, user)

    def refuses_forgetting(self, caller: str, user: str | None) -> str | None:
        if self.swept:
            return "RL404"
        return "42501" if caller in MEMBERS and user not in (self.written_by, self.remembered_by) else None

    def correct(self, words: str, caller: str, user: str | None) -> None:
        self.past.add(self.words)
        self.words = words
        self.written_by = user
        if caller == "service":  # no key puts words into a person's mouth
            self.author = "model"
        if caller != "admin":  # nobody has reviewed the new words
            self.outcome, self.grade, self.instruction = None, None, False
        elif self.outcome is not None:  # whoever may review answers for what they wrote
            self.grade = "verified"

    def refuses_review(self, caller: str, outcome: str, *, instruction: bool) -> str | None:
        if caller in MEMBERS:
            return "42501"
        if instruction and outcome != "approved":
            return "22023"
        if instruction and caller == "service":
            return "42501"
        return self.refuses(caller, None) or (
            "42501" if caller == "service" and self.grade == "verified" else None
        )

    def review(self, outcome: str, caller: str, *, instruction: bool) -> None:
        self.outcome, self.instruction = outcome, instruction
        self.grade = "verified" if caller == "admin" else "asserted"

    def is_recalled(self, *, unreviewed: bool) -> bool:
        """Whether a recall of everything returns it. What has expired is not, swept or not."""
        reviewed = self.outcome in ("approved", "evidence_only")
        seen = reviewed or (self.outcome is None and (unreviewed or self.author == "person"))
        return seen and not (self.erased or self.expired or self.swept)

    @property
    def is_gone(self) -> bool:
        return self.erased or self.swept


def remember_refusals(arguments: Mapping[str, Any], caller: str, *, members: tuple[str, ...]) -> set[str]:
    """The SQLSTATEs of what is wrong with a call of `remember` in an organization that allows asserted acts."""
    said = DEFAULTS | {"subject_type": "workspace", "embedding_model": None} | dict(arguments)
    author, asserted = said["author"], said["asserted_by"]
    names = [said["workspace_id"], said["source_run_id"]]
    rules = (
        ("22023", (said["embedding"] is None) == (not (said["embedding_model"] or "").strip())),
        ("22023", all(name is None or name.strip() for name in names)),
        ("22023", asserted is None or (caller == "service" and author == "person")),
        ("22023", not (caller == "service" and author == "person" and asserted is None)),
        ("RL404", caller != "service" or author != "person" or asserted is None or asserted in members),
    )
    return {code for code, holds in rules if not holds} | set(_said_in_words(written(said), None))
