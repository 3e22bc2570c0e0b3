"""Texts of decisions and questions: other people's real ones where they lie beside the checkout, else made up.

Real texts are read in place and never copied into the repository.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "decisions"
SEED = 20261130
CHUNK_WORDS = 40

_SYNTHETIC_CHUNKS = 20_000
_SYNTHETIC_VOCABULARY = 20_000
# English has to be in it: what is left out of the index, and what is stemmed, is a large part of the work.
_COMMON = (
    "the of and to in is that for it as with on be this are by or an at from not we which have has will can should"
    " when use used using one all more other its their if also would each only new may must data time service user"
    " request value system version change state key type decision because support required implementation existing"
    " client server error message list default field different same after before between where"
).split()
_SYLLABLES = (
    "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu bra cle dri flo gru pla ste tri".split()
)


@dataclass(frozen=True)
class Corpus:
    """`chunks` become decisions; no question is one of them."""

    source: str
    chunks: tuple[str, ...]
    questions: tuple[str, ...]


def corpus(questions: int) -> Corpus:
    """The same texts in the same order each time, with at least that many questions."""
    rand = random.Random(SEED)
    if DATA.is_dir():
        source = "texts of public projects' decision records, and questions about them"
        chunks, asked = list(_real_chunks()), [one["query"] for one in _lines("questions.jsonl")]
    else:
        source = "made-up texts from a seed (the records of public projects are not beside this checkout)"
        chunks, asked = list(_synthetic_chunks(rand)), []
    rand.shuffle(chunks)
    rand.shuffle(asked)
    missing = max(0, questions - len(asked))
    held_out = chunks[len(chunks) - missing :]
    return Corpus(source, tuple(chunks[: len(chunks) - missing]), (*asked, *held_out))


def reordered(text: str, rand: random.Random) -> str:
    """The words of a text in another order: a new text with the same words."""
    words = text.split()
    rand.shuffle(words)
    return " ".join(words)


def _lines(name: str) -> list[dict[str, Any]]:
    text = (DATA / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.strip().split("\n")]


def _real_chunks() -> Iterator[str]:
    for record in _lines("decisions.jsonl"):
        parts = (record["title"], record["context"], record["decision"], record["consequences"])
        words = " ".join(part for part in parts if part).split()
        for first in range(0, len(words) - CHUNK_WORDS + 1, CHUNK_WORDS):
            yield " ".join(words[first : first + CHUNK_WORDS])


def _synthetic_chunks(rand: random.Random) -> Iterator[str]:
    made = {"".join(rand.choices(_SYLLABLES, k=rand.randint(2, 4))) for _ in range(_SYNTHETIC_VOCABULARY)}
    words = _COMMON + sorted(made)
    # Zipf: as in any language, few words are most of the text
    weights = [1 / (place + 3) for place in range(len(words))]
    for _ in range(_SYNTHETIC_CHUNKS):
        yield " ".join(rand.choices(words, weights, k=CHUNK_WORDS))
