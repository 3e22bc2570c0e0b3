"""Commands that write decisions: record, record-many, supersede, forget, pin, unpin, importance."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import RenderableType
from rich.text import Text

from ranked_ledger import Decision
from ranked_ledger.cli import tables
from ranked_ledger.cli.confirming import confirm
from ranked_ledger.cli.connection import Actor, AsJson, MemoryId, Project, Reason, Workspace, connect
from ranked_ledger.cli.output import one_line, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.cli.reading import read_text
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.models import CreatedBy, Visibility
from ranked_ledger.wording import counted

commands = typer.Typer()

Task = Annotated[
    str | None, typer.Option("--task", "-t", help="The task; with workspace and project, the stream.")
]


@commands.command(
    epilog='Example: ranked-ledger record "Invoices are immutable once sent" -w acme --task invoicing '
    '--rationale "auditors diff them" --importance 0.9'
)
def record(
    content: Annotated[str, typer.Argument(help="What was decided; - reads it from standard input.")],
    workspace: Workspace,
    project: Project = None,
    rationale: Annotated[str | None, typer.Option("--rationale", "-r", help="Why.")] = None,
    alternative: Annotated[
        list[str] | None,
        typer.Option("--alternative", "-a", help="An option that was rejected; may be repeated."),
    ] = None,
    importance: Annotated[
        float | None, typer.Option(help="How much it matters, 0 to 1; by default 0.5.")
    ] = None,
    task: Task = None,
    step: Annotated[int | None, typer.Option(help="Its step in the stream; by default the next one.")] = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(help="Memory id of a decision that it rests on; may be repeated.")
    ] = None,
    summary: Annotated[str | None, typer.Option(help="Shorter, for tight token budgets.")] = None,
    pinned: Annotated[bool, typer.Option("--pin", help="Put it before all others in every recall.")] = False,
    visibility: Annotated[
        str | None, typer.Option(help="personal, channel, project, workspace or organization.")
    ] = None,
    created_by: Annotated[str | None, typer.Option(help="user, agent, system or import.")] = None,
    flow: Annotated[str | None, typer.Option(help="The flow that it belongs to.")] = None,
    runtime_name: Annotated[str | None, typer.Option("--runtime", help="The runtime that decided.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object, kept with the memory.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A repeat with the same key writes nothing and shows the first result.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record a decision."""
    with connect(workspace, project) as ledger:
        decision = ledger.record(
            sys.stdin.read() if content == "-" else content,
            rationale=rationale,
            alternatives=alternative or (),
            importance=importance,
            task=task,
            step=step,
            depends_on=depends_on or (),
            summary=summary,
            pinned=pinned,
            visibility=cast(Visibility | None, visibility),
            created_by=cast(CreatedBy | None, created_by),
            flow=flow,
            runtime_name=runtime_name,
            metadata=None if metadata is None else _json("--metadata", metadata),
            idempotency_key=idempotency_key,
        )
    show(decision, lambda: tables.decided(decision), as_json=as_json)


@commands.command(
    "record-many",
    epilog="Example: ranked-ledger record-many decisions.jsonl -w acme --idempotency-key import-2026-01",
)
def record_many(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, each with the arguments of `record`; - for standard input.")
    ],
    workspace: Workspace,
    project: Project = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="A repeat with the same key and file writes only what is missing.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record many decisions, in batches of 500, each all or nothing.

    A line is for example {"content": "...", "rationale": "...", "task": "...", "importance": 0.9}.
    """
    lines = sys.stdin.read() if str(file) == "-" else read_text(file)
    # not splitlines(): JSON may hold line ends of Unicode's as they are
    new = [_json(f"line {number}", line) for number, line in enumerate(lines.split("\n"), 1) if line.strip()]
    with connect(workspace, project, spin=False) as ledger, bar() as advance:
        advance("recording", 0, len(new))
        done: list[Decision] = []

        def on_batch(batch: Any) -> None:
            done.extend(batch)
            advance("recording", len(done), len(new))

        decisions = ledger.record_many(new, idempotency_key=idempotency_key, on_batch=on_batch)
    fresh = sum(not one.replayed for one in decisions)
    show(
        {"decisions": decisions},
        lambda: Text(f"{counted(len(decisions), 'decision')}, {fresh:,} of them new."),
        as_json=as_json,
    )


@commands.command(epilog='Example: ranked-ledger supersede "$OLD" "$NEW" -w acme --reason "the law changed"')
def supersede(
    old: Annotated[
        str, typer.Argument(help="Memory id of the decision that no longer holds.", show_default=False)
    ],
    new: Annotated[str, typer.Argument(help="Memory id of the one that replaces it.", show_default=False)],
    workspace: Workspace,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Replace a decision by another one that is recorded already."""
    with connect(workspace) as ledger:
        done = ledger.supersede(old, by=new, reason=reason, actor=actor)

    def text() -> RenderableType:
        verb = "is superseded by" if done.changed else "was superseded already by"
        return Text.assemble(
            one_line(done.old.summary or done.old.content),
            f"\n{verb}\n",
            one_line(done.new.summary or done.new.content),
        )

    show(done, text, as_json=as_json)


@commands.command(epilog='Example: ranked-ledger forget "$ID" -w acme --yes')
def forget(
    memory_id: MemoryId,
    workspace: Workspace,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a decision for good; `lifecycle reject` can be taken back.

    It asks for the memory id again, or wants --yes.
    """
    if not yes:
        confirm(memory_id, to="forget it", undone="nothing was forgotten")
    with connect(workspace) as ledger:
        done = ledger.forget(memory_id)

    def text() -> RenderableType:
        parts = [f"{done.memory_id} {'had been forgotten before' if done.already else 'is forgotten'}."]
        if done.thought_deleted:
            parts.append("Its thought is deleted too.")
        if done.dependents:
            parts.append(
                f"{counted(len(done.dependents), 'decision')} that rested on it "
                f"{'keeps' if len(done.dependents) == 1 else 'keep'} a mark that the ground is gone:"
            )
            parts += [f"  {one}" for one in done.dependents]
        if done.left_superseded:
            parts.append("What it had replaced stays superseded; `lifecycle restore` brings it back:")
            parts += [f"  {one}" for one in done.left_superseded]
        return Text("\n".join(parts))

    show(done, text, as_json=as_json)


@commands.command(epilog='Example: ranked-ledger pin "$ID" -w acme')
def pin(memory_id: MemoryId, workspace: Workspace, as_json: AsJson = False) -> None:
    """Put a decision before all others in every recall."""
    with connect(workspace) as ledger:
        decision = ledger.pin(memory_id)
    show(decision, lambda: tables.decided(decision), as_json=as_json)


@commands.command(epilog='Example: ranked-ledger unpin "$ID" -w acme')
def unpin(memory_id: MemoryId, workspace: Workspace, as_json: AsJson = False) -> None:
    """Take the pin away."""
    with connect(workspace) as ledger:
        decision = ledger.unpin(memory_id)
    show(decision, lambda: tables.decided(decision), as_json=as_json)


@commands.command(epilog='Example: ranked-ledger importance "$ID" 0.9 -w acme')
def importance(
    memory_id: MemoryId,
    value: Annotated[float, typer.Argument(help="0 to 1.", show_default=False)],
    workspace: Workspace,
    as_json: AsJson = False,
) -> None:
    """Change how much a decision matters."""
    with connect(workspace) as ledger:
        decision = ledger.set_importance(memory_id, value)
    show(decision, lambda: tables.decided(decision), as_json=as_json)


def _json(where: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise InvalidArgumentError(f"{where} is no JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{where} is no JSON object")
    return value
