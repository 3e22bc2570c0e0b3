"""Commands about what a workspace chose: settings show, text-config, similarity-range."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ranked_ledger import InvalidArgumentError, WorkspaceSettings
from ranked_ledger.cli.connection import AsJson, Workspace, connect
from ranked_ledger.cli.output import one_line, show
from ranked_ledger.wording import counted

commands = typer.Typer(
    no_args_is_help=True,
    help="What a workspace chose: the language that it is read in, the similarity ranges of its models.",
    epilog="Example: ranked-ledger settings show -w acme",
)


@commands.command("show", epilog="Example: ranked-ledger settings show -w acme")
def show_settings(workspace: Workspace, as_json: AsJson = False) -> None:
    """Show what is in force, defaults included."""
    with connect(workspace) as ledger:
        settings = ledger.settings()
    show(settings, lambda: _settings(settings), as_json=as_json)


@commands.command("text-config", epilog="Example: ranked-ledger settings text-config german -w acme")
def text_config(
    name: Annotated[
        str,
        typer.Argument(
            help="A text search configuration of PostgreSQL: english (the default), german, simple, ...",
            show_default=False,
        ),
    ],
    workspace: Workspace,
    as_json: AsJson = False,
) -> None:
    """Choose the language that decisions and questions are read in; what is there is read anew at once."""
    with connect(workspace) as ledger:
        settings = ledger.set_text_config(name)
    show(settings, lambda: _settings(settings), as_json=as_json)


@commands.command(
    "similarity-range",
    epilog="Example: ranked-ledger settings similarity-range e5-small --fit -w acme",
)
def similarity_range(
    model: Annotated[
        str, typer.Argument(help="The embedding model, as recalls name it.", show_default=False)
    ],
    workspace: Workspace,
    floor: Annotated[float | None, typer.Option(help="The cosine that counts as 0.")] = None,
    ceiling: Annotated[float | None, typer.Option(help="The cosine that counts as 1.")] = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="Measure both on the workspace's own decisions, at least 10.")
    ] = False,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take the range back: cosines count as they are.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which cosines of an embedding model count as 0 and as 1, or have them measured."""
    with connect(workspace) as ledger:
        match floor, ceiling, fit, clear:
            case float(), float(), False, False:
                settings = ledger.set_similarity_range(model, floor=floor, ceiling=ceiling)
            case None, None, True, False:
                settings = ledger.fit_similarity_range(model)
            case None, None, False, True:
                settings = ledger.clear_similarity_range(model)
            case _:
                raise InvalidArgumentError("say --floor and --ceiling, or --fit alone, or --clear alone")
    show(settings, lambda: _settings(settings), as_json=as_json)


def _settings(settings: WorkspaceSettings) -> RenderableType:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("workspace", one_line(settings.workspace_id))
    facts.add_row("text search", one_line(settings.text_config))
    for one in settings.similarity_ranges:
        facts.add_row("similarity", one_line(f"{one.embedding_model}: {one.floor:g} to {one.ceiling:g}"))
    if not settings.similarity_ranges:
        facts.add_row("similarity", Text("cosines count as they are"))
    if settings.changed is None:
        return facts
    done = ["Changed." if settings.changed else "No change."]
    if settings.read_anew is not None:
        were = "was" if settings.read_anew == 1 else "were"
        done.append(f"{counted(settings.read_anew, 'decision')} {were} read anew.")
    if settings.fitted is not None:
        fitted = settings.fitted
        done.append(f"Measured on {counted(fitted.vectors, 'decision')}, {counted(fitted.pairs, 'pair')}.")
    return Group(facts, Text(" ".join(done)))
