"""What a folder of decision records holds, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ranked_ledger.adr.vocabulary import Relation
from ranked_ledger.models import Lifecycle
from ranked_ledger.models import Relation as EdgeRelation


@dataclass(frozen=True, slots=True)
class Reference:
    """What a record says about another one, before it is known whether there is such a record.

    - `target`: as written: a link's target, `ADR-7`, a number, a title. `evidence`: where it stands.
    """

    relation: Relation
    target: str
    evidence: str


@dataclass(frozen=True, slots=True)
class AdrRecord:
    """One decision record.

    - `path`: relative to the folder, with forward slashes. `key`: `ADR-0007`, else the file's name.
    - `status`: accepted, proposed, superseded, deprecated, rejected, disputed, or None where none is named.
    - `text`: the title and what was decided. `rationale`: everything else that it says, by heading.
    - `alternatives`: the options that were rejected.
    - `digest`: names the wording; status, date, importance and links may change without changing it.
    - `fields`: what else it says about itself, such as who decided, by name.

    Every word of the file is in one of them: what has no name that we know is text.
    """

    path: str
    key: str
    number: int | None
    title: str
    date: date | None
    status: str | None
    lifecycle: Lifecycle
    text: str
    rationale: str | None
    alternatives: tuple[str, ...]
    importance: float | None
    references: tuple[Reference, ...]
    digest: str
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AdrEdge:
    """An edge between two records, by key; `said` is the words' own relation, `evidence` where it stands."""

    source: str
    target: str
    relation: EdgeRelation
    said: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a file that a person should know: why it was skipped, what was not understood."""

    path: str
    reason: str


@dataclass(frozen=True)
class AdrFolder:
    """A folder, read: nothing of it is in neither `records` nor `skipped`.

    - `records`: in order of date, then number. `edges`, `supersessions` (old, new): between their keys.
    - `skipped`: files that are no records. `remarks`: what in the records could not be understood.
    """

    records: tuple[AdrRecord, ...] = ()
    edges: tuple[AdrEdge, ...] = ()
    supersessions: tuple[tuple[str, str], ...] = ()
    skipped: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()
