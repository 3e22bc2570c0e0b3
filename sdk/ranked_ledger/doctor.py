"""What is installed, who may do what and what is wrong, in plain words; and mending what can be mended.

Asks through PostgREST only, with the service key, and knocks with the public key where one is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import httpx

from ranked_ledger.client import RankedLedger
from ranked_ledger.errors import INSTALL_COMMAND, NotInstalledError, RankedLedgerError
from ranked_ledger.models import Enrolled, Status
from ranked_ledger.settings import Connection
from ranked_ledger.wording import counted, of_the_sdk

State = Literal["ok", "note", "problem"]

RELOAD: Final = "notify pgrst, 'reload schema'"
MEND: Final = "ranked-ledger doctor --mend"
# The functions that clients call; a test compares them with docs/sql-api.md.
FUNCTIONS: Final = (
    "check_copies",
    "count_recall_usage",
    "decision_impact",
    "enroll_missing_decisions",
    "fit_similarity_range",
    "forget_decision",
    "get_decision",
    "get_workspace_settings",
    "ledger_schema_version",
    "ledger_status",
    "link_decisions",
    "list_decisions",
    "mark_recall_usage",
    "match_decision_ledger",
    "pin_decision",
    "prune_traces",
    "recall_decisions",
    "recall_policy_stats",
    "recall_traces",
    "record_decision",
    "record_decisions",
    "set_decision_importance",
    "set_decision_lifecycle",
    "set_similarity_range",
    "set_text_config",
    "supersede_decision",
    "touch_decision_recall",
    "unlink_decisions",
)
_MEMORY_VERSION: Final = "memory_schema_version"
_TABLES: Final = ("agent_decision_ledger", "agent_decision_edges")
_CLOSED: Final = (401, 403, 404)
_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `next`: what to do about it, where anything is to be done."""

    name: str
    state: State
    text: str
    next: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was found.

    - `status`: the ledger's own answer, or None where it gave none; `error` says why then.
    """

    findings: tuple[Finding, ...]
    status: Status | None = None
    error: RankedLedgerError | None = None

    @property
    def healthy(self) -> bool:
        return not any(one.state == "problem" for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "healthy": self.healthy,
            "findings": [asdict(one) for one in self.findings],
            "status": None if self.status is None else self.status.model_dump(mode="json"),
        }


def examine(
    ledger: RankedLedger,
    connection: Connection,
    *,
    public_key: str | None = None,
    everywhere: bool = True,
    http: httpx.Client | None = None,
) -> Diagnosis:
    """Look at everything that can be seen from here.

    - `connection`: of the same project as `ledger`, for what the client has no function for.
    - `public_key`: the anon or publishable key; with it the doctor tries what nobody should be able to do.
    - `everywhere`: all workspaces instead of the client's.

    Example:
        >>> examine(ledger, settings.environment()).healthy                     # doctest: +SKIP
        True
    """
    client = http or httpx.Client(timeout=_SECONDS)
    try:
        try:
            status = ledger.status(everywhere=everywhere)
        except RankedLedgerError as error:
            return Diagnosis(tuple(_unanswered(error, client, connection)), error=error)
        findings = [*_installed(status), *_long_term_memory(client, connection), _visible(client, connection)]
        findings.append(_public(client, connection, public_key))
        findings += _own_checks(status)
        return Diagnosis((*findings, _contents(status), *_failures(status)), status)
    finally:
        if http is None:
            client.close()


def mend(
    ledger: RankedLedger,
    *,
    everywhere: bool = True,
    batch: int = 1000,
    on_progress: Callable[[Enrolled], object] = lambda _: None,
) -> Enrolled:
    """Enrol what is missing until nothing is left, or until nothing more can be; gives the sums.

    Example:
        >>> mend(ledger).failed                                                 # doctest: +SKIP
        0
    """
    total = Enrolled(enrolled=0)
    while True:
        done = ledger.enroll_missing(everywhere=everywhere, limit=batch)
        total = Enrolled(
            enrolled=total.enrolled + done.enrolled,
            settled=total.settled + done.settled,
            failed=done.failed,
            more=done.more,
        )
        on_progress(total)
        if not done.more or not done.enrolled + done.settled:
            return total


def await_functions(ledger: RankedLedger, *, seconds: float = 20.0) -> None:
    """Wait until PostgREST has seen a push: it hears of it by a notification, and takes a moment.

    Example:
        >>> await_functions(ledger)                                             # doctest: +SKIP
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            ledger.status()
        except NotInstalledError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


def _unanswered(error: RankedLedgerError, client: httpx.Client, connection: Connection) -> Iterator[Finding]:
    """Why the ledger gave no answer: nothing there, or there and not seen."""
    if not isinstance(error, NotInstalledError):
        yield Finding("connection", "problem", f"The ledger did not answer: {error.message}", error.hint)
        return
    table = _ask(client, "GET", f"{connection.rest_url}/{_TABLES[0]}?limit=0", connection)
    if table is not None and table.status_code == 200:
        yield Finding("installed", "ok", "The ledger's tables are in this database.")
        yield Finding(
            "functions",
            "problem",
            "PostgREST does not see the functions: what it knows of the schema is old, or they are missing.",
            f"run `{RELOAD};` in the SQL editor; if that does not help, push the migrations again",
        )
        return
    memory = list(_long_term_memory(client, connection))
    yield from memory
    alone = any(one.state == "ok" for one in memory)  # the long-term memory needs no ledger
    yield Finding(
        "installed",
        "note" if alone else "problem",
        "The ledger is not installed in this project, or PostgREST has not seen it yet.",
        f"run `ranked-ledger init`, then `{INSTALL_COMMAND}`; if you did: `{RELOAD};` in the SQL editor",
    )


def _installed(status: Status) -> Iterator[Finding]:
    vector = (
        f"pgvector {status.pgvector_version} in schema {status.pgvector_schema}"
        if status.pgvector_version
        else "without pgvector"
    )
    yield Finding(
        "installed",
        "ok",
        f"Schema version {status.schema_version} on PostgreSQL {status.postgres_version}, {vector}.",
    )


def _long_term_memory(client: httpx.Client, connection: Connection) -> Iterator[Finding]:
    """Whether the other store is there: nothing is said where nothing was learnt."""
    answer = _ask(client, "POST", f"{connection.rest_url}/rpc/{_MEMORY_VERSION}", connection)
    if answer is not None and answer.status_code == 200 and answer.text.strip().isdigit():
        version = answer.text.strip()
        yield Finding(
            "long-term memory", "ok", f"The long-term memory is installed, schema version {version}."
        )
    elif answer is not None and answer.status_code == 404:
        yield Finding("long-term memory", "note", "The long-term memory is not installed.")


def _visible(client: httpx.Client, connection: Connection) -> Finding:
    """Whether PostgREST's own list has every function."""
    answer = _ask(client, "GET", f"{connection.rest_url}/", connection)
    try:
        paths = answer.json()["paths"] if answer is not None and answer.status_code == 200 else None
    except (ValueError, KeyError, TypeError):
        paths = None
    if paths is None:
        text = "PostgREST answers calls; its list of functions cannot be read here."
        return Finding("functions", "note", text)
    unseen = [name for name in FUNCTIONS if f"/rpc/{name}" not in paths]
    if unseen:
        return Finding(
            "functions",
            "problem",
            f"PostgREST does not see {', '.join(unseen)}.",
            f"run `{RELOAD};` in the SQL editor; if that does not help, push the migrations again",
        )
    return Finding("functions", "ok", f"PostgREST sees all {len(FUNCTIONS)} functions.")


def _public(client: httpx.Client, connection: Connection, key: str | None) -> Finding:
    """Whether the public key is turned away everywhere."""
    if not key:
        return Finding(
            "public key",
            "note",
            "Not tried from outside: no public key is set.",
            "set SUPABASE_ANON_KEY or SUPABASE_PUBLISHABLE_KEY to have it tried",
        )
    headers = {"apikey": key, "Accept": "application/json"}
    if key.startswith("eyJ"):
        headers["Authorization"] = f"Bearer {key}"
    public = Connection(connection.rest_url, headers)
    tries = [
        ("POST", f"call {name}", f"{public.rest_url}/rpc/{name}")
        for name in ("ledger_status", "list_decisions", _MEMORY_VERSION)
    ]
    tries += [("GET", f"read {name}", f"{public.rest_url}/{name}?limit=1") for name in _TABLES]
    let_in, unclear = [], []
    for method, what, url in tries:
        answer = _ask(client, method, url, public)
        if answer is None or answer.status_code >= 500:
            unclear.append(what)
        elif answer.status_code not in _CLOSED:
            let_in.append(what)
    if let_in:
        return Finding(
            "public key",
            "problem",
            f"Whoever holds the public key may {', '.join(let_in)}.",
            f"push the migrations again (`{INSTALL_COMMAND}`): they revoke what anon and authenticated have",
        )
    if unclear:
        return Finding("public key", "note", f"No clear answer when trying to {', '.join(unclear)}.")
    return Finding("public key", "ok", "The public key can neither read the ledger nor call it.")


def _own_checks(status: Status) -> Iterator[Finding]:
    """The checks that the ledger makes on itself, with its own words."""
    for check in status.checks:
        detail = check.detail or ""
        mendable = "enroll_missing_decisions" in detail
        yield Finding(
            check.name.replace("_", " "),
            "ok" if check.ok else "problem",
            of_the_sdk(detail) if mendable else detail,
            None if check.ok or not mendable else f"`{MEND}`",
        )


def _contents(status: Status) -> Finding:
    spaces = ", ".join(f"{one.workspace_id} ({one.decisions:,})" for one in status.workspaces[:10])
    more = len(status.workspaces) - 10
    where = f" Workspaces: {spaces}{f' and {more} more' if more > 0 else ''}." if spaces else ""
    return Finding(
        "contents",
        "ok",
        f"{counted(status.decisions, 'decision')} in {counted(status.streams, 'stream')}, "
        f"{counted(status.edges, 'edge')}, {counted(status.traces, 'recall trace')}.{where}",
    )


def _failures(status: Status) -> Iterator[Finding]:
    for failure in status.recent_failures:
        code = f" [{failure.sqlstate}]" if failure.sqlstate else ""
        yield Finding(
            "not enrolled",
            "problem",
            f"{failure.memory_id} in {failure.workspace_id}: {failure.reason}{code}",
            f"`{MEND}`",
        )


def _ask(client: httpx.Client, method: str, url: str, connection: Connection) -> httpx.Response | None:
    headers = {name: value for name, value in connection.headers.items() if name != "Content-Type"}
    try:
        return client.request(method, url, headers=headers, json={} if method == "POST" else None)
    except httpx.HTTPError:
        return None
