"""The words of decision records, in the languages they are written in: headings, statuses and relations."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType
from typing import Final, Literal

from ranked_ledger.models import Lifecycle

Kind = Literal[
    "status", "date", "context", "decision", "options", "rejected", "consequences", "links", "people",
    "notes", "title", "number", "about",
]  # fmt: skip
Relation = Literal[
    "superseded_by",
    "supersedes",
    "amended_by",
    "amends",
    "depends_on",
    "required_by",
    "relates_to",
    "cites",
]


def _listed(phrases: str) -> list[str]:
    return [one.strip() for one in re.split(r"[,\n]", phrases) if one.strip()]


def any_of(phrases: str) -> re.Pattern[str]:
    """One of the phrases (each a pattern) as whole words."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(_listed(phrases))})(?!\w)", re.I)


# A heading is of the kind whose words it begins with; the longest match wins.
_HEADINGS: Final[dict[Kind, str]] = {
    "status": "status, statut, estado, stato, state, 状态, ステータス",
    "date": "date, datum, fecha, data, 日期",
    "context": """context, problem, background, motivation, issue, why, drivers, decision drivers, forces
        decision driver, requirements, assumptions, constraints, overview, summary, abstract, introduction
        kontext, problemstellung, ausgangslage, hintergrund, contexte, problème, contexto, problema, contesto
        motivación, motivação, achtergrond, probleemstelling, 背景, 上下文, コンテキスト""",
    "decision": """decision, decision outcome, outcome, resolution, we decided, solution, proposal, chosen
        proposed solution, entscheidung, beschluss, décision, decisión, decisão, decisione, besluit
        beslissing, 决策, 决定, 決定""",
    "options": """considered options, options, options considered, considered alternatives, positions
        alternatives considered, betrachtete optionen, optionen, options envisagées, options considérées
        opciones, opções, opzioni, overwogen opties, 方案, 選択肢""",
    "rejected": """rejected, alternatives, alternative, options not chosen, alternatives rejected
        options rejected, alternativen, verworfene, abgelehnte, alternativas, alternatieven, 备选, 代替案""",
    "consequences": """consequences, consequence, implications, impact, results, risks, trade-offs, tradeoffs
        positive consequences, negative consequences, neutral consequences, good consequences
        bad consequences, expected consequences, konsequenzen, auswirkungen, folgen, conséquences
        consecuencias, consequências, conseguenze, gevolgen, 后果, 影响, 結果""",
    "links": """links, link, related, relations, references, see also, dependencies, verweise, liens, enlaces
        referencias, referências, collegamenti, verwijzingen, 相关, 関連""",
    "people": "deciders, decision makers, decision-makers, authors, author, consulted, informed, approvers",
    "notes": """pros and cons, more information, notes, note, confirmation, validation, implementation
        appendix, justification, rationale, argument, evaluation, comparison, changelog, compliance
        discussion""",
}
_NUMBERING: Final = re.compile(r"^\s*(?:\d+(?:\.\d+)*[.)]?\s+|[IVX]+\.\s+)")


def _normal(text: str) -> str:
    """Lower case, without numbering, emoji and punctuation at the ends."""
    text = unicodedata.normalize("NFC", _NUMBERING.sub("", text)).casefold().replace("&", "and")
    return " ".join(re.sub(r"[^\w\s'-]+", " ", text).split())


# Names of fields only: as headings they would take too much.
_FIELDS: Final[dict[Kind, str]] = {
    "title": "title, titel, titre, título, titolo, 标题, タイトル",
    "number": "number, no, nr, id, adr, rfc, eip, hip, adr number, adr id, nummer, número",
    "date": "date created, created, created at, created on, decided, decided on, decision date, date decided",
    "people": """decision maker, decision owner, owner, owners, reviewer, reviewers, approver, approved by
        proposed by, decided by, stakeholders, participants, contributors, autor, autoren, auteur, auteurs""",
    "about": """tag, tags, label, labels, keywords, category, categories, version, layout, technical story
        last updated, last modified, updated""",
}
# What a record says in words; the other kinds are what is known about it.
PARTS: Final[frozenset[Kind]] = frozenset(
    {"context", "decision", "options", "rejected", "consequences", "notes"}
)
# May change without a change of the wording.
STATES: Final[frozenset[Kind]] = frozenset({"status", "date", "links"})

_KINDS: Final = sorted(
    ((_normal(one), kind) for kind, many in _HEADINGS.items() for one in _listed(many)),
    key=lambda entry: -len(entry[0]),
)


_FIELD_KINDS: Final = {_normal(one): kind for kind, many in _FIELDS.items() for one in _listed(many)}
_NAMES: Final = frozenset(start for start, _ in _KINDS)
_NAMING: Final = frozenset(
    """and the of for to with other further external internal statement adr adrs record records decision
    decisions document documents reading resources sources information s""".split()
) | {word for start in _NAMES for word in start.split()} - set("not we why in".split())


def is_name(heading: str) -> bool:
    """Whether a heading only names what stands under it, and says nothing of its own."""
    normal = _normal(heading)
    return normal in _NAMES or _NAMING.issuperset(normal.split())


def field_kind(name: str) -> Kind | None:
    """What a line "name: value" holds, or None where the name is not known to the last word."""
    normal = _normal(name)
    if kind := _FIELD_KINDS.get(normal):
        return kind
    if kind := kind_of(name) if is_name(name) else None:
        return kind
    spaced = normal.replace("-", " ")
    return "links" if any(spaced == spaced[start:end] for start, end, _ in relations_in(spaced)) else None


def kind_of(heading: str) -> Kind | None:
    """What a section with this heading holds, or None where the words do not say.

    "Status quo" and "Data model" are no status and no date: those names have to be whole.
    """
    kind = _begins(_normal(heading))
    return None if kind and kind not in PARTS and not is_name(heading) else kind


def _begins(normal: str) -> Kind | None:
    for start, kind in _KINDS:
        # Chinese and Japanese do not part their words
        if normal == start or (
            normal.startswith(start) and (not start.isascii() or not normal[len(start)].isalnum())
        ):
            return kind
    return None


# The most telling first: of several words of one line the first of these counts.
_STATUSES: Final[tuple[tuple[str, Lifecycle, str], ...]] = (
    (
        "superseded",
        "superseded",
        r"""supersed\w*, superced\w*, replaced, ersetzt, abgelöst, remplac\w+, reemplazad\w+, substituíd\w+
        sostituit\w+, vervangen, 取代""",
    ),
    (
        "rejected",
        "rejected",
        r"""reject\w*, declined, withdrawn, retracted, abandoned, cancel\w+, abgelehnt, verworfen, rejet\w+
        rechazad\w+, rejeitad\w+, rifiutat\w+, afgewezen, 拒绝""",
    ),
    (
        "deprecated",
        "stale",
        r"""deprecat\w*, obsolet\w*, retired, stale, stagnant, deferred, postponed, on hold, veraltet
        überholt, obsol\w+, déprécié\w*, verouderd, 弃用""",
    ),
    ("disputed", "disputed", "in review, last call, disputed, contested, returned for revision"),
    (
        "accepted",
        "active",
        r"""accept\w*, approved, adopted, decided, final, done, implemented, active, living, akzeptiert
        angenommen, entschieden, accepté\w*, adopté\w*, aceptad\w+, aceit\w+, accettat\w+, geaccepteerd
        已接受, 采纳, 採用""",
    ),
    (
        "proposed",
        "active",
        r"""propos\w*, draft, pending, open, rfc, wip, entwurf, vorgeschlagen, brouillon, propuest\w+
        borrador, rascunho, bozza, voorgesteld, 提议, 提案""",
    ),
)
LIFECYCLES: Final = MappingProxyType({name: lifecycle for name, lifecycle, _ in _STATUSES})
_STATUS_WORDS: Final = tuple((name, any_of(words)) for name, _, words in _STATUSES)
_STATE_WORDS: Final = any_of("\n".join(words for _, _, words in _STATUSES))
_PARTLY: Final = any_of(r"part, parts, partly, partially, in part, section \S+, teilweise, en partie")

_REPLACES: Final = r"""supersedes, supercedes, replaces, obsoletes, superseding, replacing, ersetzt(?! durch)
    löst, remplace(?! par), reemplaza(?! por), substitui(?! por), sostituisce, vervangt"""
_REPLACING: Final = any_of(_REPLACES)


def status_of(text: str) -> str | None:
    """The status that a text names, or None. A template's unfilled list of statuses names none."""
    for line in text.splitlines():
        said = _REPLACING.sub("", line)  # "supersedes ADR-3" is no status of this record
        found = [name for name, words in _STATUS_WORDS if words.search(said)]
        if len(found) > 2 and ("|" in line or "{" in line):
            continue
        if found and found[0] == "superseded" and _PARTLY.search(line):
            found = found[1:] or ["accepted"]  # superseded in part: the rest still holds
        if found:
            return found[0]
    return None


def without_states(text: str) -> str:
    """A text without the words that name a status, or say that it holds in part."""
    return _STATE_WORDS.sub(" ", _PARTLY.sub(" ", text))


# A reference has the relation of the nearest phrase before it; of phrases that overlap the first here counts.
_RELATIONS: Final[tuple[tuple[Relation, str], ...]] = (
    (
        "amended_by",
        r"""(?:superseded|superceded|replaced) (?:in part|partly|partially) by
        (?:partly|partially|in part) (?:superseded|superceded|replaced) by, amended[ -]by, extended by
        clarified by, refined by, updated by, geändert durch, modifié\w* par, modificad\w+ por""",
    ),
    (
        "superseded_by",
        r"""(?:superseded|superceded|replaced|obsoleted)[ -]by, (?:ersetzt|abgelöst) durch, remplacé\w* par
        reemplazad\w+ por, substituíd\w+ por, sostituit\w+ da, vervangen door""",
    ),
    (
        "amends",
        r"""(?:partly|partially|in part) (?:supersedes|replaces), supersedes (?:in part|partly|parts? of)
        amends, amend, extends, clarifies, refines, updates, ändert, modifie, modifica""",
    ),
    ("supersedes", _REPLACES),
    (
        "depends_on",
        r"""depends[ -]on, depends upon, requires, builds[ -]on, based on, relies on, rests on, blocked by
        hängt ab von, baut auf, dépend d[eu], depende d[eo], si basa su, afhankelijk van""",
    ),
    ("required_by", r"required by, depended on by, enables, blocks, prerequisite (?:of|for)"),
    (
        "relates_to",
        r"""relate[sd](?:[ -]to)?, see(?: also)?, links? to, linked, informs, informed by, siehe, voir, véase
        ver também, vedi, zie""",
    ),
)
_RELATION_WORDS: Final = tuple((name, any_of(words)) for name, words in _RELATIONS)


def relations_in(text: str) -> list[tuple[int, int, Relation]]:
    """Where a text names a relation: start, end and which, in order."""
    found: list[tuple[int, int, Relation]] = []
    for name, pattern in _RELATION_WORDS:
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end, _ in found):
                found.append((match.start(), match.end(), name))
    return sorted(found)


# Names in the front matter that hold references.
FRONT_RELATIONS: Final = MappingProxyType[str, Relation](
    {
        "supersedes": "supersedes",
        "replaces": "supersedes",
        "superseded-by": "superseded_by",
        "supersededby": "superseded_by",
        "replaced-by": "superseded_by",
        "amends": "amends",
        "amended-by": "amended_by",
        "depends-on": "depends_on",
        "depends": "depends_on",
        "requires": "depends_on",
        "required-by": "required_by",
        "relates-to": "relates_to",
        "related": "relates_to",
        "informs": "relates_to",
        "links": "relates_to",
    }
)
