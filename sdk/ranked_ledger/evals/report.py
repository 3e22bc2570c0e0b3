"""What a run found, as one page or as markdown: the same sections, made from the log alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any, Final

from ranked_ledger.evals import disclosing, plots, table
from ranked_ledger.evals.measures import MEASURES, Questions, measure
from ranked_ledger.evals.runs import BUILT_IN, TUNING_STREAMS, Run
from ranked_ledger.evals.statistics import LEVEL, RESAMPLES, Bootstrap
from ranked_ledger.evals.verdicts import verdicts
from ranked_ledger.wording import counted


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, one under the other. `tone`: what they say about ranking."""

    texts: tuple[str, ...]
    tone: table.Tone = ""


Block = Lines | table.Table | plots.Plot


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A run and what is said of it. `html()` is a whole page, `markdown()` a part of a document."""

    title: str
    sections: tuple[Section, ...]

    def html(self) -> str:
        """One page that needs nothing else: no script, no network."""
        body = "\n".join(_html_section(number, one) for number, one in enumerate(self.sections))
        links = "".join(
            f'<a href="#s{number}">{escape(one.title)}</a>' for number, one in enumerate(self.sections)
        )
        return Template(_page()).substitute(title=escape(self.title), links=links, body=body)

    def markdown(self, *, level: int = 2) -> str:
        """Without the plots; headings begin at `level`."""
        parts = []
        for section in self.sections:
            parts.append(f"{'#' * level} {section.title}")
            parts += [text for block in section.blocks if (text := _markdown_block(block))]
        return "\n\n".join(parts) + "\n"


def report(run: Run, *, command: str, resamples: int = RESAMPLES) -> Report:
    """Everything that a run's log shows. `command`: what makes this report, as the report names it."""
    everything = measure(run)
    bootstrap = Bootstrap(run.seed, resamples)
    reported, tuned_on = everything.reported(), everything.tuned_on()
    both = bool(len(reported) and len(tuned_on))
    chief = reported if len(reported) else everything
    made = _dataset(run).get("name") == BUILT_IN
    where = _where(chief, both=both, tuned=not len(reported), made=made)
    sections = [
        Section("Verdict", tuple(_verdict(chief, bootstrap, where))),
        Section("This run", (Lines(tuple(about(run, everything, command))),)),
        Section("What is found", tuple(_found(chief, bootstrap))),
        Section("What it costs", tuple(_costs(chief, bootstrap))),
    ]
    if table.ablations(chief.arms) and "tuned" in chief.arms:
        sections.append(Section("What each part is worth", tuple(_ablations(chief, bootstrap))))
    sections += _groups(everything, chief, bootstrap)
    if both:
        streams = counted(len(tuned_on.by_stream()), "stream")
        lines = Lines((f"{counted(len(tuned_on), 'question')} of {streams} that weights were chosen on.",))
        tables = table.found(tuned_on, bootstrap, table.compared(tuned_on.arms))
        sections.append(Section("The streams that were tuned on", (lines, tables)))
    sections.append(Section("What to know", tuple(_notes(run, everything, bootstrap))))
    return Report(f"Recall policies measured: {_dataset(run).get('name', run.name)}", tuple(sections))


def about(run: Run, questions: Questions, command: str) -> Iterator[str]:
    """Of what, with what, by which commands."""
    data = _dataset(run)
    head = run.header
    yield (
        f"data: {data.get('name', '?')}, digest {data.get('digest', '?')}; "
        f"{counted(len(questions), 'question')}, {counted(len(questions.by_stream()), 'stream')}, "
        f"{counted(len(questions.arms), 'arm')}, "
        f"{counted(len(run.rows), 'row')}"
    )
    model = head.get("model") or "none"
    dimension = f", {head['dimension']} dimensions" if head.get("dimension") else ""
    yield f"embeddings: {model}{dimension}{_ranges(run.known('ranges'))}"
    if unfitted := run.known("unfitted"):
        yield f"no range fitted, cosines as they are or as fitted before: {_said(unfitted)}"
    if made := disclosing.said(str(head.get("command") or "")):
        yield f"the run: {made}"
    if weights := (head.get("presets") or {}).get("tuned"):
        yield f"the preset tuned: {_said(weights)}"
    yield f"this report: {command}"
    at = f", made {head['taken_at']}" if head.get("taken_at") else ""
    yield f"the log: {run.name}, SHA-256 {run.digest[:16]}, seed {run.seed}{at}"
    if versions := head.get("versions"):
        yield _said(versions)


def _dataset(run: Run) -> Mapping[str, Any]:
    found = run.header.get("dataset")
    return found if isinstance(found, Mapping) else {}


def _ranges(ranges: object) -> str:
    """Which cosines count as 0 and as 1: of every workspace, or the span of many of them."""
    if not isinstance(ranges, Mapping) or not ranges:
        return ""
    floors, ceilings = zip(*ranges.values(), strict=True)
    said = (
        f"{min(of):.3f}" if max(of) - min(of) < 0.0005 else f"{min(of):.3f}..{max(of):.3f}"
        for of in (floors, ceilings)
    )
    return f"; cosines that count as 0 and as 1, by workspace: {' and '.join(said)}"


def _said(value: object) -> str:
    """A value of the header as people read it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return " to ".join(_said(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _where(chief: Questions, *, both: bool, tuned: bool, made: bool) -> str:
    streams = len(chief.by_stream())
    of = f"{counted(len(chief), 'question')} of {counted(streams, 'stream')}"
    if tuned:
        return f"{of}, all of which weights were chosen on: these figures show no more than that"
    return f"{of} that nothing was tuned on" if both else f"{of}{_MADE}" if made else of


def _verdict(chief: Questions, bootstrap: Bootstrap, where: str) -> Iterator[Block]:
    found = verdicts(chief, bootstrap)
    yield Lines(
        (
            f"{where}. Intervals hold {LEVEL * 100:.0f} % of {bootstrap.resamples:,} resamples; questions of "
            "one stream with the same answers are drawn together, "
            f"{counted(len(set(chief.clusters)), 'group')}.",
        )
    )
    groups: tuple[tuple[str, tuple[str, ...], table.Tone], ...] = (
        ("Where ranking wins:", found.wins, "good"),
        ("Where it does not:", found.loses, "bad"),
        ("Where nothing can be told:", found.open, "best"),
    )
    for title, texts, tone in groups:
        yield Lines((title,))
        yield Lines(texts, tone) if texts else Lines(("nowhere in this run.",), "best")


def _found(chief: Questions, bootstrap: Bootstrap) -> Iterator[Block]:
    arms = table.compared(chief.arms)
    baseline = table.reference(arms)
    mrr = bootstrap.means({arm: chief.values["MRR"][arm] for arm in arms}, chief.clusters)
    ordered = dict(sorted(mrr.items(), key=lambda one: -one[1].value))
    yield plots.intervals(ordered, "MRR by arm, with 95 % intervals", shown=table.share, strong=table.RANKED)
    yield table.found(chief, bootstrap, arms)
    others = [arm for arm in ordered if arm != baseline]
    if others:
        differences = {
            arm: bootstrap.difference(chief.values["MRR"][arm], chief.values["MRR"][baseline], chief.clusters)
            for arm in others
        }
        yield plots.intervals(
            differences, f"MRR minus that of {baseline}, question by question", shown=table.signed, zero=True
        )
        yield Lines((f"Each arm minus {baseline}, in pairs:",))
        yield table.paired(chief, bootstrap, arms, baseline)
    first = table.lead(arms)
    if first is not None and any(arm in table.BASELINES for arm in arms):
        yield Lines((f"{first} minus each arm that does not rank, in pairs:",))
        yield table.led(chief, bootstrap, first)


def _costs(chief: Questions, bootstrap: Bootstrap) -> Iterator[Block]:
    arms = table.compared(chief.arms)
    curves = [arm for arm in (*reversed(table.RANKED), *table.CHIEF_BASELINES) if arm in arms]
    if chief.budgets and curves:
        rates = {arm: [float(rate) for rate in chief.budget_hits[arm].mean(axis=0)] for arm in curves}
        yield plots.curves(
            rates, chief.budgets, "Share of questions with a right answer in the budget", strong=table.RANKED
        )
    yield table.cost(chief, bootstrap, arms)
    if (needed := table.budgets(chief, arms)) is not None:
        baseline = table.reference(arms)
        yield Lines((f"The budget at which an arm finds as often as {baseline} does with five results:",))
        yield needed
    yield Lines((_TIMES,))
    yield table.latency(chief, bootstrap, arms)


def _ablations(chief: Questions, bootstrap: Bootstrap) -> Iterator[Block]:
    values = chief.values["MRR"]
    figures = {
        f"without {table.part_of(arm)}": bootstrap.difference(values["tuned"], values[arm], chief.clusters)
        for arm in table.ablations(chief.arms)
    }
    yield Lines(
        ("The tuned policy minus itself without one part, question by question; above 0 the part helps.",)
    )
    yield plots.intervals(
        figures, "MRR of the tuned policy minus that without a part", shown=table.signed, zero=True
    )
    yield table.ablated(chief, bootstrap)


def _groups(everything: Questions, chief: Questions, bootstrap: Bootstrap) -> Iterator[Section]:
    streams, kinds = everything.by_stream(), chief.by_kind()
    if len(streams) > 1:
        ordered = dict(sorted(streams.items(), key=lambda one: (one[0] in TUNING_STREAMS, one[0])))
        yield Section("By stream", (Lines(("MRR.",)), table.grouped(ordered, bootstrap, "stream")))
    if len(kinds) > 1:
        yield Section("By kind of question", (Lines(("MRR.",)), table.grouped(kinds, bootstrap, "kind")))


def _notes(run: Run, questions: Questions, bootstrap: Bootstrap) -> Iterator[Block]:
    yield Lines((_anomalies(run),), "bad" if run.anomalies or run.end is None else "good")
    texts = []
    if loaded := run.known("loaded"):
        texts.append(f"Loaded: {_said({str(k).replace('_', ' '): v for k, v in loaded.items()})}.")
    absent = run.header.get("absent") or {}
    if isinstance(absent, Mapping):
        texts += [f"Not in this run: {arm} ({why})." for arm, why in absent.items()]
    if missing := len({row["question"] for row in run.rows}) - len(questions):
        texts.append(f"{counted(missing, 'question')} left out: not every arm was asked.")
    texts += [
        "MRR counts the first right answer among 50 hits; hit@n, whether one is among the first n; nDCG@10, "
        "all right answers among the first ten.",
        "Served retired: among the first five is a superseded decision, and no later link of its chain that "
        "was in force then is among the first ten; or a rejected one, also where the question is about it.",
        "Misled: among the first five is a decision that the question names as no answer; of the questions "
        "that name one.",
        "Tokens are a quarter of the characters, rounded up. Where no right answer is among the hits, no "
        "number of tokens reaches it; of an arm that finds less than half, the median is not found either.",
        "In a budget, what does not fit whole is shortened to its summary: packed, results cost less "
        "than five in full, and a larger budget may hold fewer of them, in full.",
        f"Intervals are drawn from seed {bootstrap.seed}: the same log gives the same report.",
        f"Less is better: {', '.join(name for name, more in MEASURES.items() if not more)}.",
    ]
    yield Lines(tuple(texts))


def _anomalies(run: Run) -> str:
    if run.cut:
        return "The log ends within a line, which is left out: the run was cut off before its anomalies."
    if run.end is None:
        return "The log has no last line: the run did not finish, and nobody looked for anomalies."
    if run.anomalies:
        return f"Anomalies: {_said(run.anomalies)}. These figures are not to be trusted."
    return f"0 anomalies in {counted(len(run.rows), 'row')}."


def _markdown_block(block: Block) -> str:
    match block:
        case table.Table():
            return table.markdown(block)
        case plots.Plot():
            return ""
        case Lines(said):
            texts = [table.as_markdown(text) for text in said]
            return (
                texts[0] if len(texts) == 1 and not block.tone else "\n".join(f"- {text}" for text in texts)
            )


def _html_section(number: int, section: Section) -> str:
    blocks = "\n".join(map(_html_block, section.blocks))
    return f'<section id="s{number}"><h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _html_block(block: Block) -> str:
    match block:
        case table.Table():
            return _html_table(block)
        case plots.Plot(svg, caption):
            return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
        case Lines(texts, tone):
            if len(texts) == 1 and not tone:
                return f"<p>{escape(texts[0])}</p>"
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            return f'<ul class="{tone}">{items}</ul>'


def _html_table(shown: table.Table) -> str:
    kinds = ["word" if not place or name in shown.words else "" for place, name in enumerate(shown.columns)]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>'
        for kind, name in zip(kinds, shown.columns, strict=True)
    )
    rows = "".join(f"<tr>{''.join(_html_cells(row, kinds))}</tr>" for row in shown.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _html_cells(row: Sequence[table.Cell], kinds: Sequence[str]) -> Iterator[str]:
    for place, (cell, kind) in enumerate(zip(row, kinds, strict=True)):
        small = f"<small>{escape(cell.small)}</small>" if cell.small else ""
        tag = "td" if place else "th"
        scope = "" if place else ' scope="row"'
        yield f'<{tag}{scope} class="{kind} {cell.tone}">{escape(cell.text)}{small}</{tag}>'


_MADE: Final = "; made streams of other seeds, by the same generator, were tuned on"
_TIMES: Final = (
    "Milliseconds of a call in one database session. Each arm's time holds what all share, rendering 50 hits "
    "and writing the trace; that of arms that are SQL of the evaluation holds the harness's own work too. "
    "So they do not say what is faster: docs/benchmark.md measures speed."
)
_TEMPLATE: Final = "report.html"


@cache
def _page() -> str:
    return resources.files("ranked_ledger.evals").joinpath(_TEMPLATE).read_text(encoding="utf-8")
