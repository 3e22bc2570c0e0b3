"""The options that most commands share, and the client that they make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from ranked_ledger import OpenAICompatibleEmbedder, RankedLedger
from ranked_ledger.cli.progress import waiting
from ranked_ledger.errors import ConfigurationError

WORKSPACE_VARIABLE: Final = "RANKED_LEDGER_WORKSPACE"
PROJECT_VARIABLE: Final = "RANKED_LEDGER_PROJECT"
EMBEDDINGS_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_URL"
_MODEL_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_MODEL"
_KEY_VARIABLE: Final = "RANKED_LEDGER_EMBEDDINGS_KEY"

ENVIRONMENT: Final = (
    ("SUPABASE_URL", "the project's URL"),
    ("SUPABASE_SECRET_KEY", "its secret key, or SUPABASE_SERVICE_ROLE_KEY: the legacy one"),
    (WORKSPACE_VARIABLE, "instead of --workspace"),
    (PROJECT_VARIABLE, "instead of --project"),
    ("RANKED_LEDGER_SUPABASE_CLI", "the Supabase CLI that `demo` pushes with, instead of the one it finds"),
    (
        EMBEDDINGS_VARIABLE,
        f"an OpenAI-compatible service for vectors, with {_MODEL_VARIABLE} and {_KEY_VARIABLE}",
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
    return OpenAICompatibleEmbedder(url, model, api_key=os.environ.get(_KEY_VARIABLE) or None)
