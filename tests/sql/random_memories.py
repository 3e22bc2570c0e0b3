"""Random rows, arguments and steps for the rules of writing a memory. Columns draw from few values, so that rules meet."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from tests.sql.memory_oracle import AUTHORS, FUTURE, GRADES, OUTCOMES, PAST, SUBJECT_TYPES, Row
from tests.sql.rpc import HOSTILE

RUN = "run-81"
SUBJECTS = [str(uuid4()) for _ in range(3)]
BLANK = ("", " ", "\t\n\r\f\v ", "\n")

# few words, so that rules meet: a row is hardly ever right by chance if each column draws from everything
TEXTS = st.one_of(
    st.sampled_from(["A memory", "  padded  ", *HOSTILE]),
    st.sampled_from(BLANK),
    st.sampled_from(["x" * 65_536, "ü" * 32_769, "x" * 65_537]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20).filter(
        lambda text: (
            not text or not text.isspace()
        )  # which space is one depends on the locale of the database
    ),
    st.none(),
)
REVIEWS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "reviewed_at": st.just("2026-06-01T00:00:00+00:00"),
            "review_outcome": st.sampled_from(OUTCOMES),
            "review_grade": st.sampled_from(GRADES),
        }
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "reviewed_at": st.sampled_from([None, "2026-06-01T00:00:00+00:00"]),
            "review_outcome": st.sampled_from([None, *OUTCOMES, "maybe", ""]),
            "review_grade": st.sampled_from([None, *GRADES, "sure"]),
        },
    ),
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "subject_id": st.sampled_from([None, *SUBJECTS]),
    "workspace_id": st.sampled_from([None, None, "acme"]),
    "author": st.sampled_from([*AUTHORS, *AUTHORS, *AUTHORS, "robot", "", "Model", None]),
    "source_run_id": st.sampled_from([None, None, RUN, "unknown"]),
    "written_by": st.sampled_from([None, None, "user", SUBJECTS[0]]),
    "asserted_by": st.sampled_from([None, "somebody"]),
    "reviewed_by": st.sampled_from([None, None, "user"]),
    "can_use_as_instruction": st.booleans(),
    "embedding": st.sampled_from([None, "[1,2]", "[0.5,0.25,3]"]),
    "embedding_model": st.sampled_from(["", "e5", "other"]),
    "expires_at": st.sampled_from([None, *FUTURE, *FUTURE, *PAST]),
    "redacted_at": st.sampled_from([None] * 7 + ["2026-07-01T00:00:00+00:00"]),
}
TYPES = st.sampled_from([*SUBJECT_TYPES * 4, "company", "", "Candidate", None])
WHOLE = st.sampled_from(["A memory", "Another", *HOSTILE])


def joined(*parts: dict[str, Any]) -> Row:
    return {column: value for part in parts for column, value in part.items()}


ROWS = st.builds(
    joined,
    st.fixed_dictionaries({"subject_type": TYPES, "text": st.one_of(WHOLE, WHOLE, TEXTS)}, optional=COLUMNS),
    REVIEWS,
)
CHANGES = st.builds(
    joined,
    st.fixed_dictionaries({}, optional={"subject_type": TYPES, "text": TEXTS, **COLUMNS}),
    REVIEWS,
)


# What remember is called with.
ARGUMENTS = st.fixed_dictionaries(
    {"text": st.one_of(WHOLE, WHOLE, TEXTS)},
    optional={
        "subject_type": TYPES,
        "subject_id": COLUMNS["subject_id"],
        "workspace_id": st.sampled_from([None, None, "acme", " "]),
        "author": COLUMNS["author"],
        "source_run_id": st.sampled_from([None, "run-82", ""]),
        "asserted_by": st.sampled_from([None, None, "member", SUBJECTS[0], "Alice"]),
        "expires_at": COLUMNS["expires_at"],
        "embedding": st.sampled_from([None, None, "[1,2]"]),
        "embedding_model": st.sampled_from([None, None, "", "e5"]),
    },
)

# A verb or a plain statement, who, which memory, and for reviews the outcome and whether it may instruct.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *["remember", "correct"] * 2,
                *["review"] * 3,
                "forget",
                "delete",
                "redact",
                "revive",
                "expire",
                "sweep",
            ]
        ),
        st.sampled_from(["service", "member", "other", "admin", "admin"]),
        st.integers(0, 5),
        st.sampled_from(OUTCOMES),
        st.booleans(),
    ),
    min_size=3,
    max_size=25,
)
