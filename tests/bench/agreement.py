"""Whether an answer that is not proven is the right one all the same: place by place, over many questions."""

from __future__ import annotations

from tests.bench.arms import OURS, REFERENCE, UNPROVEN, Question, Sessions
from tests.bench.bench import Bench
from tests.bench.findings import Finding
from tests.bench.plan import AGREEMENT, Vectors


def finding(bench: Bench, sessions: Sessions, questions: list[Question], rows: int, kind: Vectors) -> Finding:
    """Ours in exact mode stands for the reference, which would take days, after it equalled it on some questions."""
    asked = questions[: bench.plan.agreement]
    checked = asked[: bench.plan.spot_checks]
    with bench.bar("checking ours against the reference", len(checked)) as advance:
        equal = 0
        for question in checked:
            equal += sessions.memory_ids(OURS, question) == sessions.memory_ids(REFERENCE, question)
            advance(1)
    places = same = proven = 0
    with bench.bar(
        f"comparing answers that are not proven, {rows:,} decisions, {kind} vectors", len(asked)
    ) as advance:
        for question in asked:
            expected = sessions.memory_ids(OURS, question)
            found = sessions.answer(UNPROVEN, question)
            places += len(expected)
            # a missed decision moves all after it one place up, and each of them counts
            same += sum(one == row["memory_id"] for one, row in zip(expected, found, strict=False))
            proven += all(row.get("exact") for row in found)
            advance(1)
    return Finding(
        case="agreement",
        title="places of the answer, not proven",
        rows=rows,
        # an oracle that failed its check says nothing
        figure=100 * same / places if equal == len(checked) else 0.0,
        words=AGREEMENT.words,
        vectors=kind,
        bar=AGREEMENT,
        details={
            "questions": len(asked),
            "places": places,
            "same": same,
            "answers_that_called_themselves_exact": proven,
            "spot_checks": len(checked),
            "spot_checks_equal_to_the_reference": equal,
        },
    )
