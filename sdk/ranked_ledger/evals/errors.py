"""Why an evaluation cannot go on."""

from __future__ import annotations

from typing import Final

from ranked_ledger.errors import InvalidArgumentError, RankedLedgerError

_SHOWN: Final = 80


class EvalError(RankedLedgerError):
    """An evaluation cannot go on; the message says where, the hint what to do.

    Example:
        >>> str(EvalError("no questions are left", hint="name other streams"))
        'no questions are left. Next: name other streams'
    """


class EvalInputError(EvalError, InvalidArgumentError):
    """What was given to an evaluation cannot be read as that.

    - `file`, `line`, `field`: where it is, as far as it is known; the message holds them too.
    """

    def __init__(
        self,
        what: str,
        *,
        hint: str,
        file: object = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        place = [
            self.file or "",
            f"line {line}" if line is not None else "",
            f"field {field!r}" if field is not None else "",
        ]
        where = ", ".join(part for part in place if part)
        super().__init__(f"{where}: {what}" if where else what, hint=hint)


def shown(value: object) -> str:
    """A value for a message: its beginning, on one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
