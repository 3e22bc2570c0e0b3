"""The values that the ledger answers: frozen, tolerant of newer servers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ranked_ledger import Decision, DecisionDetail, Hit, Page, Recall, models
from tests.unit import sdk_answers as answers


def hit(**changed: object) -> Hit:
    return Hit.model_validate({**answers.hit(**changed), "arguments": answers.ARGUMENTS})


def test_fields_of_a_newer_server_are_ignored() -> None:
    decision = Decision.model_validate(answers.decision(colour="blue", lifecycle_status="sleeping"))
    assert decision.lifecycle_status == "sleeping"
    assert not hasattr(decision, "colour")


def test_a_hit_names_what_it_rests_on_and_nothing_where_an_older_server_does_not_say() -> None:
    assert hit(depends_on=[str(answers.OTHER)]).depends_on == (answers.OTHER,)
    older = {name: value for name, value in answers.hit().items() if name != "depends_on"}
    assert Hit.model_validate(older).depends_on == ()
    shown = Recall((hit(depends_on=[str(answers.OTHER)]),)).as_dict()["hits"][0]
    assert shown["depends_on"] == [str(answers.OTHER)]


def test_a_decision_cannot_be_changed_and_can_be_a_member_of_a_set() -> None:
    decision = Decision.model_validate(answers.decision())
    with pytest.raises(ValidationError):
        decision.importance = 1  # type: ignore[misc]
    assert len({decision, Decision.model_validate(answers.decision())}) == 1
    assert len({DecisionDetail.model_validate(answers.decision()), hit()}) == 2


def test_recalls_and_pages_are_sequences() -> None:
    recall = Recall(hits=(hit(), hit(rank=2)))
    assert (len(recall), recall[1].rank, [one.rank for one in recall[:1]]) == (2, 2, [1])
    assert hit() in recall
    page = Page((Decision.model_validate(answers.decision()),), {"step_index": 1})
    assert (len(page), page[0].step_index, list(page[1:])) == (1, 12, [])


def test_unset_shows_what_it_is() -> None:
    assert repr(models.UNSET) == "UNSET"
