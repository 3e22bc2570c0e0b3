"""The table of a run, for the terminal and for docs/benchmark.md. Both are made from the JSON alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.findings import Finding, findings, summary

BEGIN = "<!-- made by `python -m tests.bench report docs/benchmark.json`: begin -->"
END = "<!-- end -->"


def show(console: Console, document: dict[str, Any]) -> None:
    found = findings(document)
    console.print(_figures_table(found))
    console.print(_timings_table(found))
    for line in about(document):
        console.print(line, highlight=False, soft_wrap=True)


def replace_section(page: Path, document: dict[str, Any], plot: str) -> None:
    """The part of the page between the marks is the run's; the rest is written by hand."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END, 1)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(document, plot)}\n{END}{after}", encoding="utf-8")


def markdown(document: dict[str, Any], plot: str) -> str:
    found = findings(document)
    return "\n\n".join(
        (
            "\n".join(f"- {line}" for line in about(document)),
            "\n".join(_figures_markdown(found)),
            f"![Medians of every arm, case by case, on a logarithmic scale]({plot})",
            "\n".join(_timings_markdown(found)),
        )
    )


def about(document: dict[str, Any]) -> Iterator[str]:
    """Of what, on what, with what."""
    yield _commit(document)
    for run in document.get("added", ()):
        cases = dict.fromkeys(one["case"] for one in run["findings"])
        news = dict(run["versions"].items() - document["versions"].items())
        yield (
            f"{', '.join(cases)}, in a run of its own: {', '.join([_commit(run), *_numbered(news)])}; load average"
            f" {_numbers(run['machine']['load_average_before'])} before and {_numbers(run['load_average_after'])} after"
        )
    yield ", ".join(_numbered(document["versions"]))
    machine = document["machine"]
    yield (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}; load average"
        f" {_numbers(machine['load_average_before'])} before and {_numbers(document['load_average_after'])} after"
    )
    yield f"settings: {', '.join(f'{name} {value}' for name, value in document['settings']['changed'].items())}"
    yield f"at their defaults: {', '.join(f'{n} {v}' for n, v in document['settings']['left_at_their_defaults'].items())}"
    inputs = document["inputs"]
    yield f"texts: {inputs['texts']}"
    yield f"real vectors: {inputs['real_vectors']}; random vectors: {inputs['random_vectors']}"


def _commit(run: dict[str, Any]) -> str:
    changes = ", with uncommitted changes" if run["uncommitted_changes"] else ""
    return f"commit {run['commit']}{changes}, {run['taken_at']}"


def _numbered(versions: dict[str, str]) -> list[str]:
    return [f"{name} {number}" for name, number in versions.items()]


def _numbers(values: list[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _figure(finding: Finding) -> str:
    return f"{finding.figure:,.2f}"


def _bar(finding: Finding) -> str:
    if finding.bar is None:
        return "(no bar)"
    return f"{'at most' if finding.bar.at_most else 'at least'} {finding.bar.limit:g}"


def _verdict(finding: Finding) -> str:
    return {True: "ok", False: "missed", None: ""}[finding.met]


def _figures_table(found: list[Finding]) -> Table:
    table = Table(title="Figures and their bars (medians of one run)")
    for name, justify in (
        ("case", "left"), ("rows", "right"), ("vectors", "left"), ("figure", "right"), ("bar", "left"),
        ("", "left"), ("the figure is", "left"),
    ):  # fmt: skip
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for one in found:
        colour = {True: "green", False: "red", None: "dim"}[one.met]
        table.add_row(
            one.title,
            f"{one.rows:,}",
            one.vectors,
            _figure(one),
            _bar(one),
            f"[{colour}]{_verdict(one)}[/]",
            one.words,
        )
    return table


def _timings_table(found: list[Finding]) -> Table:
    table = Table(title="Milliseconds")
    for name in ("case", "rows", "vectors", "arm", "median", "p95", "repetitions"):
        table.add_column(name, justify="left" if name in ("case", "vectors", "arm") else "right")
    for one in found:
        head = [one.title, f"{one.rows:,}", one.vectors]
        for arm, raw in one.timings.items():
            table.add_row(*head, arm, *_of_arm(raw))
            head = ["", "", ""]
        if one.timings:
            table.add_section()
    return table


def _of_arm(raw: Any) -> tuple[str, str, str]:
    found = summary(raw)
    return f"{found['median_ms']:,.2f}", f"{found['p95_ms']:,.2f}", f"{found['repetitions']}"


def _figures_markdown(found: list[Finding]) -> Iterator[str]:
    yield "| case | rows | vectors | figure | bar | |"
    yield "|---|---:|---|---:|---|---|"
    for one in found:
        cells = (
            one.title,
            f"{one.rows:,}",
            one.vectors,
            f"{_figure(one)} {one.words}",
            _bar(one),
            _verdict(one),
        )
        yield f"| {' | '.join(cells)} |"


def _timings_markdown(found: list[Finding]) -> Iterator[str]:
    yield "| case | rows | vectors | arm | median ms | p95 ms | repetitions |"
    yield "|---|---:|---|---|---:|---:|---:|"
    for one in found:
        for arm, raw in one.timings.items():
            yield f"| {' | '.join((one.title, f'{one.rows:,}', one.vectors, arm, *_of_arm(raw)))} |"
