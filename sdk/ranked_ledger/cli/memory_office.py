"""`ranked-ledger memory`, what people answer for: assert, review, usage, subject-access, erase."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from ranked_ledger import Erasure, InvalidArgumentError, Memory
from ranked_ledger.cli import memory_tables
from ranked_ledger.cli.confirming import confirm, must_be_asked
from ranked_ledger.cli.connection import AsJson, Org, connect_steward, digest_key
from ranked_ledger.cli.memory import TEXT, Expires, Key, Note, Return, Run, given
from ranked_ledger.cli.memory_words import About, MemoryId, Person, moment, person, scope
from ranked_ledger.cli.output import console, plain, show
from ranked_ledger.cli.reading import read_text
from ranked_ledger.errors import NetworkError, RequestTimeoutError
from ranked_ledger.subjects import OnReturn, ReviewOutcome

commands = typer.Typer()

MemberId = Annotated[
    str | None,
    typer.Option("--asserted-by", help="With the secret key: the member who said it, by their user id."),
]


@commands.command(
    "assert",
    epilog='Example: ranked-ledger memory assert "I cannot start before May" --about candidate:$CANDIDATE '
    '--asserted-by "$PERSON" -o "$ORG"',
)
def assert_memory(
    text: Annotated[str, typer.Argument(help=TEXT, show_default=False)],
    about: About,
    org: Org,
    asserted_by: MemberId = None,
    run_id: Run = None,
    expires: Expires = None,
    idempotency_key: Key = None,
    on_return: Return = "refuse",
    as_json: AsJson = False,
) -> None:
    """Remember what a person says, which is recalled without a review.

    With your token in RANKED_LEDGER_ACCESS_TOKEN these are your own words, and verified. With the secret key
    they are those of the member whom --asserted-by names, where the organization allows it
    (`memory org set`).
    """
    to = scope(about)
    until = None if expires is None else moment("--expires", expires, ahead=True)
    with connect_steward(org) as steward:
        done = steward.remember(
            given(text),
            asserted_by=asserted_by,
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
    epilog='Example: ranked-ledger memory review "$MEMORY" --approve --note "asked them" -o "$ORG"'
)
def review(
    org: Org,
    memory_id: Annotated[
        str | None, typer.Argument(help="The memory's id; without it, what waits is listed.")
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="It holds.")] = False,
    evidence_only: Annotated[
        bool, typer.Option("--evidence-only", help="It may be recalled, and proves nothing by itself.")
    ] = False,
    reject: Annotated[bool, typer.Option("--reject", help="It is never recalled.")] = False,
    instruction: Annotated[
        bool,
        typer.Option("--instruction", help="With --approve, and with your own token: agents may follow it."),
    ] = False,
    note: Note = None,
    reviewer: Annotated[
        str | None,
        typer.Option(help="With the secret key: the admin or owner who reviewed it, by their user id."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="List so many, the oldest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List what waits for a review, or say what becomes of one memory.

    With an admin's or owner's token in RANKED_LEDGER_ACCESS_TOKEN the review is verified.
    """
    outcomes = {"approved": approve, "evidence_only": evidence_only, "rejected": reject}
    said = [outcome for outcome, chosen in outcomes.items() if chosen]
    if memory_id is None:
        if said or instruction or note or reviewer:
            raise InvalidArgumentError(
                "the memory is missing", hint="name it: ranked-ledger memory review ID --approve"
            )
        _list_pending(org, limit, as_json=as_json)
        return
    if len(said) != 1:
        raise InvalidArgumentError("say one of --approve, --evidence-only and --reject")
    with connect_steward(org) as steward:
        done = steward.review(
            memory_id,
            cast(ReviewOutcome, said[0]),
            can_use_as_instruction=instruction,
            note=note,
            reviewer=reviewer,
        )
    show(done, lambda: memory_tables.changed(done), as_json=as_json)


def _list_pending(org: str, limit: int, *, as_json: bool) -> None:
    memories: list[Memory] = []
    waiting, more = 0, False
    with connect_steward(org) as steward:
        for page in steward.pending(limit=limit, page_size=min(max(limit, 1), 500)).pages():
            memories += page
            waiting, more = page.pending, page.next is not None
    show(
        {"memories": memories, "pending": waiting},
        lambda: memory_tables.pending(memories, waiting, more=more),
        as_json=as_json,
    )


@commands.command(epilog='Example: ranked-ledger memory usage "$MEMORY" -o "$ORG"')
def usage(
    memory_id: MemoryId,
    org: Org,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show so many, the newest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Which runs have read a memory."""
    with connect_steward(org) as steward:
        found = steward.usage(memory_id, limit=limit)
    show(found, lambda: memory_tables.usage(found), as_json=as_json)


@commands.command(
    "subject-access",
    epilog='Example: ranked-ledger memory subject-access --about candidate:$CANDIDATE -o "$ORG" '
    "--output held.txt",
)
def subject_access(
    about: Person,
    org: Org,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Write it there, for you alone to read; the file must be new."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Everything that both stores hold about a person, as a document that they can read.

    With --json it is one for programs.
    """
    whom = person(about)
    with connect_steward(org) as steward:
        found = steward.subject_access(whom)
    if output is None:
        show(found.as_dict(), lambda: plain(found.as_text()), as_json=as_json)
        return
    text = json.dumps(found.as_dict(), indent=2, ensure_ascii=False) if as_json else found.as_text()
    _write_private(output, text + "\n")
    show({"output": str(output)}, lambda: plain(f"{output} is written."), as_json=as_json)


def _write_private(path: Path, text: str) -> None:
    try:
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline="\n"
        ) as file:
            file.write(text)
    except FileExistsError:
        raise InvalidArgumentError(f"{path} is there already", hint="name a new file") from None
    except OSError as wrong:
        raise InvalidArgumentError(f"{path} cannot be written: {wrong.strerror}") from None


@commands.command(
    epilog='Example: ranked-ledger memory erase --about candidate:$CANDIDATE -o "$ORG" --dry-run'
)
def erase(
    about: Person,
    org: Org,
    containing: Annotated[
        list[str] | None,
        typer.Option(
            "--containing",
            help="Also clean this exact string, 6 characters or more, wherever the organization holds it; "
            "may be repeated.",
        ),
    ] = None,
    containing_file: Annotated[
        Path | None,
        typer.Option(
            "--containing-file",
            help="The same, a string a line, so that none is in the shell's history; - for standard input.",
        ),
    ] = None,
    asserted_by: Annotated[
        str | None,
        typer.Option(
            "--asserted-by", help="With the secret key: the owner who ordered it, by their user id."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be erased, and erase nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a person from both stores for good, in one transaction; prints the receipt.

    It shows what it would erase and wants the subject typed again, or --yes. With RANKED_LEDGER_DIGEST_KEY
    the receipt keeps a keyed digest of each text, and `memory remember` with the same key knows it again.
    """
    whom = person(about)
    name = memory_tables.subject(*whom)
    strings = [*(containing or ()), *(_lines(containing_file) if containing_file else ())]
    asks = not (dry_run or yes)
    if asks:
        must_be_asked(
            undone="nothing was erased", hint="--dry-run shows what it would erase; --yes erases it"
        )

    def run(*, dry_run: bool) -> Erasure:
        with connect_steward(org) as steward:
            return steward.erase(
                whom,
                also_containing=strings,
                digest_key=digest_key(),
                asserted_by=asserted_by,
                dry_run=dry_run,
            )

    if asks:
        console(error=True).print(memory_tables.erasure(run(dry_run=True), name))
        confirm(name, to="erase them", undone="nothing was erased")
    try:
        done = run(dry_run=dry_run)
    except (NetworkError, RequestTimeoutError) as lost:
        if not dry_run:
            lost.hint = f"whether they are erased: ranked-ledger memory subject-access --about {name}"
        raise
    show(done, lambda: memory_tables.erasure(done, name), as_json=as_json)


def _lines(file: Path) -> list[str]:
    """The strings of a file, a line each: not stripped, for a string may begin or end with a blank."""
    text = sys.stdin.read() if str(file) == "-" else read_text(file)
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
