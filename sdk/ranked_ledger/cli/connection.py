"""The options that most commands share, and the client that they make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final
from uuid import UUID

import typer

from ranked_ledger import OpenAICompatibleEmbedder, RankedLedger
from ranked_ledger.cli.naming import of_the_memory_commands
from ranked_ledger.cli.progress import waiting
from ranked_ledger.errors import ConfigurationError, RankedLedgerError
from ranked_ledger.memory import LongTermMemory
from ranked_ledger.stewardship import MemorySteward

WORKSPACE_VARIABLE: Final = "RANKED_LEDGER_WORKSPACE"
PROJECT_VARIABLE: Final = "RANKED_LEDGER_PROJECT"
ORG_VARIABLE: Final = "RANKED_LEDGER_ORG"
PERSON_VARIABLE: Final = "RANKED_LEDGER_ACCESS_TOKEN"
DIGEST_VARIABLE: Final = "RANKED_LEDGER_DIGEST_KEY"
EMBEDDINGS_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_URL"
_MODEL_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_MODEL"
EMBEDDINGS_KEY_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_KEY"

ENVIRONMENT: Final = (
    ("SUPABASE_URL", "the project's URL"),
    ("SUPABASE_SECRET_KEY", "its secret key, or SUPABASE_SERVICE_ROLE_KEY: the legacy one"),
    (WORKSPACE_VARIABLE, "instead of --workspace"),
    (PROJECT_VARIABLE, "instead of --project"),
    (ORG_VARIABLE, "instead of --org"),
    (
        PERSON_VARIABLE,
        "a person's token, for `memory`: it then acts as them, and SUPABASE_PUBLISHABLE_KEY does as a key",
    ),
    (
        DIGEST_VARIABLE,
        "for `memory`: the key by which an erased text is known again; the database does not keep it",
    ),
    ("RANKED_LEDGER_SUPABASE_CLI", "the Supabase CLI that `demo` pushes with, instead of the one it finds"),
    (
        EMBEDDINGS_VARIABLE,
        f"an OpenAI-compatible service for vectors, with {_MODEL_VARIABLE} and {EMBEDDINGS_KEY_VARIABLE}",
    ),
)

Workspace = Annotated[
    str,
    typer.Option("--workspace", "-w", envvar=WORKSPACE_VARIABLE, help="Whose decisions.", show_default=False),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project", "-p", envvar=PROJECT_VARIABLE, help="Which project of the workspace; without it, none."
    ),
]
ProjectFilter = Annotated[
    str | None,
    typer.Option("--project", "-p", envvar=PROJECT_VARIABLE, help="Only this project; without it, all."),
]
Org = Annotated[
    str,
    typer.Option("--org", "-o", envvar=ORG_VARIABLE, help="The organization's id.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
MemoryId = Annotated[str, typer.Argument(help="The decision's memory id.", show_default=False)]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept in the history.")]
Actor = Annotated[str | None, typer.Option("--actor", help="Who; kept in the history.")]


@contextmanager
def connect(workspace: str, project: str | None = None, *, spin: bool = True) -> Iterator[RankedLedger]:
    """A client of the project that the environment names. `spin`: False where a bar shows what goes on."""
    embedder = _embedder()
    try:
        with RankedLedger.from_env(workspace=workspace, project=project or None, embedder=embedder) as ledger:
            if spin:
                with waiting("asking the ledger"):
                    yield ledger
            else:
                yield ledger
    finally:
        if embedder is not None:
            embedder.close()


# No command has an option for these two: it would stay in the shell's history.
def digest_key() -> str | None:
    """The key of erased texts' digests, where the environment has one."""
    return _secret(DIGEST_VARIABLE)


def _secret(variable: str) -> str | None:
    value = os.environ.get(variable)
    if value is not None and not value.strip():
        # a secret that got lost on its way: without it the secret key would act, or no digest be kept
        raise ConfigurationError(
            f"{variable} is set and empty", hint=f"unset it, or set it: unset {variable}"
        )
    return None if value is None else value.strip()


@contextmanager
def connect_memory(org: str) -> Iterator[LongTermMemory]:
    """A client of an organization's memories: what an agent does with them."""
    embedder = _embedder()
    try:
        with (
            _named_for_the_memory(),
            LongTermMemory.from_env(
                org=org, access_token=_secret(PERSON_VARIABLE), embedder=embedder
            ) as memory,
            waiting("asking the memory"),
        ):
            yield memory
    finally:
        if embedder is not None:
            embedder.close()


@contextmanager
def connect_steward(org: str) -> Iterator[MemorySteward]:
    """A client for what people answer for: themselves, by their token, or the service."""
    with (
        _named_for_the_memory(),
        MemorySteward.from_env(org=org, access_token=_secret(PERSON_VARIABLE)) as steward,
        waiting("asking the memory"),
    ):
        yield steward


@contextmanager
def connect_service(org: str | None, *, spin: bool = True) -> Iterator[MemorySteward]:
    """The same for what the secret key alone may do. `org`: None where a call is about all of them."""
    if _secret(PERSON_VARIABLE):
        raise ConfigurationError(
            f"only the secret key may do this, and {PERSON_VARIABLE} says that a person acts",
            hint=f"run it without: env -u {PERSON_VARIABLE} ranked-ledger memory ...",
        )
    with _named_for_the_memory(), MemorySteward.from_env(org=org or UUID(int=0)) as steward:
        if spin:
            with waiting("asking the memory"):
                yield steward
        else:
            yield steward


@contextmanager
def _named_for_the_memory() -> Iterator[None]:
    """Both stores have a `recall` and a `forget`: what the SDK says of the memory's is named here already."""
    try:
        yield
    except RankedLedgerError as error:
        error.message = of_the_memory_commands(error.message)
        error.hint = error.hint and of_the_memory_commands(error.hint)
        raise


def _embedder() -> OpenAICompatibleEmbedder | None:
    url = os.environ.get(EMBEDDINGS_VARIABLE, "").strip()
    if not url:
        return None
    model = os.environ.get(_MODEL_VARIABLE, "").strip()
    if not model:
        raise ConfigurationError(
            f"{EMBEDDINGS_VARIABLE} is set without {_MODEL_VARIABLE}",
            hint=f"set {_MODEL_VARIABLE} to the model's name",
        )
    return OpenAICompatibleEmbedder(url, model, api_key=os.environ.get(EMBEDDINGS_KEY_VARIABLE) or None)
