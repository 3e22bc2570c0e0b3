"""`ranked-ledger stack`: the local servers.

The stack is imported inside the commands only: the rest of the CLI works without the extra `local`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ranked_ledger.cli import failures
from ranked_ledger.cli.connection import AsJson

if TYPE_CHECKING:
    from types import ModuleType

    from ranked_ledger.stack import Stack, StackStatus
    from ranked_ledger.stack.platform import DefaultPrivileges

_NOT_RUNNING = 32

app = typer.Typer(
    name="stack",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Run PostgreSQL, PostgREST and a gateway on this machine: to a client, a hosted Supabase project.

Whoever has an account on this machine reaches the loopback port; only the key guards it. PostgreSQL itself
listens on a Unix socket in a private folder.

**Its own exit codes,** beside those of `ranked-ledger --help`: 23 a program is missing · 24 a Python package
is missing · 25 the port is taken, or needs root · 26 the data is of another PostgreSQL version ·
27 the disk is full · 28 a server did not start · 29 a folder cannot be used · 30 another command works on the
stack · 31 no such stack · 32 the stack does not run (`status` only)

**Environment:** RANKED_LEDGER_HOME (folder of all stacks), RANKED_LEDGER_POSTGRES_BIN (folder of PostgreSQL's
programs), RANKED_LEDGER_POSTGREST (PostgREST program), RANKED_LEDGER_STACK (name of the stack)
""",
)


class Service(StrEnum):
    """The servers of a stack, as `ranked_ledger.stack.SERVICES` has them; a test compares the two."""

    POSTGRES = "postgres"
    POSTGREST = "postgrest"
    GATEWAY = "gateway"


class Privileges(StrEnum):
    """What a new object of `public` grants to the API roles by itself."""

    OLD = "old"
    NONE = "none"


_LITERALS: dict[Privileges, DefaultPrivileges] = {Privileges.OLD: "old", Privileges.NONE: "none"}

Name = Annotated[
    str,
    typer.Option("--name", "-n", envvar="RANKED_LEDGER_STACK", help="Which stack; several run side by side."),
]


@app.command(epilog="Example: ranked-ledger stack up")
def up(
    name: Name = "default",
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the gateway; without it a free one is chosen and kept."),
    ] = None,
    default_privileges: Annotated[
        Privileges | None,
        typer.Option(
            help="What new objects grant to the API roles: `old` as in projects created before 2026-05-30, "
            "`none` as in newer ones. It is kept; a new stack has `none`."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start what does not run, and wait until it answers. A second `up` changes nothing."""
    with _stack(name, as_json) as stack:
        info = stack.up(
            port=port,
            default_privileges=_LITERALS[default_privileges] if default_privileges else None,
            on_progress=_say,
        )
        if as_json:
            _print(_status_dict(stack.status()))
        else:
            typer.echo(f"{info.url} is ready; `ranked-ledger stack env{_suffix(name)}` prints its keys")


@app.command(epilog="Example: ranked-ledger stack down")
def down(name: Name = "default", as_json: AsJson = False) -> None:
    """Stop everything. The data, the keys and the port stay."""
    with _stack(name, as_json) as stack:
        stack.require()
        stack.down()
        _say(f"the stack {name} is stopped")
        if as_json:
            _print(_status_dict(stack.status()))


@app.command(epilog="Example: ranked-ledger stack status --json")
def status(name: Name = "default", as_json: AsJson = False) -> None:
    """Say what runs. Exit code 32 if a part of it does not."""
    with _stack(name, as_json) as stack:
        state = stack.status()
        if as_json:
            _print(_status_dict(state))
        else:
            typer.echo(_status_text(state))
        if not state.running:
            raise typer.Exit(_NOT_RUNNING)


@app.command(epilog="Example: ranked-ledger stack env --json")
def env(name: Name = "default", as_json: AsJson = False) -> None:
    """Print URL and keys as shell exports, for `eval "$(ranked-ledger stack env)"`."""
    with _stack(name, as_json) as stack:
        values = stack.env()
        if as_json:
            _print(values)
        else:
            for key, value in values.items():
                typer.echo(f"export {key}={shlex.quote(value)}")


@app.command(epilog="Example: ranked-ledger stack logs postgrest --lines 5")
def logs(
    service: Annotated[
        Service | None, typer.Argument(help="postgres, postgrest or gateway; all of them without it.")
    ] = None,
    name: Name = "default",
    lines: Annotated[
        int, typer.Option("--lines", "-l", min=0, help="How many of each service's newest lines.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each line as a JSON document of its own.")
    ] = False,
) -> None:
    """Print what the servers logged. No key and no query text is in the gateway's log."""
    with _stack(name, as_json) as stack:
        try:
            wanted = None if service is None else service.value
            for origin, line in stack.logs(wanted, lines=lines, follow=follow):
                if as_json:
                    typer.echo(json.dumps({"service": origin, "line": line}))
                else:
                    typer.echo(line if service else f"{origin:<9} | {line}")
        except KeyboardInterrupt:
            return


@app.command(epilog="Example: ranked-ledger stack reset --yes")
def reset(
    name: Name = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the data and begin with an empty database. Keys and port stay; it is started again if it ran."""
    with _stack(name, as_json) as stack:
        stack.require()
        # a program is not asked: the question would be no JSON
        if not yes and (as_json or not _confirmed(f"Delete all data of the stack {name} in {stack.folder}?")):
            refused = failures.Refused("nothing was deleted: it was not confirmed", hint="say --yes")
            raise typer.Exit(failures.report(refused, as_json=as_json))
        stack.reset(on_progress=_say)
        _say(f"the stack {name} is empty; its keys and its port are the same")
        if as_json:
            _print(_status_dict(stack.status()))


@app.command(epilog="Example: ranked-ledger stack rm --name second --yes")
def rm(
    name: Name = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop a stack and delete it: data, keys, port and logs. It asks for the name, or wants --yes."""
    with _stack(name, as_json) as stack:
        stack.require()
        if not yes and (
            as_json or not _typed(name, f"Delete the stack {name} in {stack.folder} with its keys")
        ):
            refused = failures.Refused("nothing was deleted: it was not confirmed", hint="say --yes")
            raise typer.Exit(failures.report(refused, as_json=as_json))
        stack.remove()
        _say(f"the stack {name} is deleted; its keys are worth nothing now")
        if stack.programs.exists():
            _say(f"the programs that all stacks share stay in {stack.programs}")
        if as_json:
            _print({"name": name, "folder": str(stack.folder), "deleted": True})


def _typed(name: str, what: str) -> bool:
    try:
        answer: str = typer.prompt(f"{what}? Type its name to do it", err=True)
    except typer.Abort:  # there is nobody to ask
        return False
    return answer.strip() == name


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # there is nobody to ask
        return False


@contextmanager
def _stack(name: str, as_json: bool) -> Iterator[Stack]:
    """The stack of that name; a failure becomes its one sentence and its exit code."""
    module = _load(as_json)
    try:
        yield module.Stack(name)
    except module.StackError as error:
        raise typer.Exit(failures.report(error, as_json=as_json)) from None


def _load(as_json: bool) -> ModuleType:
    try:
        from ranked_ledger import stack  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise typer.Exit(failures.report(failures.MissingExtra(error.name), as_json=as_json)) from None
    return stack


def _print(document: Mapping[str, object]) -> None:
    typer.echo(json.dumps(document, indent=2))


def _say(text: str) -> None:
    # progress is no output: `env` and `--json` stay clean when they are piped
    typer.echo(text, err=True)


def _suffix(name: str) -> str:
    return "" if name == "default" else f" --name {name}"


def _status_dict(state: StackStatus) -> dict[str, object]:
    return {
        "name": state.name,
        "running": state.running,
        "url": state.url,
        "folder": state.folder,
        "services": {
            service: {"running": pid is not None, "pid": pid} for service, pid in state.pids.items()
        },
    }


def _status_text(state: StackStatus) -> str:
    lines = [
        f"{service:<10} {f'running (pid {pid})' if pid else 'stopped'}" for service, pid in state.pids.items()
    ]
    return "\n".join([*lines, f"{'url':<10} {state.url or '-'}", f"{'folder':<10} {state.folder}"])
