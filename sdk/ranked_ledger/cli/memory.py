"""`ranked-ledger memory`, what an agent does: remember, recall, correct, forget."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer

from ranked_ledger import Weights
from ranked_ledger.cli import memory_tables
from ranked_ledger.cli.confirming import confirm
from ranked_ledger.cli.connection import AsJson, Org, connect_memory, digest_key
from ranked_ledger.cli.memory_words import About, MemoryId, moment, scope
from ranked_ledger.cli.output import plain, say, show
from ranked_ledger.subjects import OnReturn

commands = typer.Typer(
    name="memory",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""What agents carry from one run into the next, and what an organization can answer for.

With the project's secret key these commands act as the service. With a person's token in
RANKED_LEDGER_ACCESS_TOKEN they act as that person, and what they do is verified.
""",
    epilog='Example: ranked-ledger memory recall "remote work" --about candidate:$CANDIDATE -o "$ORG"',
)

TEXT = "What is to be remembered; - reads it from standard input."
Expires = Annotated[
    str | None, typer.Option("--expires", help="Until when it holds: 90d, or a date such as 2030-01-31.")
]
Run = Annotated[str | None, typer.Option("--run", help="The agent run that it comes from.")]
Note = Annotated[str | None, typer.Option("--note", help="Why; kept in the history.")]
Key = Annotated[
    str | None, typer.Option(help="A repeat with the same key writes nothing and shows the first result.")
]
Return = Annotated[
    str,
    typer.Option(
        "--on-return",
        help="A text that was erased for this person: refuse it, or flag it (needs the digest key).",
    ),
]


@commands.command(
    epilog='Example: ranked-ledger memory remember "Prefers remote work" --about candidate:$CANDIDATE '
    '-o "$ORG" --expires 90d'
)
def remember(
    text: Annotated[str, typer.Argument(help=TEXT, show_default=False)],
    about: About,
    org: Org,
    run_id: Run = None,
    expires: Expires = None,
    idempotency_key: Key = None,
    on_return: Return = "refuse",
    as_json: AsJson = False,
) -> None:
    """Remember something about a person or a workspace, as a model's: it waits for a review.

    What a person says themselves is for `memory assert`.
    """
    to = scope(about)
    until = None if expires is None else moment("--expires", expires, ahead=True)
    with connect_memory(org) as memory:
        done = memory.remember(
            given(text),
            subject=to.subject,
            workspace=to.workspace,
            run_id=run_id,
            expires_at=until,
            idempotency_key=idempotency_key,
            digest_key=digest_key(),
            on_return=cast(OnReturn, on_return),
        )
    show(done, lambda: memory_tables.remembered(done), as_json=as_json)


@commands.command(
    epilog='Example: ranked-ledger memory recall "where to work?" --about candidate:$CANDIDATE '
    '-o "$ORG" --prompt'
)
def recall(
    org: Org,
    query: Annotated[
        str | None, typer.Argument(help="What is asked; without it the newest come first.")
    ] = None,
    about: Annotated[
        str | None,
        typer.Option(
            "--about", "-a", help="Only about: candidate:UUID, user:UUID, workspace or workspace:NAME."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    unreviewed: Annotated[
        bool, typer.Option("--unreviewed", help="Also what a model wrote and nobody has reviewed.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(help="An upper bound for --prompt, fence included.")
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the block for a prompt instead of a table.")
    ] = False,
    min_relevance: Annotated[float | None, typer.Option(help="Nothing of less relevance, 0 to 1.")] = None,
    half_life: Annotated[
        float | None, typer.Option("--half-life", help="Recency is exp(-days / this) (30).")
    ] = None,
    relevance: Annotated[float | None, typer.Option(help="Weight of relevance (0.75).")] = None,
    recency: Annotated[float | None, typer.Option(help="Weight of recency (0.25).")] = None,
    run_id: Annotated[str | None, typer.Option("--run", help="The agent run that asks.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is remembered, best first: reviewed or written by a person, and not expired."""
    of = None if about is None else scope(about)
    with connect_memory(org) as memory:
        found = memory.recall(
            query,
            subject=None if of is None else of.subject,
            workspace=None if of is None else of.workspace,
            limit=limit,
            max_tokens=max_tokens,
            include_unreviewed=unreviewed,
            min_relevance=min_relevance,
            weights=Weights(relevance=relevance, recency=recency),
            half_life_days=half_life,
            run_id=run_id,
        )
    answer = found.as_dict()
    if prompt:
        answer["prompt"] = found.to_prompt()
        for remark in [] if as_json else memory_tables.remarks(found):
            say(remark)
    show(
        answer,
        lambda: plain(found.to_prompt()) if prompt else memory_tables.recalled(found, subjects=of is None),
        as_json=as_json,
    )


@commands.command(
    epilog='Example: ranked-ledger memory correct "$MEMORY" "Prefers to work in Berlin" -o "$ORG"'
)
def correct(
    memory_id: MemoryId,
    text: Annotated[
        str, typer.Argument(help="The words that hold; - reads them from standard input.", show_default=False)
    ],
    org: Org,
    note: Note = None,
    expires: Expires = None,
    as_json: AsJson = False,
) -> None:
    """Put other words in place of a memory's.

    They are yours then; with the secret key they are a model's. Unless an admin's or owner's token does it,
    what a model wrote waits for a review again.
    """
    until = None if expires is None else moment("--expires", expires, ahead=True)
    with connect_memory(org) as memory:
        done = memory.correct(memory_id, given(text), note=note, expires_at=until)
    show(done, lambda: memory_tables.changed(done), as_json=as_json)


@commands.command(epilog='Example: ranked-ledger memory forget "$MEMORY" -o "$ORG" --yes')
def forget(
    memory_id: MemoryId,
    org: Org,
    note: Note = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take the words of one memory away for good; that it was there stays.

    It asks for the memory id again, or wants --yes.
    """
    if not yes:
        confirm(memory_id, to="forget it", undone="nothing was forgotten")
    with connect_memory(org) as memory:
        done = memory.forget(memory_id, note=note)
    show(done, lambda: memory_tables.forgotten(done), as_json=as_json)


def given(text: str) -> str:
    """A text as it is given, or standard input: what is about a person need not be in a shell's history."""
    return sys.stdin.read() if text == "-" else text
