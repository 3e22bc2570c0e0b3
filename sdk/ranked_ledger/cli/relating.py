"""Commands about edges and lifecycles: link, unlink, impact, lifecycle."""

from __future__ import annotations

from typing import Annotated, cast

import typer
from rich.text import Text

from ranked_ledger.cli import impact_tree, tables
from ranked_ledger.cli.connection import Actor, AsJson, MemoryId, Reason, Workspace, connect
from ranked_ledger.cli.output import show
from ranked_ledger.models import Relation, SettableLifecycle

commands = typer.Typer()
lifecycle = typer.Typer(
    no_args_is_help=True,
    help="Reject, dispute, mark stale, or restore a decision: all of it can be taken back.",
    epilog='Example: ranked-ledger lifecycle reject "$ID" -w acme --reason "never agreed"',
)

To = Annotated[str, typer.Argument(help="Memory id of the other decision.", show_default=False)]
RelationName = Annotated[str, typer.Option("--relation", help="depends_on, informs or blocks.")]


@commands.command(epilog='Example: ranked-ledger link "$ID" "$OTHER" -w acme --relation depends_on')
def link(
    memory_id: MemoryId,
    to: To,
    workspace: Workspace,
    relation: RelationName = "depends_on",
    as_json: AsJson = False,
) -> None:
    """Add an edge: the first decision depends on (informs, blocks) the second."""
    with connect(workspace) as ledger:
        edge = ledger.link(memory_id, to, relation=cast(Relation, relation))
    done = "is there now" if edge.created else "was there already"
    show(
        edge,
        lambda: Text(f"{edge.from_memory_id} {edge.relation} {edge.to_memory_id} {done}."),
        as_json=as_json,
    )


@commands.command(epilog='Example: ranked-ledger unlink "$ID" "$OTHER" -w acme')
def unlink(
    memory_id: MemoryId,
    to: To,
    workspace: Workspace,
    relation: RelationName = "depends_on",
    as_json: AsJson = False,
) -> None:
    """Take an edge away."""
    with connect(workspace) as ledger:
        edge = ledger.unlink(memory_id, to, relation=cast(Relation, relation))
    done = "is gone" if edge.removed else "was not there"
    show(
        edge,
        lambda: Text(f"{edge.from_memory_id} {edge.relation} {edge.to_memory_id} {done}."),
        as_json=as_json,
    )


@commands.command(epilog='Example: ranked-ledger impact "$ID" -w acme --max-depth 2')
def impact(
    memory_id: MemoryId,
    workspace: Workspace,
    max_depth: Annotated[
        int | None, typer.Option(help="Show only so many steps of depends_on; 1: what rests on it directly.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show 1 to 1000 decisions.")] = 500,
    as_json: AsJson = False,
) -> None:
    """What rests on a decision, directly and further on: to look at before it is replaced."""
    with connect(workspace) as ledger:
        found = ledger.impact(memory_id, max_depth=max_depth, limit=limit)
    show(found, lambda: impact_tree.text(found), as_json=as_json)


@lifecycle.command(epilog='Example: ranked-ledger lifecycle reject "$ID" -w acme --reason "never agreed"')
def reject(
    memory_id: MemoryId,
    workspace: Workspace,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Say that a decision does not hold."""
    _set(memory_id, "rejected", workspace, reason, actor, as_json=as_json)


@lifecycle.command(epilog='Example: ranked-ledger lifecycle dispute "$ID" -w acme --reason "legal asks"')
def dispute(
    memory_id: MemoryId,
    workspace: Workspace,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Say that it is not certain whether a decision holds."""
    _set(memory_id, "disputed", workspace, reason, actor, as_json=as_json)


@lifecycle.command(
    epilog='Example: ranked-ledger lifecycle stale "$ID" -w acme --reason "the service is gone"'
)
def stale(
    memory_id: MemoryId,
    workspace: Workspace,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Say that a decision no longer matters."""
    _set(memory_id, "stale", workspace, reason, actor, as_json=as_json)


@lifecycle.command(epilog='Example: ranked-ledger lifecycle restore "$ID" -w acme')
def restore(
    memory_id: MemoryId,
    workspace: Workspace,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Make a decision active again; a supersession is taken back too."""
    _set(memory_id, "active", workspace, reason, actor, as_json=as_json)


def _set(
    memory_id: str,
    to: SettableLifecycle,
    workspace: str,
    reason: str | None,
    actor: str | None,
    *,
    as_json: bool,
) -> None:
    with connect(workspace) as ledger:
        decision = ledger.set_lifecycle(memory_id, to, reason=reason, actor=actor)
    show(decision, lambda: tables.decided(decision), as_json=as_json)
