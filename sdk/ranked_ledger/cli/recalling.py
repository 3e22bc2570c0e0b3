"""Commands that read, and what follows a recall: recall, timeline, show, used, ignored, stats, prune."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from ranked_ledger import Decision, InvalidArgumentError, UsageMarked, Weights
from ranked_ledger.cli import tables
from ranked_ledger.cli.connection import AsJson, MemoryId, ProjectFilter, Workspace, connect
from ranked_ledger.cli.memory_words import person
from ranked_ledger.cli.output import plain, say, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.models import DEFAULT_PRESET, Fusion, Lifecycle, Preset
from ranked_ledger.wording import counted

commands = typer.Typer()


def _panel(title: str) -> Callable[..., Any]:
    """A group of options in the help of `recall`: takes what an option is for, and its names."""
    return lambda text, *names, **named: typer.Option(*names, rich_help_panel=title, help=text, **named)


def _moment(text: str) -> datetime:
    """A time as ISO 8601 has it, `2026-05-01T12:00` or with an offset; in UTC where it has none."""
    try:
        return _utc(datetime.fromisoformat(text))
    except ValueError:
        raise typer.BadParameter("write a time as 2026-05-01T12:00 or 2026-05-01T12:00+02:00") from None


_scope = _panel("Which decisions")
_past = _panel("As of when")
_relevance = _panel("Relevance")
_weight = _panel("Weights")
_trace = _panel("Trace")

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
    limit: Annotated[int, typer.Option("--limit", "-n", help="1 to 1000 hits.")] = 10,
    max_tokens: Annotated[
        int | None, typer.Option(help="An upper bound for --prompt, fence included.")
    ] = None,
    exact: Annotated[
        bool, typer.Option(help="Prove that these are the best; without it a large workspace answers faster.")
    ] = True,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each hit stands where it stands.")
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the block for a prompt instead of a table.")
    ] = False,
    include_superseded: Annotated[
        bool,
        _scope(
            "Also what is not active, superseded and rejected ones 0.30 lower.", "--include-superseded", "-a"
        ),
    ] = False,
    include_stale: Annotated[
        bool | None,
        _scope(
            "Of these only the stale and disputed ones, marked so: tuned has them by default.",
            "--include-stale/--no-stale",
        ),
    ] = None,
    only_confirmed: Annotated[
        bool, _scope("Nothing that still waits for a person's confirmation.", "--only-confirmed")
    ] = False,
    include_personal: Annotated[
        bool, _scope("Also what is of visibility personal.", "--include-personal/--no-personal")
    ] = True,
    min_relevance: Annotated[
        float | None, _scope("Nothing of less relevance, 0 to 1, pinned or not.")
    ] = None,
    as_of: Annotated[
        datetime | None,
        _past(
            "Ask as of then: what was there and in force (UTC unless an offset is given).",
            "--as-of",
            parser=_moment,
            metavar="TIME",
        ),
    ] = None,
    as_of_step: Annotated[int | None, _past("Or as of a step of one --task.", "--as-of-step")] = None,
    fusion: Annotated[
        str | None,
        _relevance(
            "Where there are both: none takes the cosine (published), max the greater, blend both (tuned)."
        ),
    ] = None,
    fusion_weight: Annotated[float | None, _relevance("The part of the cosine in a blend, 0 to 1.")] = None,
    similarity_floor: Annotated[
        float | None, _relevance("The cosine that counts as 0; else the one kept for the model, else 0.")
    ] = None,
    similarity_ceiling: Annotated[
        float | None, _relevance("The cosine that counts as 1; else the one kept for the model, else 1.")
    ] = None,
    preset: Annotated[
        str,
        _weight(
            "What is in force where you say nothing. tuned: best on decisions of real projects "
            "(docs/evaluation.md). published: the formula of the proposal, the default in SQL."
        ),
    ] = DEFAULT_PRESET,
    relevance: Annotated[float | None, _weight("Weight of relevance.")] = None,
    importance: Annotated[float | None, _weight("Weight of importance.")] = None,
    recency: Annotated[float | None, _weight("Weight of recency.")] = None,
    dependency: Annotated[float | None, _weight("Weight of dependency.")] = None,
    summary: Annotated[float | None, _weight("Weight of how much of the summary the query names.")] = None,
    current_step: Annotated[
        int | None,
        _weight("Where the work stands; by default each stream's newest step.", "--current-step"),
    ] = None,
    half_life_steps: Annotated[
        float | None, _weight("Recency is exp(-steps / this).", "--half-life-steps")
    ] = None,
    dependency_saturation: Annotated[
        float | None,
        _weight("So many dependents count fully.", "--dependency-saturation"),
    ] = None,
    trace: Annotated[bool, _trace("Leave a trace, for `used`, `ignored` and `stats`.")] = True,
    request_id: Annotated[
        str | None, _trace("Names the trace; a repeat answers again and leaves no second one.")
    ] = None,
    policy: Annotated[str | None, _trace("The name that it carries, for `stats`.")] = None,
    flow: Annotated[str | None, _trace("The flow that asks.")] = None,
    runtime_name: Annotated[str | None, _trace("The runtime that asks.", "--runtime")] = None,
    about: Annotated[
        str | None,
        _trace(
            "Whom it asks about, candidate:UUID or user:UUID: their data, for the long-term memory.",
            "--about",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The decisions that matter now, best first."""
    weights = Weights(relevance, importance, recency, dependency, summary)
    whom = None if about is None else person(about)
    with connect(workspace, project) as ledger:
        found = ledger.recall(
            query,
            task=task,
            current_step=current_step,
            limit=limit,
            max_tokens=max_tokens,
            include_superseded=include_superseded,
            include_stale=include_stale,
            only_confirmed=only_confirmed,
            include_personal=include_personal,
            min_relevance=min_relevance,
            as_of=as_of,
            as_of_step=as_of_step,
            preset=cast(Preset, preset),
            weights=weights,
            half_life_steps=half_life_steps,
            dependency_saturation=dependency_saturation,
            similarity_floor=similarity_floor,
            similarity_ceiling=similarity_ceiling,
            fusion=cast(Fusion | None, fusion),
            fusion_weight=fusion_weight,
            exact=exact,
            trace=trace,
            request_id=request_id,
            policy=policy,
            flow=flow,
            runtime_name=runtime_name,
            subject=whom,
        )
    answer = found.as_dict()
    if explain:
        answer["explanations"] = [hit.explain().as_dict() for hit in found]
    if prompt:
        answer["prompt"] = found.to_prompt()
        for remark in [] if as_json else tables.shortcomings(found):
            say(remark)
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
