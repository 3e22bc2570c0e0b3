"""Commands that read, and what follows a recall: recall, timeline, show, used, ignored, stats, prune."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from ranked_ledger import Decision, InvalidArgumentError, UsageMarked, Weights
from ranked_ledger.cli import tables
from ranked_ledger.cli.connection import AsJson, MemoryId, ProjectFilter, Workspace, connect
from ranked_ledger.cli.output import plain, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.models import Lifecycle
from ranked_ledger.wording import counted

commands = typer.Typer()

RequestId = Annotated[
    str, typer.Argument(help="The trace: `request_id` of a recall, shown under its hits.", show_default=False)
]
MemoryIds = Annotated[list[str], typer.Argument(help="Memory ids of its hits.", show_default=False)]


@commands.command(
    epilog='Example: ranked-ledger recall "can a sent invoice be edited?" -w acme --task invoicing --explain'
)
def recall(
    workspace: Workspace,
    query: Annotated[
        str | None,
        typer.Argument(help="What is asked; without it importance, recency and dependency rank alone."),
    ] = None,
    project: ProjectFilter = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only this task.")] = None,
    current_step: Annotated[
        int | None,
        typer.Option("--step", help="Where the work stands; by default each stream's newest step."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="1 to 1000 hits.")] = 10,
    max_tokens: Annotated[
        int | None, typer.Option(help="An upper bound for --prompt, fence included.")
    ] = None,
    include_superseded: Annotated[
        bool, typer.Option("--all", help="Also what is not active, each 0.30 lower.")
    ] = False,
    relevance: Annotated[float | None, typer.Option(help="Weight of relevance (0.45).")] = None,
    importance: Annotated[float | None, typer.Option(help="Weight of importance (0.25).")] = None,
    recency: Annotated[float | None, typer.Option(help="Weight of recency (0.15).")] = None,
    dependency: Annotated[float | None, typer.Option(help="Weight of dependency (0.15).")] = None,
    half_life_steps: Annotated[
        float | None, typer.Option("--half-life", help="Recency is exp(-steps / this); 30.")
    ] = None,
    dependency_saturation: Annotated[
        float | None, typer.Option("--saturation", help="So many dependents count fully; 3.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="The name that the trace carries, for `stats`.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Names the trace; a repeat answers again and leaves no second one.")
    ] = None,
    trace: Annotated[bool, typer.Option(help="Leave a trace, for `used`, `ignored` and `stats`.")] = True,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each hit stands where it stands.")
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the block for a prompt instead of a table.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The decisions that matter now, best first."""
    weights = Weights(relevance=relevance, importance=importance, recency=recency, dependency=dependency)
    with connect(workspace, project) as ledger:
        found = ledger.recall(
            query,
            task=task,
            current_step=current_step,
            limit=limit,
            max_tokens=max_tokens,
            include_superseded=include_superseded,
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            policy=policy,
            request_id=request_id,
            trace=trace,
        )
    answer = found.as_dict()
    if explain:
        answer["explanations"] = [hit.explain().as_dict() for hit in found]
    if prompt:
        answer["prompt"] = found.to_prompt()
    show(
        answer,
        lambda: plain(found.to_prompt()) if prompt else tables.hits(found, explain=explain),
        as_json=as_json,
    )


@commands.command(epilog="Example: ranked-ledger timeline -w acme --task invoicing --lifecycle active")
def timeline(
    workspace: Workspace,
    project: ProjectFilter = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only this task.")] = None,
    lifecycle: Annotated[
        list[str] | None,
        typer.Option(help="active, stale, disputed, rejected or superseded; may be repeated."),
    ] = None,
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Only those.")] = None,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="By rising step.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many.")] = 50,
    after: Annotated[
        str | None, typer.Option(help="Go on after an earlier page: its `next`, from --json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decisions by step, the newest first."""
    decisions: list[Decision] = []
    cursor: Any = None
    with connect(workspace, project) as ledger:
        pages = ledger.timeline(
            task=task,
            lifecycle=cast(list[Lifecycle] | None, lifecycle or None),
            pinned=pinned,
            newest_first=not oldest_first,
            limit=limit,
            page_size=min(max(limit, 1), 500),
            after=None if after is None else _cursor(after),
        ).pages()
        for page in pages:
            decisions += page
            cursor = page.next
    show(
        {"decisions": decisions, "next": cursor},
        lambda: tables.decisions(decisions),
        as_json=as_json,
    )


def _cursor(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidArgumentError(
            "--after is no cursor", hint="pass the `next` of `timeline --json`, as JSON"
        )
    return value


@commands.command("show", epilog='Example: ranked-ledger show "$ID" -w acme')
def show_decision(memory_id: MemoryId, workspace: Workspace, as_json: AsJson = False) -> None:
    """A decision in full: rationale, alternatives, edges, successor, history."""
    with connect(workspace) as ledger:
        decision = ledger.get(memory_id)
    show(decision, lambda: tables.detail(decision), as_json=as_json)


@commands.command(epilog='Example: ranked-ledger used "$TRACE" "$ID" -w acme')
def used(request_id: RequestId, memory_ids: MemoryIds, workspace: Workspace, as_json: AsJson = False) -> None:
    """Say which hits of a recall were of use."""
    with connect(workspace) as ledger:
        marked = ledger.mark_used(request_id, memory_ids)
    show(marked, lambda: _marked(marked), as_json=as_json)


@commands.command(epilog='Example: ranked-ledger ignored "$TRACE" "$ID" -w acme --reason "another customer"')
def ignored(
    request_id: RequestId,
    memory_ids: MemoryIds,
    workspace: Workspace,
    reason: Annotated[str | None, typer.Option("--reason", help="Why.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say which hits of a recall were of no use."""
    with connect(workspace) as ledger:
        marked = ledger.mark_ignored(request_id, memory_ids, reason=reason)
    show(marked, lambda: _marked(marked), as_json=as_json)


def _marked(marked: UsageMarked) -> Text:
    parts = [f"{marked.used} used, {marked.ignored} ignored"]
    if marked.already:
        parts.append(f"{marked.already} marked before")
    if marked.unknown:
        parts.append(f"not in this trace: {', '.join(map(str, marked.unknown))}")
    return Text("; ".join(parts) + ".")


@commands.command(epilog="Example: ranked-ledger stats -w acme --since 2026-01-01")
def stats(
    workspace: Workspace,
    since: Annotated[datetime | None, typer.Option(help="Count only recalls from then on (UTC).")] = None,
    as_json: AsJson = False,
) -> None:
    """How the recall policies have done, side by side."""
    with connect(workspace) as ledger:
        policies = ledger.policy_stats(since=None if since is None else _utc(since))
    show({"policies": policies}, lambda: tables.policies(policies), as_json=as_json)


@commands.command(epilog="Example: ranked-ledger prune -w acme --days 90")
def prune(
    workspace: Workspace,
    before: Annotated[datetime | None, typer.Option(help="Delete traces from before then (UTC).")] = None,
    days: Annotated[int | None, typer.Option(min=0, help="Or: keep those of so many days.")] = None,
    batch: Annotated[int, typer.Option(help="How many a call.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Delete old recall traces; decisions stay."""
    if (before is None) == (days is None):
        raise InvalidArgumentError("say either --before or --days")
    moment = _utc(before) if before is not None else datetime.now(UTC) - timedelta(days=days or 0)
    deleted = 0
    with connect(workspace, spin=False) as ledger, bar() as advance:
        while True:
            done = ledger.prune_traces(before=moment, limit=batch)
            deleted += done.deleted
            advance("deleting traces", deleted, 0)
            if not done.more:
                break
    show(
        {"deleted": deleted, "before": moment.isoformat()},
        lambda: Text(
            f"{counted(deleted, 'trace')} from before {moment:%Y-%m-%d %H:%M} UTC "
            f"{'is' if deleted == 1 else 'are'} deleted."
        ),
        as_json=as_json,
    )


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
