"""Datasets from files: decisions and questions as JSON lines, or a folder of decision records.

The words of a decision go where the ledger has a place for them: what was decided into its text, what led to
it and what follows from it into its rationale. Nothing is rewritten, but for a placeholder in questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from ranked_ledger.adr import AdrFolder, read_folder
from ranked_ledger.errors import ConfigurationError
from ranked_ledger.evals.cases import Dataset, Lifecycle, Link, Question, Record
from ranked_ledger.evals.errors import EvalInputError
from ranked_ledger.evals.lines import Row, rows

# Stands for an identifier that was taken out of the question; its words are nobody's.
PLACEHOLDER: Final = "the earlier decision"
# What the ledger takes for a summary, a name, a text and for alternatives; a test compares them.
MAX_TITLE_BYTES: Final = 2_000
MAX_NAME_BYTES: Final = 1_000
MAX_RECORD_BYTES: Final = 256 * 1024
MAX_ALTERNATIVES: Final = 20

_LIFECYCLES: Final = ("active", "superseded", "stale", "disputed", "rejected")
_RELATIONS: Final = ("depends_on", "informs", "amends", "relates_to", "supersedes", "superseded_by")


def read_jsonl(decisions: Path | str, questions: Path | str, *, name: str | None = None) -> Dataset:
    """Read two files, one JSON object a line.

    - A decision has stream, key and step, and a title or a decision, or both; it may have context,
      consequences, lifecycle, superseded_at_step, importance, alternatives and links [{relation, target}].
    - A question has id, stream, query, gold and asked_at_step; it may have must_not, kind, split and
      lexical_overlap.
    - A link to a decision that is not there is left out, and counted in `unknown_targets`.

    Example:
        >>> read_jsonl("decisions.jsonl", "questions.jsonl").digest             # doctest: +SKIP
        '5f0c...'
    """
    streams, links = _decisions(Path(decisions))
    made, unknown = _linked(streams, links)
    asked = _questions(Path(questions), made)
    return Dataset.of(name or _folder_name(Path(decisions)), made, asked, unknown_targets=unknown)


def read_adrs(folder: Path | str, questions: Path | str | None = None) -> Dataset:
    """Read a folder of decision records as one stream, which has the folder's name.

    - `questions`: a file as for `read_jsonl`; `stream` and `asked_at_step` may be left out there.

    Without it the folder asks itself: the title of each record that was superseded is a question, whose
    answer is the record in force at the end of its chain.

    Example:
        >>> len(read_adrs("docs/decisions").questions)                          # doctest: +SKIP
        3
    """
    root = Path(folder)
    try:
        found = read_folder(root)
    except ConfigurationError as error:
        raise EvalInputError(error.message, hint=error.hint or "name a folder", file=root) from None
    stream = _folder_name(root / "records")
    if not found.records:
        raise EvalInputError(
            "there are no decision records in it", hint="name the folder that holds them", file=root
        )
    records = _from_folder(found, stream)
    made = {stream: records}
    asked = _questions(Path(questions), made) if questions is not None else _own_questions(records, stream)
    if not asked:
        raise EvalInputError(
            "nothing in it was superseded, so it asks nothing",
            hint="give questions of your own, a file with one JSON object a line",
            file=root,
        )
    return Dataset.of(stream, made, asked)


def _folder_name(file: Path) -> str:
    return file.resolve().parent.name or "decisions"


@dataclass(frozen=True, slots=True)
class _Said:
    """A link as it is written: its owner, the words' relation, the other end."""

    source: str
    relation: str
    target: str


def _decisions(file: Path) -> tuple[dict[str, dict[str, Record]], dict[str, list[_Said]]]:
    streams: defaultdict[str, dict[str, Record]] = defaultdict(dict)
    links: defaultdict[str, list[_Said]] = defaultdict(list)
    for row in rows(file):
        record = _record(row)
        if record.key in streams[record.stream]:
            raise row.wrong(
                "key",
                f"{record.stream} has {record.key!r} already",
                "give each decision of a stream its own key",
            )
        streams[record.stream][record.key] = record
        links[record.stream] += _said(row, record.key)
    if not streams:
        raise EvalInputError("there are no decisions in it", hint="name the decisions' file", file=file)
    return streams, links


def _record(row: Row) -> Record:
    said = [row.text(field, default="") for field in ("title", "decision", "context", "consequences")]
    if not (content := "\n\n".join(part for part in said[:2] if part)):
        # without a title and a decision the rest is all that there is to find it by
        content, said[2:] = "\n\n".join(part for part in said[2:] if part), []
    if not content:
        raise row.wrong("decision", "it says nothing", "give it a title or a decision")
    rationale = "\n\n".join(part for part in said[2:] if part) or None
    for field, whole in (("decision", content), ("context", rationale or "")):
        if (size := len(whole.encode())) > MAX_RECORD_BYTES:
            raise row.wrong(
                field, f"with the rest it has {size:,} bytes; {MAX_RECORD_BYTES:,} are allowed", "shorten it"
            )
    alternatives = row.texts("alternatives")
    if len(alternatives) > MAX_ALTERNATIVES:
        raise row.wrong(
            "alternatives", f"{len(alternatives)} of them; {MAX_ALTERNATIVES} are allowed", "name fewer"
        )
    retired_at = row.said.get("superseded_at_step")
    return Record(
        stream=_stream(row),
        key=row.text("key", max_bytes=MAX_NAME_BYTES),
        step=row.step("step"),
        title=short(said[0] or content.strip().splitlines()[0]),
        content=content,
        rationale=rationale,
        importance=row.number("importance"),
        lifecycle=cast(Lifecycle, row.one_of("lifecycle", _LIFECYCLES, default="active")),
        superseded_at_step=None if retired_at is None else row.step("superseded_at_step"),
        alternatives=alternatives,
    )


def _stream(row: Row) -> str:
    """A stream names a workspace, and its last part a task."""
    stream = row.text("stream", max_bytes=MAX_NAME_BYTES)
    if not stream.rpartition("/")[2].strip():
        raise row.wrong(
            "stream", f"{stream!r} has no name after its last /", "name the stream, as owner/name"
        )
    return stream


def _said(row: Row, key: str) -> list[_Said]:
    found = []
    for link in row.objects("links"):
        relation, target = link.get("relation"), link.get("target")
        if relation not in _RELATIONS:
            raise row.wrong(
                "links", f"{relation!r} is no relation", f"make it one of {', '.join(_RELATIONS)}"
            )
        if not isinstance(target, str) or not target:
            raise row.wrong("links", f"{target!r} is no target", "name the key of the other decision")
        found.append(_Said(key, relation, target))
    return found


def _linked(
    streams: Mapping[str, Mapping[str, Record]], links: Mapping[str, Iterable[_Said]]
) -> tuple[dict[str, list[Record]], int]:
    made: dict[str, list[Record]] = {}
    unknown = 0
    for stream, there in streams.items():
        known = [one for one in links[stream] if one.target in there and one.target != one.source]
        unknown += sum(one.target not in there for one in links[stream])
        pairs = {
            (one.target, one.source) if one.relation == "supersedes" else (one.source, one.target)
            for one in known
            if one.relation in ("supersedes", "superseded_by")
        }
        made[stream] = _joined(there, _edges(known, there, pairs), pairs)
    return made, unknown


def _edges(
    known: Iterable[_Said], there: Mapping[str, Record], pairs: set[tuple[str, str]]
) -> dict[str, list[Link]]:
    """Links by the record that holds them.

    As an import of decision records has it: what a record only relates to was there before, so the older one
    informs the newer, and a mention beside another relation of the same two says nothing new.
    """
    edges: dict[tuple[str, str], Link] = {}
    mentions: list[tuple[str, str]] = []
    for one in known:
        if one.relation == "relates_to":
            older, newer = sorted((one.source, one.target), key=lambda key: (there[key].step, key))
            mentions.append((older, newer))
        elif one.relation == "depends_on":
            edges[one.source, one.target] = Link("depends_on", one.target)
        elif one.relation in ("amends", "informs"):
            edges.setdefault((one.source, one.target), Link("informs", one.target))
    stronger = {frozenset(pair) for pair in (*edges, *pairs)}
    for older, newer in mentions:
        if frozenset((older, newer)) not in stronger:
            edges[older, newer] = Link("informs", newer)
    held: defaultdict[str, list[Link]] = defaultdict(list)
    for (source, _), link in edges.items():
        held[source].append(link)
    return held


def _joined(
    there: Mapping[str, Record], edges: Mapping[str, list[Link]], pairs: Iterable[tuple[str, str]]
) -> list[Record]:
    successors: defaultdict[str, list[str]] = defaultdict(list)
    for old, new in sorted(pairs, key=lambda pair: (there[pair[1]].step, pair)):
        successors[old].append(new)
    made = []
    for record in there.values():
        after = successors.get(record.key, [])
        # a successor's word counts for more than a status that nobody brought up to date
        replaced = bool(after) and record.lifecycle != "rejected"
        made.append(
            replace(
                record,
                links=tuple(sorted(edges.get(record.key, []), key=lambda one: (one.relation, one.target))),
                superseded_by=tuple(after),
                lifecycle="superseded" if replaced else record.lifecycle,
                superseded_at_step=there[after[0]].step if after else record.superseded_at_step,
            )
        )
    return made


def _questions(file: Path, streams: Mapping[str, Iterable[Record]]) -> list[Question]:
    steps = {stream: {one.key: one.step for one in records} for stream, records in streams.items()}
    found: dict[str, Question] = {}
    for row in rows(file):
        question = _question(row, steps)
        if question.id in found:
            raise row.wrong("id", f"{question.id!r} is there already", "give each question its own id")
        found[question.id] = question
    if not found:
        raise EvalInputError("there are no questions in it", hint="name the questions' file", file=file)
    return list(found.values())


def _question(row: Row, steps: Mapping[str, Mapping[str, int]]) -> Question:
    only = next(iter(steps)) if len(steps) == 1 else None
    stream = row.text("stream", default=only)
    if stream not in steps:
        raise row.wrong("stream", f"there is no stream {stream!r}", "name one that has decisions")
    there = steps[stream]
    asked_at = row.step("asked_at_step", default=max(there.values()) if only else None)
    gold, must_not = frozenset(row.texts("gold")), frozenset(row.texts("must_not"))
    if not gold:
        raise row.wrong("gold", "it names no answer", "list the key of at least one decision")
    for field, keys in (("gold", gold), ("must_not", must_not)):
        for key in sorted(keys):
            if key not in there:
                raise row.wrong(field, f"{stream} has no {key!r}", "name decisions of the question's stream")
            if there[key] > asked_at:
                raise row.wrong(
                    field,
                    f"{key!r} was decided at step {there[key]}, after step {asked_at}",
                    "ask later, or name what was there",
                )
    if both := sorted(gold & must_not):
        raise row.wrong("must_not", f"{both[0]!r} is an answer too", "name it once")
    ask = row.text("query").replace(PLACEHOLDER, " ")
    if not ask.strip():
        raise row.wrong("query", "nothing is asked", "write a question")
    return Question(
        id=row.text("id", max_bytes=MAX_NAME_BYTES),
        stream=stream,
        ask=ask,
        gold=gold,
        must_not=must_not,
        asked_at_step=asked_at,
        kind=row.text("kind", default="question", max_bytes=MAX_NAME_BYTES),
        split=row.text("split", default="") or None,
        lexical_overlap=row.number("lexical_overlap"),
    )


def _from_folder(folder: AdrFolder, stream: str) -> list[Record]:
    edges: defaultdict[str, list[Link]] = defaultdict(list)
    for edge in folder.edges:
        if edge.relation == "depends_on" or edge.relation == "informs":  # noqa: PLR1714 - narrows the type
            edges[edge.source].append(Link(edge.relation, edge.target))
    there = {
        one.key: Record(
            stream=stream,
            key=one.key,
            step=step,
            title=short(one.title),
            content=one.text,
            rationale=one.rationale,
            importance=one.importance,
            lifecycle=one.lifecycle,
            alternatives=one.alternatives,
        )
        for step, one in enumerate(folder.records, 1)
    }
    return _joined(there, edges, folder.supersessions)


def _own_questions(records: list[Record], stream: str) -> list[Question]:
    there = {one.key: one for one in records}
    asked = []
    for record in records:
        chain = _chain(record, there)
        holding = {key for key in chain if there[key].lifecycle == "active"}
        if not holding:
            continue
        asked.append(
            Question(
                id=f"supersession-{record.key}",
                stream=stream,
                ask=record.title,
                gold=frozenset(holding),
                must_not=frozenset({record.key, *chain} - holding),
                asked_at_step=len(records),
                kind="supersession",
            )
        )
    return asked


def _chain(record: Record, there: Mapping[str, Record]) -> set[str]:
    """Everything that came to stand in a record's place, which may branch and may even lead back to it."""
    found: set[str] = set()
    ahead = list(record.superseded_by)
    while ahead:
        key = ahead.pop()
        if key not in found and key != record.key:
            found.add(key)
            ahead += there[key].superseded_by
    return found


def short(title: str) -> str:
    """A title as a summary: cut where the ledger would refuse it."""
    return title.encode()[:MAX_TITLE_BYTES].decode(errors="ignore")
