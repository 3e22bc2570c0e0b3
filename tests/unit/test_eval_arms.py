"""The arms of an evaluation: their names, and which of them a run can have."""

from __future__ import annotations

import re

import pytest

from ranked_ledger.evals import arms
from ranked_ledger.evals.errors import EvalError

ALL_ARGUMENTS = {name for arm in arms.ARMS for name in arm.arguments}


def test_nine_arms_are_those_of_ci() -> None:
    nine = "none recency vector fts_and fts_or hybrid_rrf ranked_ledger_text ranked_ledger_vectors oracle"
    assert list(arms.STARRED) == nine.split()
    assert len(set(arms.NAMES)) == len(arms.NAMES)


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        EvalError, match=re.escape("there is no arm 'hybrid_rff'. Next: did you mean hybrid_rrf?")
    ):
        arms.chosen(["recency", "hybrid_rff"])
    with pytest.raises(EvalError, match="Next: the arms are none, recency"):
        arms.chosen(["zzz"])


def test_arms_come_in_one_order_whatever_order_they_are_named_in() -> None:
    assert [one.name for one in arms.chosen(["oracle", "none"])] == ["none", "oracle"]
    assert arms.chosen() == arms.ARMS


def test_without_vectors_an_arm_that_needs_them_is_absent_and_its_reason_is_kept() -> None:
    there, absent = arms.present(arms.ARMS, with_vectors=False, parameters=ALL_ARGUMENTS)
    assert not any(arm.needs_vectors for arm in there)
    assert absent["vector"] == absent["hybrid_rrf"] == "it needs an embedding model"
    assert "tuned_text" in [arm.name for arm in there]
    assert len(there) + len(absent) == len(arms.ARMS)


def test_an_older_ledger_lacks_the_arms_whose_arguments_it_does_not_take() -> None:
    there, absent = arms.present(arms.ARMS, with_vectors=True, parameters=ALL_ARGUMENTS - {"p_preset"})
    assert absent["tuned"] == "the installed recall_decisions takes no p_preset"
    assert "ranked_ledger_text" in [arm.name for arm in there]


def test_a_run_without_any_arm_is_refused() -> None:
    with pytest.raises(EvalError, match="none of these arms can run"):
        arms.present(arms.chosen(["vector"]), with_vectors=False, parameters=ALL_ARGUMENTS)


def test_a_score_is_negative_only_where_a_lifecycle_costs_something() -> None:
    lows = {arm.name: arm.bounds[0] for arm in arms.ARMS if arm.kind == "ledger"}
    assert lows["ranked_ledger_text"] == lows["ranked_ledger_vectors"] == lows["tuned_without_stale"] == 0
    assert lows["tuned"] == lows["tuned_without_retired_filter"] == -0.30
