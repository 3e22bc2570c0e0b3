"""`ranked-ledger memory`, what the secret key alone may do: attribute, map, expire, adopt, org, member."""

from __future__ import annotations

from typing import Annotated, cast
from uuid import uuid4

import typer
from rich.text import Text

from ranked_ledger import Adopted, InvalidArgumentError, Member, Organization, Skipped
from ranked_ledger.cli import memory_tables
from ranked_ledger.cli.connection import AsJson, Org, connect_service
from ranked_ledger.cli.memory_words import Person, moment, person
from ranked_ledger.cli.output import one_line, plain, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.subjects import MemberRole
from ranked_ledger.wording import counted

commands = typer.Typer()
organizations = typer.Typer(
    no_args_is_help=True,
    help="Organizations, in a project that has no table of its own for them, and what one allows.",
    epilog='Example: ranked-ledger memory org create "Acme"',
)
members = typer.Typer(
    no_args_is_help=True,
    help="Who belongs to an organization, in a project that does not know it already.",
    epilog='Example: ranked-ledger memory member add "$PERSON" --role admin -o "$ORG"',
)

Remove = Annotated[bool, typer.Option("--remove", help="Take it back.")]
Batch = Annotated[int, typer.Option(help="How many a call.")]
UserId = Annotated[str, typer.Argument(help="Their user id, of auth.users.", show_default=False)]
Asserted = Annotated[
    bool | None,
    typer.Option(
        "--allow-asserted/--no-asserted",
        help="Whether the secret key may name a member as the writer or reviewer of a memory.",
        show_default=False,
    ),
]


@commands.command(
    epilog='Example: ranked-ledger memory attribute "$ID" --about candidate:$CANDIDATE -o "$ORG"'
)
def attribute(
    memory_id: Annotated[str, typer.Argument(help="The decision's memory id.", show_default=False)],
    about: Person,
    org: Org,
    remove: Remove = False,
    as_json: AsJson = False,
) -> None:
    """Say that a decision of the ledger is about a person: subject access and erasure then reach it."""
    with connect_service(org) as steward:
        done = steward.attribute_decision(memory_id, person(about), remove=remove)
    state = ("is about", "was already about") if not remove else ("is no longer about", "was not about")
    whom = memory_tables.subject(done.subject_type, done.subject_id)
    said = f"{done.memory_id} {state[0 if done.changed else 1]} {whom}."
    show(done, lambda: Text(said), as_json=as_json)


@commands.command("map", epilog='Example: ranked-ledger memory map acme -o "$ORG"')
def map_workspace(
    workspace: Annotated[str, typer.Argument(help="A workspace of the ledger.", show_default=False)],
    org: Org,
    remove: Remove = False,
    as_json: AsJson = False,
) -> None:
    """Say that a workspace of the ledger belongs to the organization; it belongs to one at most.

    One that belonged to another organization loses what was attributed there.
    """
    with connect_service(org) as steward:
        done = steward.map_workspace(workspace, remove=remove)
    owner = "no organization" if done.org_id is None else f"the organization {done.org_id}"
    said = f"{done.workspace_id} {'belongs' if done.changed else 'belonged already'} to {owner}."
    if lost := done.attributions_lost:
        said += f" {counted(lost, 'attribution')} {'is' if lost == 1 else 'are'} lost."
    show(done, lambda: one_line(said), as_json=as_json)


@commands.command(epilog="Example: ranked-ledger memory expire --usage-before 365d")
def expire(
    usage_before: Annotated[
        str | None,
        typer.Option("--usage-before", help="Also delete who read what before then: 365d ago, or a date."),
    ] = None,
    batch: Batch = 1000,
    as_json: AsJson = False,
) -> None:
    """Delete what has expired, of every organization. It was not recalled any more anyway."""
    before = None if usage_before is None else moment("--usage-before", usage_before, ahead=False)
    expired = recalls = 0
    with connect_service(None, spin=False) as steward, bar() as advance:
        while True:
            done = steward.expire(limit=batch, usage_before=before)
            expired += done.expired
            recalls += done.recalls_deleted
            advance("deleting what has expired", expired + recalls, 0)
            if not done.more:
                break
    said = f"{counted(expired, 'memory', 'memories')} deleted."
    if before is not None:
        said += f" {counted(recalls, 'recall')} from before {memory_tables.minute(before)} UTC deleted."
    show({"expired": expired, "recalls_deleted": recalls}, lambda: Text(said), as_json=as_json)


@commands.command(epilog="Example: ranked-ledger memory adopt --dry-run")
def adopt(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be adopted, and write nothing.")
    ] = False,
    batch: Batch = 500,
    as_json: AsJson = False,
) -> None:
    """Copy the rows of another `public.agent_memories` (org_id, subject_type, text, ...) into the store.

    That table stays as it is. A second run adds what is new there, and nothing else.
    """
    found = Adopted(adopted=0)
    skipped: list[Skipped] = []
    with connect_service(None, spin=False) as steward, bar() as advance:
        while True:
            page = steward.adopt(limit=batch, after=found.next, dry_run=dry_run)
            skipped += page.skipped
            found = Adopted(
                adopted=found.adopted + page.adopted,
                present=found.present + page.present,
                skipped=tuple(skipped),
                skipped_total=found.skipped_total + page.skipped_total,
                next=page.next,
            )
            advance("adopting", found.adopted + found.present + found.skipped_total, 0)
            if page.next is None:
                break
    answer = found.model_dump(mode="json", exclude={"next"}) | {"dry_run": dry_run}
    show(answer, lambda: memory_tables.adoption(found, dry_run=dry_run), as_json=as_json)


@organizations.command("create", epilog='Example: ranked-ledger memory org create "Acme"')
def create_organization(
    name: Annotated[str, typer.Argument(help="What it is called.", show_default=False)],
    allow_asserted: Asserted = None,
    with_id: Annotated[
        str | None, typer.Option("--id", help="Its id, a UUID; by default a new one.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an organization; prints its id, which every other command wants as --org."""
    with connect_service(with_id or str(uuid4())) as steward:
        done = steward.set_organization(name=name, allow_asserted=allow_asserted)
    show(done, lambda: _organization(done), as_json=as_json)


@organizations.command("set", epilog='Example: ranked-ledger memory org set --allow-asserted -o "$ORG"')
def set_organization(
    org: Org,
    allow_asserted: Asserted = None,
    name: Annotated[str | None, typer.Option(help="Call it so.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change what an organization allows, or its name."""
    if allow_asserted is None and name is None:
        raise InvalidArgumentError("say --allow-asserted, --no-asserted or --name")
    with connect_service(org) as steward:
        done = steward.set_organization(name=name, allow_asserted=allow_asserted)
    show(done, lambda: _organization(done), as_json=as_json)


def _organization(done: Organization) -> Text:
    may = "may" if done.allow_asserted else "may not"
    return Text.assemble(
        (str(done.org_id), "bold"),
        "  ",
        one_line(done.name or "without a name here"),
        f"\nThe secret key {may} name its members as writers and reviewers.",
    )


@members.command("add", epilog='Example: ranked-ledger memory member add "$PERSON" --role admin -o "$ORG"')
def add_member(
    user: UserId,
    org: Org,
    role: Annotated[
        str, typer.Option(help="member, admin (reviews, subject access) or owner (erases too).")
    ] = "member",
    as_json: AsJson = False,
) -> None:
    """Make a user a member of the organization, or change their role."""
    with connect_service(org) as steward:
        done = steward.set_member(user, cast(MemberRole, role))
    show(done, lambda: _member(done), as_json=as_json)


@members.command("remove", epilog='Example: ranked-ledger memory member remove "$PERSON" -o "$ORG"')
def remove_member(user: UserId, org: Org, as_json: AsJson = False) -> None:
    """Take a user out of the organization; what they wrote and reviewed stays."""
    with connect_service(org) as steward:
        done = steward.set_member(user, None)
    show(done, lambda: _member(done), as_json=as_json)


def _member(done: Member) -> Text:
    state = "is" if done.changed else "was already"
    said = Text(f"{done.user_id} {state} {done.role or 'no member'} of {done.org_id}.")
    return said if done.hint is None else said.append("\n").append_text(plain(done.hint, "yellow"))


commands.add_typer(organizations, name="org")
commands.add_typer(members, name="member")
