"""What a workspace chose: in which language its decisions are read, and how its models spread their cosines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.rpc import HOSTILE, Ledger, at_once, call

ENGLISH = "pg_catalog.english"


def settings(ledger: Ledger) -> dict[str, Any]:
    answer = ledger("get_workspace_settings")
    assert isinstance(answer, dict)
    return answer


def found(ledger: Ledger, query: str) -> list[str]:
    """Contents of the decisions that have a word of the question."""
    hits = ledger("recall_decisions", query=query, trace=False)["hits"]
    return sorted(hit["content"] for hit in hits if hit["text_relevance"])


def test_a_workspace_that_chose_nothing_has_the_defaults(ledger: Ledger) -> None:
    assert settings(ledger) == {"workspace_id": "acme", "text_config": ENGLISH, "similarity_ranges": []}


@pytest.mark.parametrize("workspace", HOSTILE, ids=range(len(HOSTILE)))
def test_a_workspace_of_any_name_keeps_what_it_chose(shared_ledger: Ledger, workspace: str) -> None:
    ledger = Ledger(shared_ledger.database, workspace=workspace)
    ledger("set_text_config", text_config="german")
    ledger("set_similarity_range", embedding_model=workspace, floor=0.1, ceiling=0.2)
    assert settings(ledger) == {
        "workspace_id": workspace,
        "text_config": "pg_catalog.german",
        "similarity_ranges": [{"embedding_model": workspace, "floor": 0.1, "ceiling": 0.2}],
    }


# --- the text search configuration --------------------------------------------------------------------------------


def test_german_decisions_are_found_by_another_inflection_once_they_are_read_in_german(
    ledger: Ledger,
) -> None:
    invoices = "Rechnungen werden nach dem Versand nicht geändert"
    ledger.record(invoices)
    assert found(ledger, "Darf eine Rechnung geändert werden?") == [invoices], "by the word that is the same"
    assert found(ledger, "Rechnung") == []
    answer = ledger("set_text_config", text_config="german")
    assert answer == settings(ledger) | {"changed": True, "read_anew": 1}
    assert answer["text_config"] == "pg_catalog.german"
    assert found(ledger, "Rechnung") == [invoices], "what was there already"
    payments = "Zahlungen werden dreimal wiederholt"
    ledger.record(payments)
    assert found(ledger, "Zahlung") == [payments], "and what came after"


def test_back_to_english_what_is_there_is_read_in_english_again(ledger: Ledger) -> None:
    ledger("set_text_config", text_config="german")
    ledger.record("Invoices are immutable")
    ledger("set_text_config")
    assert settings(ledger)["text_config"] == ENGLISH
    assert found(ledger, "invoice") == ["Invoices are immutable"]
    assert ledger("set_text_config", text_config=None)["changed"] is False


def test_another_workspace_is_not_touched(ledger: Ledger) -> None:
    globex = Ledger(ledger.database, workspace="globex")
    globex.record("Rechnungen bleiben")
    ledger.record("Rechnungen bleiben")
    assert ledger("set_text_config", text_config="german")["read_anew"] == 1
    assert settings(globex)["text_config"] == ENGLISH
    assert found(globex, "Rechnung") == []


def test_a_repeat_changes_nothing_and_reads_what_was_missed(ledger: Ledger) -> None:
    memory_id = ledger.id("Rechnungen bleiben")
    ledger("set_text_config", text_config="german")
    ledger.database.owner.execute(
        "update agent_decision_ledger set search_lexemes = to_tsvector('english', 'Rechnungen bleiben') where memory_id = %s",
        (memory_id,),
    )
    assert found(ledger, "Rechnung") == []
    answer = ledger("set_text_config", text_config="german")
    assert (answer["changed"], answer["read_anew"]) == (False, 1)
    assert found(ledger, "Rechnung") == ["Rechnungen bleiben"]


def test_counts_the_decisions_in_force(ledger: Ledger) -> None:
    ledger.record("eins")
    aside = ledger.id("zwei")
    retype = "update agent_memories set memory_type = %s where id = %s"
    ledger.database.owner.execute(retype, ("lesson", aside))
    assert ledger("set_text_config", text_config="german")["read_anew"] == 1
    ledger.database.owner.execute(retype, ("decision", aside))
    assert ledger("set_text_config", text_config="simple")["read_anew"] == 2


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("german", "pg_catalog.german"),
        ("GERMAN", "pg_catalog.german"),
        ("pg_catalog.simple", "pg_catalog.simple"),
        ('"german"', "pg_catalog.german"),
        ("extensions.ours", "extensions.ours"),
        ('extensions."Our Own"', 'extensions."Our Own"'),
    ],
)
def test_a_configuration_is_kept_by_its_full_name(ledger: Ledger, given: str, kept: str) -> None:
    for name in ("ours", '"Our Own"'):
        ledger.database.superuser.execute(
            f"create text search configuration extensions.{name} (copy = pg_catalog.german)"
        )
    assert ledger("set_text_config", text_config=given)["text_config"] == kept
    ledger.record("Rechnungen bleiben")
    assert bool(found(ledger, "Rechnung")) is (kept != "pg_catalog.simple")


@pytest.mark.parametrize(
    "given",
    [
        "klingon",
        "",
        " ",
        "public.german",
        "a.b.c",
        "3748",
        "german; drop table thoughts",
        "'german'",
        "x" * 100_000,
        '"',
        *HOSTILE,
    ],
    ids=lambda given: repr(given[:20]),
)
def test_an_unknown_configuration_is_refused_and_the_known_ones_are_named(
    shared_ledger: Ledger, given: str
) -> None:
    ledger = Ledger(shared_ledger.database, workspace="refused")
    refused = ledger.refused("22023", "set_text_config", text_config=given)
    assert given[:100] in str(refused.message_primary)
    assert len(str(refused.message_primary)) < 200
    assert "pg_ts_config" in str(refused.message_hint)
    assert ", english, " in str(refused.message_hint)
    assert settings(ledger)["text_config"] == ENGLISH


def test_two_changes_at_once_leave_one_of_them_whole(ledger: Ledger) -> None:
    ledger.record("Rechnungen bleiben, invoices stay")

    def choose(name: str) -> Any:
        return lambda connection: call(connection, "set_text_config", workspace_id="acme", text_config=name)

    answers = at_once(ledger.database, [choose(name) for name in ("german", "english", "simple") * 3])
    assert [type(answer) for answer in answers] == [dict] * 9
    config = settings(ledger)["text_config"]
    stored = ledger.database.rows(
        "select l.search_lexemes = ranked_ledger.decision_lexemes(%s::regconfig, m.content, l.rationale, m.summary) "
        "from agent_decision_ledger l join agent_memories m on m.id = l.memory_id",
        (config,),
    )
    assert stored == [(True,)]


# --- similarity ranges --------------------------------------------------------------------------------------------


def test_a_range_is_kept_changed_and_taken_back(ledger: Ledger) -> None:
    e5 = {"embedding_model": "multilingual-e5-small", "floor": 0.75, "ceiling": 0.86}
    assert ledger("set_similarity_range", **e5) == settings(ledger) | {"changed": True}
    assert settings(ledger)["similarity_ranges"] == [e5]
    assert ledger("set_similarity_range", **e5)["changed"] is False
    e5["ceiling"] = 0.9
    assert ledger("set_similarity_range", **e5)["changed"] is True
    other = {"embedding_model": "ada", "floor": -1, "ceiling": 1}
    ledger("set_similarity_range", **other)
    assert settings(ledger)["similarity_ranges"] == [other, e5], "by the model's name"
    assert ledger("set_similarity_range", embedding_model="ada")["changed"] is True
    assert ledger("set_similarity_range", embedding_model="ada", floor=None, ceiling=None)["changed"] is False
    assert settings(ledger)["similarity_ranges"] == [e5]


def test_a_range_is_of_its_workspace(ledger: Ledger) -> None:
    globex = Ledger(ledger.database, workspace="globex")
    ledger("set_similarity_range", embedding_model="m", floor=0.1, ceiling=0.2)
    assert settings(globex)["similarity_ranges"] == []
    assert globex("set_similarity_range", embedding_model="m")["changed"] is False
    assert len(settings(ledger)["similarity_ranges"]) == 1


def test_a_recall_by_that_model_is_weighed_in_the_range(ledger: Ledger) -> None:
    def numbers(first: float, second: float) -> str:
        return f"[{first},{second}{',0' * 1534}]"

    ledger.record("near", embedding=numbers(0.8, 0.6), embedding_model="e5")
    ask = {"query_embedding": numbers(1, 0), "embedding_model": "e5", "trace": False}

    def relevance(**changed: Any) -> float:
        (hit,) = ledger("recall_decisions", **{**ask, **changed})["hits"]
        return float(hit["relevance"])

    assert relevance() == pytest.approx(0.8)
    ledger("set_similarity_range", embedding_model="e5", floor=0.75, ceiling=0.85)
    assert relevance() == pytest.approx(0.5)
    assert relevance(embedding_model="another") == pytest.approx(0.8)
    ledger("set_similarity_range", embedding_model="e5")
    assert relevance() == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("floor", "ceiling"),
    [
        (0.5, 0.5),
        (0.6, 0.5),
        (-1.1, 0.5),
        (0.5, 1.1),
        (0.5, None),
        (None, 0.5),
        ("NaN", 0.5),
        (0.5, "NaN"),
        ("NaN", "NaN"),
        ("-Infinity", "Infinity"),
    ],
)
def test_what_is_no_range_is_refused(shared_ledger: Ledger, floor: Any, ceiling: Any) -> None:
    refused = shared_ledger.refused(
        "22023", "set_similarity_range", embedding_model="m", floor=floor, ceiling=ceiling
    )
    assert "p_floor and p_ceiling" in str(refused.message_primary)


@pytest.mark.parametrize("model", ["", "  ", None, "m" * 1_001])
def test_a_model_has_a_name(shared_ledger: Ledger, model: str | None) -> None:
    shared_ledger.refused("22023", "set_similarity_range", embedding_model=model, floor=0.1, ceiling=0.2)


def test_the_table_itself_refuses_what_is_no_range(ledger: Ledger) -> None:
    for floor, ceiling in (("NaN", 0.5), (0.5, "NaN"), (0.5, 0.5), (-2, 0), (0, 2), ("-Infinity", 0)):
        with pytest.raises(Exception, match="similarity_ranges_are_cosines"):
            ledger.database.owner.execute(
                "insert into ranked_ledger.similarity_ranges values ('acme', 'm', %s, %s)", (floor, ceiling)
            )


@pytest.mark.parametrize("function", ["get_workspace_settings", "set_text_config", "set_similarity_range"])
@pytest.mark.parametrize("workspace", ["", " ", None], ids=repr)
def test_a_workspace_has_a_name(shared_ledger: Ledger, function: str, workspace: str | None) -> None:
    more = {"embedding_model": "m"} if function == "set_similarity_range" else {}
    shared_ledger.refused("22023", function, workspace_id=workspace, **more)


def test_a_workspace_whose_name_cannot_be_recorded_in_keeps_no_setting(shared_ledger: Ledger) -> None:
    long = {"workspace_id": "w" * 1_001}
    shared_ledger.refused("22023", "set_text_config", **long)
    shared_ledger.refused("22023", "set_similarity_range", embedding_model="m", **long)
