"""What an argument may be. Each function gives the form that the database takes, or says what is wrong.

Messages name the argument and its limits and never repeat its text: it may be somebody's memory. Only a
single word in the place of an id is repeated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, get_args
from uuid import UUID

from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import DecisionRef
from ranked_ledger.subjects import SubjectType

T = TypeVar("T")

# The database has the same limits and is the judge; tests/contract compares the two.
MAX_TEXT_BYTES: Final = 256 * 1024
MAX_SUMMARY_BYTES: Final = 2_000
MAX_NAME_BYTES: Final = 1_000
MAX_ALTERNATIVES: Final = 20
MAX_GROUNDS: Final = 100
MAX_STEP: Final = 1_000_000_000
MAX_HITS: Final = 1_000
MAX_PAGE: Final = 500
MAX_TRACES: Final = 100
MAX_DEPTH: Final = 2_147_483_647
MAX_PRUNED: Final = 10_000
MAX_CHECKED: Final = 10_000
MAX_ADOPTED: Final = 1_000
MIN_SAMPLED: Final = 10
MAX_SAMPLED: Final = 2_000
MAX_KEY_CHARACTERS: Final = 255
MAX_MEMORY_BYTES: Final = 64 * 1024
MAX_NOTE_BYTES: Final = 2_000
MIN_CLEANED_CHARACTERS: Final = 6
MAX_CLEANED_CHARACTERS: Final = 1_000
MAX_CLEANED: Final = 50
MIN_DIGEST_KEY_CHARACTERS: Final = 16
MAX_DIGEST_KEY_BYTES: Final = 4_096
_MAX_REPEATED: Final = 40
_MAX_DIMENSIONS: Final = 16_000
_MAX_FLOAT4: Final = 3.4028234663852886e38


def text(name: str, value: object, *, blank: bool = False, max_bytes: int | None = None) -> str:
    """A text that PostgreSQL can hold: no NUL, no half of a surrogate pair; not blank unless `blank`."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a text, not {_kind(value)}")
    if not blank and not value.strip():
        raise InvalidArgumentError(f"{name} is blank")
    if "\x00" in value:
        raise InvalidArgumentError(f"{name} holds a NUL character, which PostgreSQL cannot store")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as broken:
        raise InvalidArgumentError(
            f"{name} holds half of a surrogate pair at character {broken.start}"
        ) from None
    if max_bytes is not None and size > max_bytes:
        raise InvalidArgumentError(
            f"{name} has {size:,} bytes; {max_bytes:,} are allowed",
            hint="record a summary and keep the long text elsewhere",
        )
    return value


def optional_text(
    name: str, value: object, *, blank: bool = False, max_bytes: int = MAX_TEXT_BYTES
) -> str | None:
    return None if value is None else text(name, value, blank=blank, max_bytes=max_bytes)


def name(argument: str, value: object) -> str | None:
    """A name or an id of the caller's own, such as a task: it becomes part of an index."""
    return optional_text(argument, value, max_bytes=MAX_NAME_BYTES)


def one_of(name: str, value: object, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(allowed)}")
    return value


def fraction(name: str, value: object) -> float:
    number = finite(name, value)
    if not 0 <= number <= 1:
        raise InvalidArgumentError(f"{name} must lie in [0, 1]; it is {number!r}")
    return number


def finite(name: str, value: object, *, minimum: float | None = None) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise InvalidArgumentError(f"{name} must be a number, not {_kind(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{name} must be a number, not {_kind(value)}") from None
    if not math.isfinite(number):
        raise InvalidArgumentError(f"{name} must be finite; it is {number!r}")
    if minimum is not None and number < minimum:
        raise InvalidArgumentError(f"{name} must be at least {minimum:g}; it is {number!r}")
    return number


def positive(name: str, value: object) -> float | None:
    if value is None:
        return None
    number = finite(name, value)
    if number <= 0:
        raise InvalidArgumentError(f"{name} must be above 0; it is {number!r}")
    return number


def cosine(name: str, value: object) -> float:
    number = finite(name, value)
    if not -1 <= number <= 1:
        raise InvalidArgumentError(f"{name} must be a cosine, in [-1, 1]; it is {number!r}")
    return number


def whole(name: str, value: object, *, minimum: int, maximum: int | None = None) -> int:
    if isinstance(value, (bool, type)) or not hasattr(value, "__index__"):
        raise InvalidArgumentError(f"{name} must be a whole number, not {_kind(value)}")
    number = value.__index__()
    if number < minimum or (maximum is not None and number > maximum):
        limits = f"at least {minimum:,}" if maximum is None else f"in [{minimum:,}, {maximum:,}]"
        raise InvalidArgumentError(f"{name} must be {limits}; it is {number:,}")
    return int(number)


def unless(default: T, value: T) -> T | None:
    """What is sent: nothing where it is the default."""
    return None if value == default else value


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be True or False, not {_kind(value)}")
    return value


def uuid(name: str, value: object, *, what: str = "UUID") -> str:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            if value.isprintable() and len(value) <= _MAX_REPEATED and len(value.split()) == 1:
                raise InvalidArgumentError(f"{name}: {value!r} is no {what}") from None
            raise InvalidArgumentError(f"{name} must be a UUID, not another text") from None
    raise InvalidArgumentError(f"{name} must be a UUID, not {_kind(value)}")


def decision(name: str, value: object) -> str:
    """The memory id of anything that names a decision: a model with `memory_id`, a UUID or its text."""
    return uuid(name, getattr(value, "memory_id", value), what="memory id")


def decisions(name: str, value: DecisionRef | Iterable[DecisionRef]) -> list[str]:
    """The memory ids of one or many, in order, each once."""
    if isinstance(value, (str, UUID)) or hasattr(value, "memory_id"):
        return [decision(name, value)]
    if not isinstance(value, Iterable):
        raise InvalidArgumentError(f"{name} must be decisions or their ids, not {_kind(value)}")
    return list(dict.fromkeys(decision(f"{name}[{place}]", one) for place, one in enumerate(value)))


def grounds(value: DecisionRef | Iterable[DecisionRef]) -> list[str]:
    """What a decision rests on."""
    ids = decisions("depends_on", value)
    if len(ids) > MAX_GROUNDS:
        raise InvalidArgumentError(f"depends_on names {len(ids)} decisions; {MAX_GROUNDS} are allowed")
    return ids


def alternatives(value: object) -> list[str]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"alternatives must be a list of texts, not {_kind(value)}")
    texts = [text(f"alternatives[{place}]", one) for place, one in enumerate(value)]
    if len(texts) > MAX_ALTERNATIVES:
        raise InvalidArgumentError(f"alternatives has {len(texts)} texts; {MAX_ALTERNATIVES} are allowed")
    return texts


def subject(value: object, *, named: bool = True) -> tuple[str, str | None]:
    """Whom something is about: its type and its id.

    - `named`: a person must be named by their id; a workspace need not be.
    """
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InvalidArgumentError(
            'subject must be a pair of a type and an id, such as ("candidate", id)',
            hint=f"the types are {', '.join(get_args(SubjectType))}",
        )
    kind = one_of("the type of subject", value[0], get_args(SubjectType))
    if value[1] is None:
        if named and kind != "workspace":
            raise InvalidArgumentError(f"subject names no {kind}: its id is missing")
        return kind, None
    return kind, uuid("the id of subject", value[1])


def phrases(name: str, value: object) -> list[str]:
    """Exact strings to be cleaned, each long enough not to stand in what others wrote."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"{name} must be a list of texts, not {_kind(value)}")
    found = [text(f"{name}[{place}]", one) for place, one in enumerate(value)]
    if len(found) > MAX_CLEANED:
        raise InvalidArgumentError(f"{name} has {len(found)} texts; {MAX_CLEANED} are allowed")
    for place, one in enumerate(found):
        if not MIN_CLEANED_CHARACTERS <= len(one) <= MAX_CLEANED_CHARACTERS:
            raise InvalidArgumentError(
                f"{name}[{place}] has {len(one):,} characters; "
                f"it takes {MIN_CLEANED_CHARACTERS} to {MAX_CLEANED_CHARACTERS:,}",
                hint="a shorter one also stands in what others wrote",
            )
    return found


def digest_key(value: object) -> str | None:
    """The key of an organization's digests, never repeated in a message."""
    if value is None:
        return None
    key = text("digest_key", value, max_bytes=MAX_DIGEST_KEY_BYTES)
    if len(key) < MIN_DIGEST_KEY_CHARACTERS:
        raise InvalidArgumentError(
            f"digest_key has {len(key)} characters; it takes {MIN_DIGEST_KEY_CHARACTERS}",
            hint="draw one at random, and keep it where the database is not",
        )
    return key


def mapping(name: str, value: object) -> dict[str, Any]:
    """A JSON object that PostgreSQL can hold as jsonb."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{name} must be a mapping, not {_kind(value)}")
    try:
        plain = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidArgumentError(f"{name} is not JSON: {wrong}") from None
    if "\\u0000" in plain.replace("\\\\", ""):
        raise InvalidArgumentError(f"{name} holds a NUL character, which PostgreSQL cannot store")
    text(name, plain)
    result: dict[str, Any] = json.loads(plain)
    return result


def moment(name: str, value: object) -> str:
    if not isinstance(value, datetime):
        raise InvalidArgumentError(f"{name} must be a datetime, not {_kind(value)}")
    if value.utcoffset() is None:
        raise InvalidArgumentError(
            f"{name} has no time zone", hint="use datetime.now(timezone.utc) and the like"
        )
    try:
        # PostgreSQL takes no offset of 16 hours or more, and none with parts of a second
        return value.astimezone(UTC).isoformat()
    except OverflowError:
        raise InvalidArgumentError(f"{name} is not within the years 1 to 9999 in UTC") from None


def vector(name: str, value: object) -> str:
    """An embedding as text, `[0.1,0.2]`: no number format between here and pgvector can harm it.

    Any iterable of numbers will do, a numpy array too. NaN, infinity, what float4 cannot hold, an empty
    vector and one without a direction (all zero) are refused.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidArgumentError(f"{name} must be a sequence of numbers, not {_kind(value)}")
    tolist = getattr(value, "tolist", None)
    plain: Sequence[object] = list(tolist()) if callable(tolist) else list(value)
    numbers = [finite(f"{name}[{place}]", one) for place, one in enumerate(plain)]
    if not 0 < len(numbers) <= _MAX_DIMENSIONS:
        raise InvalidArgumentError(
            f"{name} must have 1 to {_MAX_DIMENSIONS:,} numbers; it has {len(numbers):,}"
        )
    if max(abs(number) for number in numbers) > _MAX_FLOAT4:
        raise InvalidArgumentError(f"{name} holds a number that float4 cannot hold")
    if not any(numbers):
        raise InvalidArgumentError(f"{name} is all zero, so it has no direction to compare")
    return f"[{','.join(map(repr, numbers))}]"


def _kind(value: object) -> str:
    return type(value).__name__
