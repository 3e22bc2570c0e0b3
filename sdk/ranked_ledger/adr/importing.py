"""A folder of decision records into a ledger. Importing it again writes only what is new.

What was imported before is known by the path in the decision's metadata; its wording by a digest beside it.
Records come first, in order, then edges, supersessions and lifecycles; an import that broke off is finished
by the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ranked_ledger.adr.records import AdrFolder, AdrRecord
from ranked_ledger.arguments import MAX_SUMMARY_BYTES
from ranked_ledger.errors import ConflictError, GoneError, InvalidArgumentError, LoopError, NotFoundError
from ranked_ledger.models import (
    Decision,
    DecisionRef,
    Edge,
    NewDecision,
    Relation,
    SettableLifecycle,
    Superseded,
)

DEFAULT_TASK: Final = "decision-records"
_MARK: Final = "adr"
_ACTOR: Final = "import"

Progress = Callable[[str, int, int], object]


class Ledger(Protocol):
    """What an import needs of `RankedLedger`."""

    @property
    def workspace(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    def timeline(self, *, task: str | None = None, page_size: int = 50) -> Iterable[Decision]: ...
    def record_many(
        self,
        decisions: Iterable[NewDecision | Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        on_batch: Callable[[Sequence[Decision]], object] | None = None,
    ) -> list[Decision]: ...
    def link(
        self,
        decision: DecisionRef,
        to: DecisionRef,
        *,
        relation: Relation = "depends_on",
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge: ...
    def supersede(
        self, old: DecisionRef, *, by: DecisionRef, reason: str | None = None, actor: str | None = None
    ) -> Superseded: ...
    def set_lifecycle(
        self,
        decision: DecisionRef,
        lifecycle: SettableLifecycle,
        *,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Decision: ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the ledger did not take, and why."""

    what: str
    why: str


@dataclass
class ImportReport:
    """What an import did. `decisions` holds every record's decision by key, new or known.

    - `recorded`, `known`: keys that are new, or were there. `changed`: known ones whose file says something
      else now; with `update` they were recorded anew and are in `updated`.
    - `linked`, `superseded`, `marked`: edges, supersessions and lifecycles that were written now.
    - `refused`: what the ledger did not take, a loop for example.
    """

    decisions: dict[str, Decision] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    linked: int = 0
    superseded: int = 0
    marked: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        """Whether anything in the ledger is different now."""
        return bool(self.recorded or self.updated or self.linked or self.superseded or self.marked)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, ready for JSON."""
        return {
            "recorded": self.recorded,
            "known": self.known,
            "changed": self.changed,
            "updated": self.updated,
            "linked": self.linked,
            "superseded": self.superseded,
            "marked": self.marked,
            "refused": [{"what": one.what, "why": one.why} for one in self.refused],
            "decisions": {key: str(one.memory_id) for key, one in self.decisions.items()},
        }


def import_folder(
    ledger: Ledger,
    folder: AdrFolder,
    *,
    task: str = DEFAULT_TASK,
    update: bool = False,
    on_progress: Progress = lambda *_: None,
) -> ImportReport:
    """Record what the ledger does not have yet, then link, supersede and mark as the records say.

    - `task`: the stream of the workspace and project that they go to.
    - `update`: a record whose wording changed is recorded anew and supersedes its former wording.
    - `on_progress`: called with a stage, how much of it is done, and how much there is.

    An import never restores: a decision that was retired in the ledger stays so, whatever its file says. But
    forgetting leaves nothing to know a file by: one that is still in the folder is recorded again, as a new
    decision. Delete the file of what you forget. A record that is only proposed is recorded as active.

    Example:
        >>> report = import_folder(ledger, read_folder("docs/decisions"))       # doctest: +SKIP
        >>> import_folder(ledger, read_folder("docs/decisions")).wrote          # doctest: +SKIP
        False
    """
    run = _Import(ledger, folder, task, on_progress)
    former = run.record(update=update)
    for key, old in former.items():
        run.supersede(f"{key} by its new wording", old, run.report.decisions[key])
    run.link()
    run.retire()
    return run.report


class _Import:
    def __init__(self, ledger: Ledger, folder: AdrFolder, task: str, on_progress: Progress) -> None:
        self._ledger = ledger
        self._folder = folder
        self._task = task
        self._on_progress = on_progress
        self.report = ImportReport()

    def record(self, *, update: bool) -> dict[str, Decision]:
        """Write what is new; gives the former decisions of those that were written anew."""
        report, there = self.report, self._there()
        new: list[AdrRecord] = []
        former: dict[str, Decision] = {}
        for record in self._folder.records:
            known = there.get(record.path)
            if known is None:
                new.append(record)
                report.recorded.append(record.key)
                continue
            report.decisions[record.key] = known
            report.known.append(record.key)
            if known.metadata[_MARK].get("digest") != record.digest:
                report.changed.append(record.key)
                if update:
                    former[record.key] = known
                    new.append(record)
                    report.updated.append(record.key)
        done = 0

        def count(batch: Sequence[Decision]) -> None:
            nonlocal done
            done += len(batch)
            self._on_progress("recording", done, len(new))

        self._on_progress("recording", 0, len(new))
        written = self._ledger.record_many(
            [_decision(record, self._task) for record in new],
            idempotency_key=_key(self._ledger, self._task, new),
            on_batch=count,
        )
        report.decisions |= {record.key: made for record, made in zip(new, written, strict=True)}
        return former

    def link(self) -> None:
        edges, decisions = self._folder.edges, self.report.decisions
        for done, edge in enumerate(edges):
            self._on_progress("linking", done, len(edges))
            said = {"said": edge.said, "evidence": edge.evidence}
            with self._refusals(f"{edge.source} {edge.relation} {edge.target}"):
                source, target = decisions[edge.source], decisions[edge.target]
                made = self._ledger.link(source, target, relation=edge.relation, metadata=said)
                self.report.linked += bool(made.created)
        self._on_progress("linking", len(edges), len(edges))

    def retire(self) -> None:
        """Supersede, then set the lifecycles of what was retired without a successor."""
        pairs, decisions = self._folder.supersessions, self.report.decisions
        marks = list(_marks(self._folder))
        total = len(pairs) + len(marks)
        for done, (old, new) in enumerate(pairs):
            self._on_progress("retiring", done, total)
            self.supersede(f"{old} by {new}", decisions[old], decisions[new])
        for done, (record, lifecycle) in enumerate(marks, len(pairs)):
            self._on_progress("retiring", done, total)
            if (decision := decisions[record.key]).lifecycle_status != "active":
                continue
            with self._refusals(f"{record.key} {lifecycle}"):
                reason = f"its record says {record.status}"
                made = self._ledger.set_lifecycle(decision, lifecycle, reason=reason, actor=_ACTOR)
                self.report.marked += bool(made.changed)
        self._on_progress("retiring", total, total)

    def supersede(self, what: str, old: Decision, new: Decision) -> None:
        with self._refusals(what):
            made = self._ledger.supersede(old, by=new, reason="its record says so", actor=_ACTOR)
            self.report.superseded += made.changed

    def _there(self) -> dict[str, Decision]:
        """What was imported to this stream before, by path; of several wordings the newest."""
        found: dict[str, Decision] = {}
        for decision in self._ledger.timeline(task=self._task, page_size=500):
            mark = decision.metadata.get(_MARK)
            if decision.project_id != self._ledger.project or not isinstance(mark, dict):
                continue
            if isinstance(path := mark.get("path"), str):
                found.setdefault(path, decision)
        return found

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        """Count what the ledger refuses, and go on: the rest of the folder is none the worse for it."""
        try:
            yield
        except (LoopError, NotFoundError, GoneError, ConflictError, InvalidArgumentError) as error:
            self.report.refused.append(Refusal(what, error.message))


def _marks(folder: AdrFolder) -> Iterator[tuple[AdrRecord, SettableLifecycle]]:
    superseded = {old for old, _ in folder.supersessions}
    for record in folder.records:
        if record.key not in superseded and record.lifecycle != "active":
            yield record, "stale" if record.lifecycle == "superseded" else record.lifecycle


def _decision(record: AdrRecord, task: str) -> NewDecision:
    mark: dict[str, Any] = {
        "path": record.path,
        "key": record.key,
        "title": record.title,
        "status": record.status,
        "date": record.date.isoformat() if record.date else None,
        "digest": record.digest,
        "fields": dict(record.fields) or None,
    }
    return NewDecision(
        record.text,
        summary=_short(record.title),
        rationale=record.rationale,
        alternatives=record.alternatives,
        importance=record.importance,
        task=task,
        created_by="import",
        metadata={_MARK: {name: value for name, value in mark.items() if value is not None}},
    )


def _short(title: str) -> str:
    return title.encode()[:MAX_SUMMARY_BYTES].decode(errors="ignore")


def _key(ledger: Ledger, task: str, new: Sequence[AdrRecord]) -> str:
    """The same records to the same stream have the same key, so that two imports at once write them once."""
    said = [ledger.workspace, ledger.project, task, [(one.path, one.digest) for one in new]]
    return f"adr-{hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:32]}"
