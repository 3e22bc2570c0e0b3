"""What went wrong as one or two sentences on standard error, and as an exit code. Never a traceback."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ranked_ledger.cli.naming import of_the_commands
from ranked_ledger.errors import (
    AuthenticationError,
    ConflictError,
    EmbeddingError,
    ErasedTextError,
    GoneError,
    InvalidArgumentError,
    LoopError,
    NetworkError,
    NotFoundError,
    NotInstalledError,
    PermissionDeniedError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    SchemaVersionError,
    ServiceUnavailableError,
)

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
REFUSED: Final = 4
NOT_INSTALLED: Final = 5
NO_ANSWER: Final = 6
NO_RIGHT: Final = 7
INTERRUPTED: Final = 130

# What each exit code means; the first that fits an error counts. `ranked-ledger --help` shows the texts.
EXIT_CODES: Final[tuple[tuple[int, str, tuple[type[BaseException], ...]], ...]] = (
    (OK, "done", ()),
    (NOT_FOUND, "no such decision, trace or memory, or it was forgotten", (NotFoundError, GoneError)),
    (
        REFUSED,
        "refused: a conflict, a loop, a text that was erased, or not confirmed",
        (ConflictError, LoopError, ErasedTextError),
    ),
    (
        NOT_INSTALLED,
        "the ledger or the memory is not installed, or its schema does not fit",
        (NotInstalledError, SchemaVersionError),
    ),
    (
        NO_ANSWER,
        "no answer: network, timeout, too many requests, server down",
        (NetworkError, RequestTimeoutError, RateLimitError, ServiceUnavailableError, EmbeddingError),
    ),
    (NO_RIGHT, "the key is wrong, or may not do this", (AuthenticationError, PermissionDeniedError)),
    (USAGE, "wrong usage, argument, or environment", (InvalidArgumentError,)),
    (FAILED, "another error; for `doctor`: something is wrong", (Exception,)),
    (INTERRUPTED, "interrupted", (KeyboardInterrupt,)),
)


class Refused(RankedLedgerError):
    """The person did not confirm."""

    exit_code = REFUSED


class MissingExtra(RankedLedgerError):
    """A Python package of an extra is not installed."""

    exit_code = 24  # as the stack's own, which cannot be imported then; a test compares them

    def __init__(self, package: str | None, extra: str = "local") -> None:
        super().__init__(
            f"this command needs the package {package}", hint=f"pip install 'ranked-ledger[{extra}]'"
        )


def exit_code(error: BaseException) -> int:
    """The exit code for an error: its own, as those of the local stack have, or by `EXIT_CODES`."""
    if isinstance(own := getattr(error, "exit_code", None), int):
        return own
    return next((code for code, _, kinds in EXIT_CODES if isinstance(error, kinds)), FAILED)


def report(error: BaseException, *, as_json: bool) -> int:
    """Print an error to standard error; gives its exit code."""
    code = exit_code(error)
    if as_json:
        print(json.dumps({"error": _document(error, code)}), file=sys.stderr)
    else:
        print(f"Error: {_sentence(error)}", file=sys.stderr)
    return code


def usage(message: str, *, hint: str | None, as_json: bool) -> int:
    """The same for a command line that cannot be understood."""
    if as_json:
        document = {"type": "UsageError", "message": message, "hint": hint, "exit_code": USAGE}
        print(json.dumps({"error": document}), file=sys.stderr)
    else:
        print(f"Error: {message}" + (f"\n{hint}" if hint else ""), file=sys.stderr)
    return USAGE


def _document(error: BaseException, code: int) -> dict[str, Any]:
    if isinstance(error, RankedLedgerError):
        return {
            "type": type(error).__name__,
            "message": of_the_commands(error.message),
            "hint": error.hint and of_the_commands(error.hint),
            "detail": error.detail,
            "code": error.code,
            "status": error.status,
            "request_id": error.request_id,
            "exit_code": code,
        }
    return {"type": type(error).__name__, "message": _sentence(error), "hint": None, "exit_code": code}


def _sentence(error: BaseException) -> str:
    if isinstance(error, RankedLedgerError):
        return _printable(of_the_commands(str(error)))
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return _printable(str(error)) or type(error).__name__


def _printable(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(one if one.isprintable() else " " for one in text)


@contextmanager
def interruptible() -> Iterator[None]:
    """A plain kill ends what was started as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
