"""What the planner kept of what is erased: of terms, vectors and digests, which are made of words; of several columns at once."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.conftest import HostMaker
from tests.sql.erasing import Scene

WORD = "zebrafoal"

# A vector of 384 dimensions is short enough to be kept; one of 1,536 is not.
MADE_OF_WORDS = (
    ("ranked_ledger", "postings", "term"),
    ("ranked_ledger", "decision_vectors", "embedding"),
    ("ranked_ledger", "idempotency_keys", "digest"),
    ("long_term_memory", "idempotency_keys", "digest"),
)


@pytest.fixture(params=[18, 16])
def scene(request: pytest.FixtureRequest, full_host: HostMaker) -> Scene:
    return Scene(full_host(dimension=384, postgres=request.param))


def kept_by_the_planner(scene: Scene) -> dict[str, str]:
    rows = scene.do(
        """select concat_ws('.', schemaname, tablename, attname),
                  concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text)
           from pg_stats where (schemaname, tablename, attname) in (
             select * from unnest(%s::text[], %s::text[], %s::text[]))""",
        *map(list, zip(*MADE_OF_WORDS, strict=True)),
    )
    return {place: values for place, values in rows if values}


def fill(scene: Scene, word: str, subject: str, axis: int) -> list[str]:
    """Answers what is made of the words: terms, a vector, digests."""
    for number in range(4):
        decision = scene.decide(
            f"{word}{'abcd'[number]}",
            subject,
            axis=axis + number,
            idempotency_key=f"{word} {number}",
            embedding_model="m",
        )
        scene.service(
            "remember",
            text=f"{word} {number}",
            subject_type="candidate",
            subject_id=subject,
            idempotency_key=f"{word} {number}",
        )
    ((terms, vector, digest, digest_of_a_memory),) = scene.do(
        """select (select array_agg(p.term::text) from ranked_ledger.postings p where p.row_no = s.row_no),
                  (select v.embedding::text from ranked_ledger.decision_vectors v where v.row_no = s.row_no),
                  (select encode(k.digest, 'hex') from ranked_ledger.idempotency_keys k where s.memory_id = any (k.memory_ids)),
                  (select encode(k.digest, 'hex') from long_term_memory.idempotency_keys k where k.key = %s)
           from ranked_ledger.standings s where s.memory_id = %s""",
        f"{word} 3",
        decision,
    )
    return [*terms, vector.strip("[]"), digest, digest_of_a_memory]


def test_nothing_that_was_made_of_the_words_is_kept(scene: Scene) -> None:
    subject, other = str(uuid4()), str(uuid4())
    erased, stays = fill(scene, WORD, subject, 1), fill(scene, "quaggamare", other, 11)
    own = set(erased) - set(stays)
    scene.do("analyze")
    before = kept_by_the_planner(scene)
    assert len(before) == len(MADE_OF_WORDS)
    assert {place for place, values in before.items() if any(one in values for one in own)} == before.keys()
    notes = scene.erase(subject)["notes"]
    after = " ".join(kept_by_the_planner(scene).values())
    assert {one for one in own if one in after} == set()
    assert not any("ANALYZE" in note for note in notes)
    scene.is_sound()


@pytest.mark.parametrize("expression", ["content, summary", "(lower(content)), summary", "(lower(content))"])
def test_statistics_of_several_columns_and_of_expressions_go_too(scene: Scene, expression: str) -> None:
    """A host makes them with CREATE STATISTICS, and only a new ANALYZE makes them anew."""
    subject = str(uuid4())
    for number in range(8):
        scene.decide(WORD, subject, axis=number, idempotency_key=str(number))
        scene.ledger.id(f"another {number}")
    scene.do(f"create statistics of_the_host on {expression} from public.agent_memories")
    scene.do("analyze")
    kept = """select exists (select from pg_stats_ext s where s.most_common_vals::text ~ %s)
                  or exists (select from pg_stats_ext_exprs s where concat_ws(
                               ' ', s.most_common_vals::text, s.histogram_bounds::text) ~ %s)"""
    assert scene.do(kept, WORD, WORD) == [(True,)]
    notes = scene.erase(subject)["notes"]
    assert scene.do(kept, WORD, WORD) == [(False,)]
    assert scene.left(WORD) == set()
    assert not any("ANALYZE" in note for note in notes)
