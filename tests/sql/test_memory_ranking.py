"""How recall_memories ranks: by vector where models agree, else by words, and by age; exactly, in one scan."""

from __future__ import annotations

import math
import random
from uuid import uuid4

import pytest

from tests.sql.memory_rpc import Caller, Memories
from tests.sql.rpc import HOSTILE

SMALL = {"embedding_model": "small"}


@pytest.fixture
def org(shared_memories: Memories) -> str:
    return shared_memories.new_org()


@pytest.fixture
def service(shared_memories: Memories, org: str) -> Caller:
    return shared_memories.as_service(org)


def test_vectors_of_two_models_or_sizes_are_never_compared(
    shared_memories: Memories, service: Caller
) -> None:
    insert = shared_memories.insert
    insert("small red", service.org, author="person", embedding="[0,1]", embedding_model="small")
    insert("large red", service.org, author="person", embedding="[1,0]", embedding_model="large")
    insert("three red", service.org, author="person", embedding="[1,0,0]", embedding_model="small")
    insert("nameless red", service.org, author="person", embedding="[1,0]")
    insert("zero red", service.org, author="person", embedding="[0,0]", embedding_model="small")
    insert("plain", service.org, author="person")

    hits = service.recall("red things", query_embedding="[1,0]", **SMALL)["hits"]
    found = {hit["text"]: (hit["relevance_source"], round(hit["relevance"], 6)) for hit in hits}
    assert found == {
        "small red": ("cosine", 0), "large red": ("fts", 0.5), "three red": ("fts", 0.5), "nameless red": ("fts", 0.5),
        "zero red": ("fts", 0.5), "plain": ("fts", 0),
    }  # fmt: skip
    only_vector = service.recall(query_embedding="[1,0]", **SMALL)["hits"]
    assert {hit["text"]: hit["relevance_source"] for hit in only_vector} == {
        "small red": "cosine", "large red": "none", "three red": "none", "nameless red": "none",
        "zero red": "none", "plain": "none",
    }  # fmt: skip
    assert {hit["relevance_source"] for hit in service.recall()["hits"]} == {"none"}
    assert {hit["relevance_source"] for hit in service.recall("")["hits"]} == {"fts"}


@pytest.mark.parametrize("seed", range(6))
def test_every_memory_in_scope_is_weighed_as_the_formula_says(shared_memories: Memories, seed: int) -> None:
    rand = random.Random(seed)
    service = shared_memories.as_service(shared_memories.new_org())
    words = ("apple", "pear", "plum", "fig", "quince")
    rows = []
    for _ in range(700):
        said = rand.choices(words, k=rand.randint(1, 6))
        vector = [rand.gauss(0.3, 1) for _ in range(4)] if rand.random() < 0.7 else None
        model = rand.choice(("small", "large")) if vector else ""
        days = rand.choice((0, rand.random(), rand.uniform(0, 400), 21_000))
        rows.append((str(uuid4()), said, vector, model, days))
    with shared_memories.database.service.cursor() as cursor:
        cursor.executemany(
            """insert into long_term_memory.agent_memories
              (id, org_id, subject_type, text, author, embedding, embedding_model, created_date)
              values (%s, %s, 'workspace', %s, 'person', %s::real[]::vector, %s, now() - %s * interval '1 day')""",
            [(i, service.org, " ".join(said), vector, model, days) for i, said, vector, model, days in rows],
        )

    for _ in range(8):
        query = rand.choice((None, "", *(" ".join(rand.sample(words, k)) for k in (1, 2, 3))))
        question = [rand.gauss(0.3, 1) for _ in range(4)] if rand.random() < 0.7 else None
        half_life, count = rand.choice((0.5, 30, 1000)), rand.choice((1, 10, 200, 1000))
        least = rand.choice((None, 0, 0.3, 0.9))
        weights = rand.choice(((0.75, 0.25), (1, 0), (0, 1), (0, 0), (3, 7)))
        answer = service.recall(
            query, query_embedding=None if question is None else str(question),
            embedding_model=None if question is None else "small", match_count=count, half_life_days=half_life,
            w_similarity=weights[0], w_recency=weights[1], min_relevance=least,
        )  # fmt: skip
        expected = {}
        for memory_id, said, vector, model, _ in rows:
            if question is not None and vector is not None and model == "small":
                product = sum(a * b for a, b in zip(question, vector, strict=True))
                relevance = min(1, max(0, product / math.hypot(*question) / math.hypot(*vector)))
            else:
                occurrences = sum(said.count(word) for word in (query or "").split())
                relevance = occurrences / (1 + occurrences)
            expected[memory_id] = relevance
        ages = {hit["memory_id"]: hit["age_days"] for hit in answer["hits"]}
        for hit in answer["hits"]:
            assert hit["relevance"] == pytest.approx(expected[hit["memory_id"]], abs=1e-6)
            assert hit["recency"] == pytest.approx(
                math.exp(-min(700, ages[hit["memory_id"]] / half_life)), abs=1e-9
            )
            assert hit["score"] == pytest.approx(
                weights[0] * hit["relevance"] + weights[1] * hit["recency"], abs=1e-12
            )
        # no other memory would have scored more than the last one
        known = {i: days for i, _, _, _, days in rows}
        scores = {
            i: weights[0] * r + weights[1] * math.exp(-min(700, known[i] / half_life))
            for i, r in expected.items()
            if r >= (least or 0) - 1e-6
        }
        found = [hit["score"] for hit in answer["hits"]]
        assert found == sorted(found, reverse=True)
        assert len(found) == pytest.approx(min(count, len(scores)), abs=2 if least else 0)
        left_out = [
            score for i, score in scores.items() if i not in ages and expected[i] > (least or 0) + 1e-6
        ]
        if found and left_out and len(found) == count:
            assert max(left_out) <= found[-1] + 1e-3
        assert [hit["rank"] for hit in answer["hits"]] == list(range(1, len(found) + 1))


def test_equal_scores_are_ordered_by_age_and_then_by_id(shared_memories: Memories, service: Caller) -> None:
    with shared_memories.database.superuser.transaction():
        ids = sorted(
            shared_memories.insert(
                f"m{number}", service.org, author="person", created_date="2020-01-01T00:00:00Z"
            )
            for number in range(20)
        )
        newer = [
            shared_memories.insert(
                f"n{number}", service.org, author="person", created_date=f"2020-01-0{number}T00:00:00Z"
            )
            for number in (2, 3)
        ]
    hits = service.recall(w_recency=0, match_count=12)["hits"]
    assert [hit["memory_id"] for hit in hits] == [*reversed(newer), *ids[:10]]


def test_the_best_old_memory_is_found_behind_thousands_of_newer_ones(
    shared_memories: Memories, service: Caller
) -> None:
    shared_memories.database.service.execute(
        """insert into long_term_memory.agent_memories (org_id, subject_type, text, author, embedding, embedding_model)
        select %s, 'workspace', 'newer ' || n, 'person', array[1, -n / 10000.0]::real[]::vector, 'small'
        from generate_series(1, 6000) as n""",
        (service.org,),
    )
    old = shared_memories.insert(
        "old", service.org, author="person", embedding="[0,1]", embedding_model="small"
    )
    shared_memories.age(old, 300)
    (best, second) = service.recall(query_embedding="[0,1]", match_count=2, w_recency=0.1, **SMALL)["hits"]
    assert best["memory_id"] == old
    assert second["relevance"] == 0


def test_arguments_without_a_meaning_take_their_defaults(service: Caller) -> None:
    defaults = service.recall()["arguments"]
    assert defaults == {
        "p_subject_type": None, "p_subject_id": None, "p_workspace_id": None, "p_match_count": 10, "p_half_life_days": 30,
        "p_w_similarity": 0.75, "p_w_recency": 0.25, "p_min_relevance": None, "p_include_unreviewed": False,
        "p_embedding_model": None, "p_run_id": None, "p_max_tokens": None, "has_text": False, "has_embedding": False,
    }  # fmt: skip
    for half_life in (None, 0, -1, "NaN", "Infinity"):
        assert service.recall(half_life_days=half_life, match_count=-3)["arguments"] == defaults
    assert service.recall(match_count=5000)["arguments"]["p_match_count"] == 1000
    assert service.recall(min_relevance=-3)["arguments"]["p_min_relevance"] is None
    assert service.recall(half_life_days=1e-300)["hits"] == []


def test_weights_as_large_as_they_may_be_still_rank(shared_memories: Memories, service: Caller) -> None:
    shared_memories.insert("red", service.org, author="person")
    (hit,) = service.recall("red", w_similarity=1e300, w_recency=1e300)["hits"]
    assert hit["score"] == pytest.approx(1.5e300)


@pytest.mark.parametrize("text", HOSTILE)
def test_any_question_is_answered_by_its_words(shared_memories: Memories, service: Caller, text: str) -> None:
    shared_memories.insert(text, service.org, author="person")
    shared_memories.insert("nothing of it", service.org, author="person")
    answer = service.recall(text, workspace_id=None, run_id=text)
    assert answer["recorded"] is True
    assert answer["hits"][0]["text"] == text
    assert answer["hits"][0]["relevance"] > 0
    (row,) = shared_memories.recorded(str(service.org))
    assert (row["query"], row["run_id"]) == (text, text)


def test_a_question_of_every_length_is_answered(shared_memories: Memories, service: Caller) -> None:
    shared_memories.insert("w36999 and w36998", service.org, author="person")
    question = " ".join(f"w{number}" for number in range(37_000))
    (hit,) = service.recall(question)["hits"]
    assert hit["relevance"] == pytest.approx(2 / 3)
    assert service.recall("the of and")["hits"][0]["relevance"] == 0


def test_the_scan_weighs_each_vector_once_carries_none_and_may_have_workers(memories: Memories) -> None:
    """From the plan that the function itself makes: a vector weighed twice would take twice the time."""
    database = memories.database
    database.superuser.execute(
        """insert into long_term_memory.agent_memories (org_id, subject_type, text, author, embedding, embedding_model)
        select %s, 'workspace', 'red ' || n, 'person', (select array_agg(random()) from generate_series(1, 128 + n * 0))::real[]::vector, 'small'
        from generate_series(1, 20000) as n""",
        (memories.org,),
    )
    database.superuser.execute("analyze long_term_memory.agent_memories")
    plans: list[str] = []
    connection = database.connect("supabase_admin")
    connection.add_notice_handler(lambda notice: plans.append(str(notice.message_primary)))
    connection.execute("load 'auto_explain'")
    for setting, value in {
        "search_path": "public, extensions", "client_min_messages": "log", "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on", "auto_explain.log_verbose": "on", "parallel_setup_cost": "0",
    }.items():  # fmt: skip
        connection.execute("select set_config(%s, %s, false)", (setting, value))
    question = "[" + ",".join(["0.5"] * 128) + "]"
    connection.execute(
        "select long_term_memory.recall_memories(%s, 'red', %s, 'small')", (memories.org, question)
    )
    (plan,) = [text for text in plans if "Seq Scan on long_term_memory.agent_memories" in text]
    body = plan[plan.index("Limit  (") :]
    scan = body.index("Parallel Seq Scan on long_term_memory.agent_memories")
    assert "embedding" not in body[:scan]
    assert body.count("<=>") == 1
    assert body.count("occurrences(") == 1
