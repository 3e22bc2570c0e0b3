"""A file of JSON lines, read strictly: every complaint names the file, the line and the field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ranked_ledger.evals.errors import EvalInputError, shown

# As the ledger has it; and a text of this size is a document, no decision.
_MAX_STEP: Final = 1_000_000_000
_MAX_TEXT_BYTES: Final = 128 * 1024
_FORMAT: Final = "one JSON object a line, in UTF-8"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its object, and where it stands."""

    file: Path
    line: int
    said: dict[str, Any]

    def wrong(self, field: str, what: str, hint: str) -> EvalInputError:
        return EvalInputError(what, hint=hint, file=self.file, line=self.line, field=field)

    def text(self, field: str, *, default: str | None = None, max_bytes: int = _MAX_TEXT_BYTES) -> str:
        """A text as it is written; it may be blank or missing only where there is a default."""
        value = self.said.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self._not(field, value, "a text")
        self._storable(field, value, max_bytes)
        if not value.strip():
            if default is None:
                raise self.wrong(field, "it is blank", "give it a text")
            return default
        return value

    def _storable(self, field: str, value: str, max_bytes: int = _MAX_TEXT_BYTES) -> None:
        if "\x00" in value:
            raise self.wrong(
                field, "it holds a NUL character", "take the character out: no database keeps it"
            )
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise self.wrong(
                field, "it holds half of a character", r"take the lone \ud8.. escape out"
            ) from None
        if size > max_bytes:
            raise self.wrong(field, f"it has {size:,} bytes; {max_bytes:,} are allowed", "shorten the text")

    def step(self, field: str, *, default: int | None = None) -> int:
        value = self.said.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_STEP:
            raise self._not(field, value, f"a whole number from 0 to {_MAX_STEP:,}")
        return value

    def number(self, field: str) -> float | None:
        """A number from 0 to 1, or None where there is none."""
        value = self.said.get(field)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise self._not(field, value, "a number from 0 to 1, or null")
        return float(value)

    def one_of(self, field: str, allowed: tuple[str, ...], *, default: str) -> str:
        value = self.said.get(field, default)
        if value not in allowed:
            raise self._not(field, value, f"one of {', '.join(allowed)}")
        return str(value)

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.said.get(field) or []
        if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
            raise self._not(field, value, "a list of texts, none of them blank")
        for one in value:
            self._storable(field, one)
        return tuple(value)

    def objects(self, field: str) -> tuple[dict[str, Any], ...]:
        value = self.said.get(field) or []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self._not(field, value, "a list of objects")
        return tuple(value)

    def _not(self, field: str, value: object, what: str) -> EvalInputError:
        if field not in self.said:
            return self.wrong(field, "it is missing", f"add the field: {what}")
        return self.wrong(field, f"{shown(value)} is not {what}", f"make it {what}")


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a field that is there twice nobody knows which was meant."""
    said: dict[str, Any] = {}
    for key, value in pairs:
        if key in said:
            raise _Twice(key)
        said[key] = value
    return said


def rows(file: Path) -> Iterator[Row]:
    """Every line that is not blank."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise EvalInputError(
            f"it cannot be read: {error.strerror}", hint=f"name a file with {_FORMAT}", file=file
        ) from None
    except UnicodeDecodeError as wrong:
        raise EvalInputError(f"not UTF-8 (byte {wrong.start})", hint="save it as UTF-8", file=file) from None
    # not splitlines: a text may hold U+2028 as it is
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            said = json.loads(written, object_pairs_hook=_once)
        except _Twice as twice:
            raise EvalInputError(
                "it is there twice", hint="say it once", file=file, line=line, field=twice.key
            ) from None
        except (ValueError, RecursionError) as wrong:
            why = wrong.msg if isinstance(wrong, json.JSONDecodeError) else "it cannot be read"
            raise EvalInputError(f"not JSON: {why}", hint=f"write {_FORMAT}", file=file, line=line) from None
        if not isinstance(said, dict):
            raise EvalInputError(f"{shown(said)} is no object", hint=f"write {_FORMAT}", file=file, line=line)
        yield Row(file, line, said)
