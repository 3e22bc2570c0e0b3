"""What a run shows, in sentences: where ranking wins, where it does not, and where nothing can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ranked_ledger.evals import table
from ranked_ledger.evals.measures import Questions, smallest_budget
from ranked_ledger.evals.statistics import Bootstrap
from ranked_ledger.wording import counted


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Sentences, sorted by what they say about ranking."""

    wins: tuple[str, ...]
    loses: tuple[str, ...]
    open: tuple[str, ...]


def verdicts(questions: Questions, bootstrap: Bootstrap) -> Verdicts:
    """Of every ranked arm against every baseline, then of the lead's cost, and group by group."""
    said = [*_against(questions, bootstrap), *_served(questions), *_cheaper(questions)]
    for name, groups in (("stream", questions.by_stream()), ("kind of question", questions.by_kind())):
        if len(groups) > 1:
            said += _groups(questions, groups, name)
    wins, loses, undecided = ([text for sign, text in said if sign == wanted] for wanted in (1, -1, 0))
    return Verdicts(tuple(wins), tuple(loses), tuple(undecided))


def _against(questions: Questions, bootstrap: Bootstrap) -> Iterator[tuple[int, str]]:
    values = questions.values["MRR"]
    means = {arm: table.share(float(values[arm].mean())) for arm in questions.arms}
    ways = {1: "ranks better than", -1: "ranks worse than", 0: "is not told apart from"}
    for arm in table.RANKED:
        said: dict[int, list[str]] = {1: [], -1: [], 0: []}
        for baseline in table.BASELINES:
            if arm in values and baseline in values:
                figure = bootstrap.difference(values[arm], values[baseline], questions.clusters)
                limits = table.interval(figure, table.signed)
                difference = f"{means[baseline]}: {table.signed(figure.value)}, {limits}"
                said[figure.sign].append(f"{baseline} ({difference})")
        for sign, baselines in said.items():
            if baselines:
                yield sign, f"{arm}, MRR {means[arm]}, {ways[sign]} {'; '.join(baselines)}."


def _served(questions: Questions) -> Iterator[tuple[int, str]]:
    first, baseline = table.lead(questions.arms), table.reference(questions.arms)
    if first is None:
        return
    served = questions.values["served retired"]
    ours, theirs = int(served[first].sum()), int(served[baseline].sum())
    sign = (ours < theirs) - (ours > theirs)
    yield (
        sign,
        f"{first} shows a superseded decision without its successor, or a rejected one, among the first five "
        f"for {ours:,} of {counted(len(questions), 'question')}, {baseline} for {theirs:,}.",
    )


def _cheaper(questions: Questions) -> Iterator[tuple[int, str]]:
    first, baseline = table.lead(questions.arms), table.reference(questions.arms)
    five = float(questions.values["tokens at five"][baseline].mean())
    if first is None or not five:
        return
    hit_rate = float(questions.values["hit@5"][baseline].mean())
    reached = smallest_budget(questions, first, hit_rate)
    goal = f"{baseline}'s hit rate at five results ({table.share(hit_rate)})"
    if reached is None:
        yield -1, f"{first} does not reach {goal} within {questions.budgets[-1]:,} tokens."
        return
    budget, tokens = reached
    own = smallest_budget(questions, baseline, hit_rate)
    its = None if own is None else f"takes {own[0]:,}, with {table.whole(own[1])} on average"
    needed = five if own is None else own[1]
    yield (
        (tokens < needed) - (tokens > needed),
        f"{first} reaches {goal} within a budget of {budget:,} tokens, with {table.whole(tokens)} on "
        f"average: {tokens / five:.2f} of the {table.whole(five)} that five results of {baseline} are; "
        f"packed into budgets as well, {baseline} {its or 'does not reach it'}.",
    )


def _groups(questions: Questions, groups: Mapping[str, Questions], name: str) -> Iterator[tuple[int, str]]:
    first, baseline = table.lead(questions.arms), table.reference(questions.arms)
    if first is None:
        return
    below = []
    for group, part in groups.items():
        values = part.values["MRR"]
        ours, theirs = float(values[first].mean()), float(values[baseline].mean())
        if ours < theirs:
            figures = f"{table.share(ours)} against {table.share(theirs)}, {counted(len(part), 'question')}"
            below.append(f"{group} ({figures})")
    if below:
        yield (
            -1,
            f"By {name}, {first}'s MRR is below {baseline}'s in {len(below)} of {len(groups)}: "
            f"{'; '.join(below)}.",
        )
    else:
        plural = "kinds of question" if name != "stream" else "streams"
        yield 1, f"{first}'s MRR is at least {baseline}'s in all {len(groups)} {plural}."
