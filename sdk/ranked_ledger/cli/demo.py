"""`ranked-ledger demo`: real servers, a real push, real decisions, three questions; nothing stays behind."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.text import Text

from ranked_ledger import Hit, RankedLedger, Weights, doctor, shipped
from ranked_ledger.cli import demo_questions, importing_report, output, supabase_cli
from ranked_ledger.cli.connection import AsJson
from ranked_ledger.cli.demo_questions import Question
from ranked_ledger.cli.failures import MissingExtra, interruptible
from ranked_ledger.cli.progress import bar
from ranked_ledger.wording import counted

if TYPE_CHECKING:
    from ranked_ledger.cli.demo_report import Report
    from ranked_ledger.stack import StackInfo

T = TypeVar("T")

commands = typer.Typer()

_WORKSPACE = "demo"
_READ = 3  # of a plain list of hits an agent reads the first few
_LISTED = 10  # records that are shown; `import` lists them all


@commands.command(epilog="Example: ranked-ledger demo --from docs/decisions")
def demo(
    folder: Annotated[
        Path, typer.Option("--from", help="Decision records in markdown: ADR, MADR, log4brains, ...")
    ] = Path("docs/decisions"),
    limit: Annotated[int, typer.Option("--limit", "-n", help="Hits a question.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Record, rank and recall a folder of decisions on real servers; leave nothing running.

    Starts PostgreSQL and PostgREST in a temporary folder, pushes the migrations with the Supabase CLI,
    imports the folder and asks three questions: those of its questions.yaml, else what its records suggest.
    """
    from ranked_ledger import adr  # noqa: PLC0415  markdown and YAML are only needed here
    from ranked_ledger.cli.demo_report import Report  # noqa: PLC0415

    records = adr.read_folder(folder)
    importing_report.must_hold_records(folder, records)
    asked = demo_questions.questions(folder, records)
    report = Report(output.console(error=as_json))
    begun = time.perf_counter()
    with _servers(report) as info:
        _push(info, report)
        with RankedLedger(
            info.url, info.secret_key, workspace=_WORKSPACE, project=folder.resolve().name
        ) as ledger:
            doctor.await_functions(ledger)
            with bar() as advance:
                imported, seconds = _timed(lambda: adr.import_folder(ledger, records, on_progress=advance))
            report.step(f"imported {folder}: {counted(len(imported.recorded), 'record')}", seconds)
            report.keys = {one.memory_id: key for key, one in imported.decisions.items()}
            report.head("What was imported")
            others = tuple(one for one in records.skipped if one.path != demo_questions.FILE)
            report.show(importing_report.text(replace(records, skipped=others), imported, shown=_LISTED))
            answers = [_ask(ledger, number, one, limit, report) for number, one in enumerate(asked, 1)]
            _without_question(ledger, limit, report)
    report.head("Done")
    report.step("nothing is left running: the servers are stopped and their folder is deleted")
    report.text(f"{time.perf_counter() - begun:.1f} s in all", "dim")
    if as_json:
        output.show({"imported": imported.as_dict(), "questions": answers}, Text, as_json=True)


@contextmanager
def _servers(report: Report) -> Iterator[StackInfo]:
    """A temporary stack; ended whatever happens, also by Ctrl-C and a plain kill."""
    try:
        from ranked_ledger.stack import temporary_stack  # noqa: PLC0415  the extra may be missing
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name) from None

    begun = time.perf_counter()
    with interruptible(), temporary_stack(on_progress=output.say) as stack:
        report.step("PostgreSQL, PostgREST and a gateway are running", time.perf_counter() - begun)
        yield stack.info()


def _push(info: StackInfo, report: Report) -> None:
    from ranked_ledger.stack.layout import default_home  # noqa: PLC0415  the extra may be missing

    program = supabase_cli.find(default_home() / "programs", output.say)
    with tempfile.TemporaryDirectory(prefix="rl-demo-") as project:
        plan = shipped.plan_copies(project, (shipped.OPEN_BRAIN, shipped.LEDGER))
        plan.carry_out()
        _, seconds = _timed(lambda: supabase_cli.push(program, Path(project), info.db_url))
    names = " and ".join(copy.migration.area.replace("_", " ") for copy in plan.copies)
    report.step(f"supabase db push: {names}", seconds)


def _ask(ledger: RankedLedger, number: int, question: Question, limit: int, report: Report) -> dict[str, Any]:
    recall, seconds = _timed(lambda: ledger.recall(question.ask, limit=limit))
    report.question(number, question, recall, seconds * 1000)
    plain = _by_words(ledger, question.ask)
    answer = {"ask": question.ask, "milliseconds": round(seconds * 1000), "recall": recall.as_dict()}
    retired = next((hit for hit in plain[:_READ] if hit.lifecycle_status == "superseded"), None)
    if retired is not None:
        detail = ledger.get(retired)
        successor = next((hit for hit in recall if hit.memory_id == detail.successor), None)
        report.without_ledger(plain[:_READ], retired, detail, successor)
        answer["without_ledger"] = {
            "retired": str(retired.memory_id),
            "retired_rank": plain.index(retired) + 1,
            "successor": None if detail.successor is None else str(detail.successor),
            "successor_rank": None if successor is None else successor.rank,
        }
    return answer


def _by_words(ledger: RankedLedger, ask: str) -> list[Hit]:
    """What a text search alone would answer: what matches, of every lifecycle, by its text relevance."""
    words = Weights(relevance=1, importance=0, recency=0, dependency=0)
    # the published text relevance is the database's own text search; the tuned one is part of what is shown
    found = ledger.recall(
        ask, limit=50, preset="published", weights=words, include_superseded=True, trace=False
    )
    matching = [hit for hit in found if hit.text_relevance]
    return sorted(matching, key=lambda hit: (-(hit.text_relevance or 0), hit.step_index))


def _without_question(ledger: RankedLedger, limit: int, report: Report) -> None:
    """What stays when there is nothing to match, neither a vector nor a word."""
    recall, seconds = _timed(lambda: ledger.recall(limit=limit))
    report.head("Without a question, as at the start of a run")
    report.text(
        "No embedding service was used above: relevance came from the words of title, text and rationale. "
        "Without a question it is 0: importance, recency and what rests on a decision rank alone."
    )
    report.hits(recall, "", seconds * 1000)


def _timed(what: Callable[[], T]) -> tuple[T, float]:
    begun = time.perf_counter()
    return what(), time.perf_counter() - begun
