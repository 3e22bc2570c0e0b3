"""A run: a dataset replayed into a throwaway stack, every question put to every arm as of its step."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ranked_ledger import RankedLedger
from ranked_ledger.evals import arms as all_arms
from ranked_ledger.evals.anomalies import anomalies
from ranked_ledger.evals.arms import Arm
from ranked_ledger.evals.asking import Answer, Asked, Session
from ranked_ledger.evals.cases import Dataset, Question
from ranked_ledger.evals.errors import EvalError
from ranked_ledger.evals.ground import Ground, ground
from ranked_ledger.evals.loading import Loaded, Replay
from ranked_ledger.evals.log import Writer
from ranked_ledger.evals.packing import Row
from ranked_ledger.evals.runs import READ
from ranked_ledger.evals.vectors import Vectors

Progress = Callable[[str, int, int], object]

COMPONENTS: Final = (
    "relevance",
    "relevance_source",
    "similarity",
    "text_relevance",
    "summary_match",
    "importance",
    "recency",
    "dependency_boost",
)
EXPLAINED: Final = 10
"""Hits whose components go into the log."""
RETIRED: Final = ("superseded", "rejected")
SUCCESSOR_WITHIN: Final = 10
_FIRST_FIT: Final = 10  # decisions with a vector, below which the ledger fits no range
_FIT_AGAIN: Final = 1.5
_TIMEOUT: Final = 120.0


@dataclass(frozen=True)
class Finished:
    """What came of a run: where its log is, and what is in it."""

    path: Path
    rows: int
    arms: tuple[str, ...]
    absent: dict[str, str]
    loaded: Loaded
    anomalies: dict[str, int]

    @property
    def sound(self) -> bool:
        return not any(self.anomalies.values())


def run(
    dataset: Dataset,
    out: Path,
    *,
    vectors: Vectors | None = None,
    arms: Sequence[str] | None = None,
    seed: int = 0,
    command: str | None = None,
    on_progress: Progress = lambda *_: None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> Finished:
    """Load, ask, log.

    - `arms`: names; None: all that can run. `vectors`: of the dataset; None: arms that need them are absent.
    - `command`: what makes the run again, for whoever reads the log.
    - `on_progress`: a stage, how much of it is done, and how much there is.

    The stack is gone at the end, also of an interrupted run, whose log has the rows that were finished.

    Example:
        >>> run(dataset, Path("run.jsonl"), arms=["recency", "fts_or"]).anomalies   # doctest: +SKIP
    """
    wanted = _wanted(dataset, arms)
    with ground(None if vectors is None else vectors.dimension, on_stage) as there:
        return run_on(
            there,
            dataset,
            out,
            vectors=vectors,
            arms=[arm.name for arm in wanted],
            seed=seed,
            command=command,
            on_progress=on_progress,
        )


def run_on(
    there: Ground,
    dataset: Dataset,
    out: Path,
    *,
    vectors: Vectors | None = None,
    arms: Sequence[str] | None = None,
    seed: int = 0,
    command: str | None = None,
    on_progress: Progress = lambda *_: None,
) -> Finished:
    """The same on a stack that is there, and stays: nothing of the dataset may be in it yet."""
    there_are, absent = all_arms.present(
        _wanted(dataset, arms), with_vectors=vectors is not None, parameters=there.parameters()
    )
    header = {
        "command": command,
        **_header(dataset, vectors, seed),
        "arms": [arm.as_dict() for arm in there_are],
        "absent": absent,
        "presets": there.presets(),
        "versions": _versions() | there.versions(),
    }
    with Writer(out, header) as log:
        work = _Run(dataset, vectors, there_are, there, log, on_progress)
        work.go()
        found = anomalies(header, log.written())
        log.finish(anomalies=found, loaded=work.loaded.as_dict(), ranges=work.ranges, unfitted=work.unfitted)
    return Finished(out, log.rows, tuple(arm.name for arm in there_are), absent, work.loaded, found)


def _wanted(dataset: Dataset, arms: Sequence[str] | None) -> tuple[Arm, ...]:
    if not dataset.questions:
        raise EvalError(f"{dataset.name} has no question", hint="name other streams, or other data")
    return all_arms.chosen(arms)


def _header(dataset: Dataset, vectors: Vectors | None, seed: int) -> dict[str, Any]:
    return {
        "dataset": {
            "name": dataset.name,
            "digest": dataset.digest,
            "questions": len(dataset.questions),
            "streams": {name: len(records) for name, records in dataset.streams.items()},
        },
        "seed": seed,
        "model": None if vectors is None else vectors.model,
        "embedding": None if vectors is None else vectors.key,
        "dimension": None if vectors is None else vectors.dimension,
        "limit": all_arms.LIMIT,
        "asked": [question.id for question in dataset.questions],
    }


def _versions() -> dict[str, str]:
    return {"ranked-ledger": version("ranked-ledger"), "Python": platform.python_version()}


@dataclass
class _Run:
    dataset: Dataset
    vectors: Vectors | None
    arms: Sequence[Arm]
    there: Ground
    log: Writer
    on_progress: Progress
    loaded: Loaded = field(default_factory=Loaded)
    ranges: dict[str, list[float]] = field(default_factory=dict)
    unfitted: dict[str, str] = field(default_factory=dict)
    fitted: dict[str, int] = field(default_factory=dict)

    def go(self) -> None:
        self.loaded.unknown_targets = self.dataset.unknown_targets
        info = self.there.info
        total = len(self.dataset.questions) * len(self.arms)
        workspaces = sorted({self.dataset.workspace_of(one.stream) for one in self.dataset.questions})
        with (
            Session(info.superuser_db_url) as session,
            RankedLedger(info.url, info.secret_key, workspace="eval", timeout=_TIMEOUT) as ledger,
        ):
            for name in workspaces:
                workspace = f"eval/{name}"
                project = name.rpartition("/")[2]
                replay = Replay(
                    ledger.with_options(workspace=workspace, project=project),
                    self.dataset,
                    name,
                    self.vectors,
                    self.loaded,
                )
                inside = [
                    one for one in self.dataset.questions if self.dataset.workspace_of(one.stream) == name
                ]
                for question in sorted(inside, key=lambda one: (one.asked_at_step, one.id)):
                    self.on_progress(f"loading {name}", self.log.rows, total)
                    replay.until(question.asked_at_step)
                    self._fit_range(session, replay, workspace)
                    self.on_progress(f"asking {name}", self.log.rows, total)
                    self._ask(session, replay, workspace, question)

    def _fit_range(self, session: Session, replay: Replay, workspace: str) -> None:
        """As whoever keeps a ledger does it: from what is there, again when it has grown by half.

        Where a model gives the same vector to all there is no range: cosines stay as they are.
        """
        grown = len(replay.ids) >= _FIRST_FIT and len(replay.ids) >= _FIT_AGAIN * self.fitted.get(
            workspace, 0
        )
        if self.vectors is not None and grown:
            self.fitted[workspace] = len(replay.ids)
            try:
                self.ranges[replay.workspace] = session.fit_range(workspace, self.vectors.model)
            except EvalError as refused:
                self.unfitted[replay.workspace] = refused.message

    def _ask(self, session: Session, replay: Replay, workspace: str, question: Question) -> None:
        vectors = self.vectors
        asked = Asked(
            workspace,
            question.id,
            question.ask,
            None if vectors is None else vectors.query(question.ask),
            None if vectors is None else vectors.model,
            question.asked_at_step,
            tuple(replay.ids[key] for key in sorted(question.gold)),
        )
        matches, matches_in_force = session.matches(asked)
        about = {
            "question": question.id,
            "stream": question.stream,
            "workspace": workspace,
            "question_kind": question.kind,
            "split": question.split,
            "lexical_overlap": question.lexical_overlap,
            "asked_at_step": question.asked_at_step,
            "gold": sorted(question.gold),
            "must_not": sorted(question.must_not),
            "rows_in_scope": session.in_force(workspace),
            "matches": matches,
            "matches_in_force": matches_in_force,
        }
        for arm in self.arms:
            self.log.row({**about, "arm": arm.name, **_answered(session.ask(arm, asked), replay)})


def _answered(answer: Answer, replay: Replay) -> Row:
    hits = [_hit(hit, place, answer, replay) for place, hit in enumerate(answer.hits, 1)]
    return {
        "request_id": str(answer.request_id),
        "milliseconds": round(answer.milliseconds, 3),
        "traced": answer.traced,
        "hits": hits,
        "retired_without_successor": _without_successor(hits, replay),
        "budgets": answer.budgets,
    }


def _hit(hit: Mapping[str, Any], place: int, answer: Answer, replay: Replay) -> Row:
    return {
        "key": replay.keys.get(hit["memory_id"], hit["memory_id"]),
        "rank": place,
        "score": _short(hit["ranking_score"], 9),
        "step": hit["step_index"],
        "lifecycle": hit["lifecycle_status"],
        "tokens": hit["tokens"],
        "workspace": answer.workspaces.get(hit["memory_id"]),
        "components": {name: _short(hit[name]) for name in COMPONENTS if name in hit}
        if place <= EXPLAINED
        else {},
    }


def _short(value: object, digits: int = 6) -> object:
    """As many digits as are read: a component by six, a score by as many as tell its bounds."""
    return round(value, digits) if isinstance(value, float) else value


def _without_successor(hits: Sequence[Row], replay: Replay) -> list[str]:
    """The retired among the first five hits, no successor of which is among the first ten and in force."""
    holding = {hit["key"] for hit in hits[:SUCCESSOR_WITHIN] if hit["lifecycle"] not in RETIRED}
    return [
        hit["key"]
        for hit in hits[:READ]
        if hit["lifecycle"] in RETIRED and not replay.successors(hit["key"]) & holding
    ]
