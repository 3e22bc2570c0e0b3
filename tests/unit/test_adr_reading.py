"""One file as one record: the forms that decision records are written in."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranked_ledger.adr import AdrRecord
from ranked_ledger.adr.reading import read


def record_of(text: str, path: str = "0007-a-record.md") -> AdrRecord:
    record, _ = read(path, text)
    assert record is not None
    return record


def references(text: str, path: str = "0007-a-record.md") -> set[tuple[str, str]]:
    return {(one.relation, one.target) for one in record_of(text, path).references}


NYGARD = """# 7. Use PostgreSQL

Date: 2016-02-12

## Status

Accepted

Supersedes [3. Use files](0003-use-files.md)

## Context

Invoices must add up.

## Decision

We will use PostgreSQL.

## Consequences

Somebody has to run it.
"""

MADR = """---
status: accepted
date: 2024-05-06
importance: 0.8
---
# Use PostgreSQL

## Context and Problem Statement

Invoices must add up.

## Decision Drivers

* transactions

## Considered Options

* PostgreSQL
* [MongoDB](https://example.org)
* Files

## Decision Outcome

Chosen option: "PostgreSQL", because invoices must add up.

### Positive Consequences

* They do.

### Confirmation

A test adds them up.

## Pros and Cons of the Options

### MongoDB

* Bad, because no joins

## Links

* Depends on [ADR-0002](0002-transactions.md)
* Refines ADR-5
"""

MADR_2 = """# Use PostgreSQL

* Status: superseded by [ADR-0009](0009-use-a-service.md)
* Deciders: the team
* Date: 2019-01-31

Technical Story: none

## Context and Problem Statement

Invoices must add up.

## Decision Outcome

PostgreSQL.
"""

Y_STATEMENT = """# Use PostgreSQL

In the context of billing, facing the need for sums that add up, we decided for PostgreSQL
and neglected MongoDB and plain files, to achieve consistency, accepting that somebody has to run it,
because invoices are law.
"""


def test_nygards_form() -> None:
    record = record_of(NYGARD)
    assert (record.key, record.number, record.title) == ("ADR-0007", 7, "Use PostgreSQL")
    assert record.date == date(2016, 2, 12)
    assert (record.status, record.lifecycle) == ("accepted", "active")
    assert record.text == "Use PostgreSQL\n\nWe will use PostgreSQL."
    assert record.rationale == "Invoices must add up.\n\nConsequences\nSomebody has to run it."
    assert references(NYGARD) == {("supersedes", "0003-use-files.md")}


def test_madr() -> None:
    record = record_of(MADR)
    assert (record.status, record.date, record.importance) == ("accepted", date(2024, 5, 6), 0.8)
    assert record.alternatives == ("MongoDB", "Files")
    assert record.text.startswith("Use PostgreSQL\n\nChosen option")
    assert record.rationale is not None
    for said in ("add up", "transactions", "They do.", "A test adds them up.", "no joins"):
        assert said in record.rationale
    assert references(MADR) == {("depends_on", "0002-transactions.md"), ("amends", "ADR-0005")}


def test_madr_with_its_fields_as_a_list() -> None:
    record = record_of(MADR_2)
    assert (record.status, record.lifecycle, record.date) == ("superseded", "superseded", date(2019, 1, 31))
    assert references(MADR_2) == {("superseded_by", "0009-use-a-service.md")}
    assert record.rationale is not None
    assert "Deciders" not in record.rationale


def test_y_statement() -> None:
    record = record_of(Y_STATEMENT)
    assert record.text == "Use PostgreSQL\n\nWe decided for PostgreSQL."
    assert record.alternatives == ("MongoDB", "plain files")
    assert record.rationale is not None
    assert "facing the need for sums that add up" in record.rationale
    assert "because invoices are law." in record.rationale


def test_log4brains_names_files_by_day() -> None:
    record = record_of(
        "# Use log4brains\n\n- Status: draft\n- Tags: doc\n\n## Decision\n\nYes.", "20200924-x.md"
    )
    assert (record.key, record.number, record.date) == ("20200924-x", None, date(2020, 9, 24))
    assert (record.status, record.lifecycle) == ("proposed", "active")


def test_another_language() -> None:
    record = record_of(
        "# ADR-0005: Wir nutzen Kafka\n\n## Status\nAbgelehnt (03.04.2021)\n\n## Kontext\nViele Ereignisse.\n\n"
        "## Entscheidung\nKafka für alles.\n\n## Konsequenzen\nBetrieb.",
        "kafka.md",
    )
    assert (record.number, record.lifecycle, record.date) == (5, "rejected", date(2021, 4, 3))
    assert record.text == "Wir nutzen Kafka\n\nKafka für alles."
    assert record.rationale == "Viele Ereignisse.\n\nKonsequenzen\nBetrieb."


def test_a_language_that_we_do_not_know_loses_nothing() -> None:
    record = record_of(
        "# 4. Használjunk Postgrest\n\n## Döntés\n\nAz lesz.\n\n## Okok\n\nMert jó.", "0004-x.md"
    )
    assert "Az lesz." in record.text
    assert record.rationale is not None
    assert "Mert jó." in record.rationale


def test_windows_line_ends_and_a_heading_in_code() -> None:
    text = NYGARD.replace("We will use PostgreSQL.", "We will:\n\n```\n# Context\n```").replace("\n", "\r\n")
    record = record_of(text)
    assert "# Context" in record.text
    assert record.rationale is not None
    assert record.rationale.startswith("Invoices must add up.")


@pytest.mark.parametrize(
    "text", ["# 1. Only a title", "---\nstatus: accepted\n---\n", "## Decision\n\nYes.", "# A\n## Context"]
)
def test_missing_sections_are_no_reason_to_fail(text: str) -> None:
    assert record_of(text).text


def test_front_matter_that_is_no_yaml_is_said() -> None:
    record, remarks = read("1.md", "---\nstatus: [accepted\n---\n# 1. A\n\n## Decision\n\nYes.")
    assert record is not None
    assert [one.reason for one in remarks if "no YAML" in one.reason]


def test_front_matter_cannot_grow() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    record = record_of(f"---\n{bomb}supersedes: *i\n---\n# 1. A\n\n## Decision\n\nYes.")
    assert record.references == ()


@pytest.mark.parametrize(
    ("value", "importance"),
    [("0.9", 0.9), ("high", 0.9), ("1", 1.0), ("2", None), ("true", None), ("much", None)],
)
def test_importance(value: str, importance: float | None) -> None:
    record, remarks = read("1.md", f"---\nimportance: {value}\n---\n# 1. A\n\n## Decision\n\nYes.")
    assert record is not None
    assert record.importance == importance
    assert bool(remarks) is (importance is None)


@pytest.mark.parametrize(
    ("status", "lifecycle"),
    [
        ("Accepted", "active"),
        ("Proposed", "active"),
        ("Superseded by 0009", "superseded"),
        ("Superceded by ADR-9", "superseded"),
        ("accepted, supersedes ADR-3", "active"),
        ("Superseded in part by ADR-9", "active"),
        ("Deprecated", "stale"),
        ("Obsolete", "stale"),
        ("Rejected", "rejected"),
        ("withdrawn", "rejected"),
        ("last call", "disputed"),
        ("{proposed | rejected | accepted | deprecated}", "active"),
        ("", "active"),
    ],
)
def test_lifecycle(status: str, lifecycle: str) -> None:
    assert record_of(f"# 1. A\n\n## Status\n\n{status}\n\n## Decision\n\nYes.").lifecycle == lifecycle


@pytest.mark.parametrize(
    ("line", "reference"),
    [
        ("Superseded by [2. B](0002-b.md)", ("superseded_by", "0002-b.md")),
        ("Superseded by ADR-2", ("superseded_by", "ADR-0002")),
        ("Supersedes 0002", ("supersedes", "2")),
        ("Replaces [B](./0002-b.md)", ("supersedes", "./0002-b.md")),
        ("Amended by #2", ("amended_by", "ADR-0002")),
        ("Superseded in part by ADR-2", ("amended_by", "ADR-0002")),
        ("Depends on ADR 2", ("depends_on", "ADR-0002")),
        ("Required by RFC-0002", ("required_by", "ADR-0002")),
        ("See also ADR-0002", ("relates_to", "ADR-0002")),
        ("Ersetzt durch ADR-2", ("superseded_by", "ADR-0002")),
        ("Superseded on 2020-01-02 by ADR-2", ("relates_to", "ADR-0002")),
    ],
)
def test_relations_in_words(line: str, reference: tuple[str, str]) -> None:
    assert references(f"# 1. A\n\n## Decision\n\nYes.\n\n## Links\n\n- {line}") == {reference}


def test_several_relations_in_one_line() -> None:
    line = "Supersedes ADR-2 and ADR-3, depends on [B](0004-b.md)"
    assert references(f"# 1. A\n\n## Decision\n\nYes.\n\n## Links\n\n{line}") == {
        ("supersedes", "ADR-0002"),
        ("supersedes", "ADR-0003"),
        ("depends_on", "0004-b.md"),
    }


def test_relations_in_the_front_matter() -> None:
    text = "---\nsupersedes: [ADR-2, 3]\ndepends_on: 0004-b.md\n---\n# 1. A\n\n## Decision\n\nYes."
    assert references(text) == {("supersedes", "ADR-0002"), ("supersedes", "3"), ("depends_on", "0004-b.md")}


def test_links_elsewhere_are_citations() -> None:
    text = "# 1. A\n\n## Decision\n\nAs [B](0002-b.md) and [the web](https://x.org/page) say."
    assert references(text) == {("cites", "0002-b.md")}


def test_where_the_chosen_option_is_not_named_none_of_them_is_called_rejected() -> None:
    record = record_of("# 1. A\n\n## Considered Options\n\n- B\n- C\n\n## Decision\n\nWe keep it as it is.")
    assert record.alternatives == ()
    assert record.rationale is not None
    assert "- B\n- C" in record.rationale


def test_options_as_headings() -> None:
    record = record_of(
        "# 1. A\n\n## Considered Options\n\n### Kafka\n\nBig.\n\n### Solution by hand\n\nSmall.\n\n"
        "## Decision\n\nWe take Kafka."
    )
    assert record.alternatives == ("Solution by hand",)


def test_more_alternatives_than_the_ledger_takes() -> None:
    options = "\n".join(f"- option {number}" for number in range(30))
    record, remarks = read("1.md", f"# 1. A\n\n## Decision\n\nYes.\n\n## Alternatives\n\n{options}")
    assert record is not None
    assert len(record.alternatives) == 20
    assert record.alternatives[-1].endswith("option 29")
    assert remarks


def test_the_wording_is_named_by_its_digest_and_the_status_is_not() -> None:
    accepted, superseded = record_of(NYGARD), record_of(NYGARD.replace("Accepted", "Superseded by ADR-9"))
    assert accepted.digest == superseded.digest
    assert accepted.digest != record_of(NYGARD.replace("add up", "balance")).digest


def test_what_is_no_record() -> None:
    record, remarks = read("notes.md", "Some notes.\n\nMore of them.")
    assert record is None
    assert remarks[0].reason.startswith("no decision record")


def test_what_stands_above_the_title_is_not_lost() -> None:
    record = record_of("Status: rejected\n\nA word before.\n\n# 1. A\n\n## Decision\n\nYes.")
    assert (record.title, record.status) == ("A", "rejected")
    assert record.rationale == "A word before."


def test_fields_in_a_table_or_in_bold() -> None:
    record = record_of(
        "# 1. A\n\n| Status | Accepted |\n|---|---|\n| Date | 2024-02-03 |\n\n## Decision\n\nYes."
    )
    assert (record.status, record.date) == ("accepted", date(2024, 2, 3))
    record = record_of("# 1. A\n\n**Status:** Deprecated\n**Date**: 3 February 2024\n\n## Decision\n\nYes.")
    assert (record.status, record.date) == ("deprecated", date(2024, 2, 3))


def test_a_table_of_fields_leaves_no_frame_of_it() -> None:
    text = "# 1. A\n\n| Field | Value |\n|-------|-------|\n| Status | Accepted |\n| Decision | Yes. |\n"
    record = record_of(text)
    assert (record.text, record.rationale, record.status) == ("A\n\nYes.", None, "accepted")


def test_a_table_that_is_no_table_of_fields_stays_whole() -> None:
    table = "| store | cost |\n|---|---|\n| PostgreSQL | none |"
    assert record_of(f"# 1. A\n\n{table}\n").text == f"A\n\n{table}"


def test_a_record_written_as_fields() -> None:
    record = record_of(
        "# Flags in database\n\n**Status:** Proposed\n**Context:** We deploy often.\nToo often.\n"
        "**Decision:** Flags live in the database.\n\nAll of them.\n**Consequences:** One more table.\n"
    )
    assert record.text == "Flags in database\n\nFlags live in the database.\n\nAll of them."
    assert record.rationale == "We deploy often.\nToo often.\n\nConsequences\nOne more table."
    assert record.status == "proposed"


def test_a_sentence_with_a_colon_is_no_field() -> None:
    prose = "Our choice is simple: PostgreSQL.\nWe looked at three stores and\nthe reason: one program less."
    assert record_of(f"# Use Postgres\n\n{prose}\n").text == f"Use Postgres\n\n{prose}"


def test_the_title_and_number_of_fields() -> None:
    record = record_of("Title: Flags elsewhere\nNumber: 12\nStatus: accepted\n\nNo flags here.", "x.md")
    assert (record.title, record.key, record.text) == (
        "Flags elsewhere",
        "ADR-0012",
        "Flags elsewhere\n\nNo flags here.",
    )
    record = record_of("# 1. A\n\nTitle: Another\n\n## Decision\n\nYes.")
    assert (record.title, record.rationale) == ("A", "Title: Another")


def test_who_decided_is_kept_beside_the_text() -> None:
    assert record_of(MADR_2).fields == (("Deciders", "the team"), ("Technical Story", "none"))


@pytest.mark.parametrize("head", ["Status", "Links", "Date"])
def test_what_more_a_status_or_a_link_says_is_text(head: str) -> None:
    text = "# 1. A\n\n## Decision\n\nYes.\n\n## {}\n\n{}\n"
    said = "Accepted on 2024-01-02, until the load tests of March."
    record = record_of(text.format(head, said))
    assert record.rationale == f"{head}\n{said}"
    assert record.digest != record_of(text.format(head, said.replace("March", "April"))).digest


@pytest.mark.parametrize("heading", ["Status quo", "Data model", "Date arithmetic", "Links between invoices"])
def test_a_heading_that_only_begins_like_a_state_is_text(heading: str) -> None:
    record = record_of(f"# 1. A\n\n## Decision\n\nYes.\n\n## {heading}\n\nIt is slow.")
    assert record.rationale == f"{heading}\nIt is slow."


def test_a_heading_that_says_the_decision_is_kept() -> None:
    assert record_of("# 1. A\n\n## Decision: use Kafka\n\nYes.").text == "A\n\nDecision: use Kafka\nYes."


def test_what_is_said_about_options_is_kept() -> None:
    record = record_of(
        "# 1. A\n\n## Options\n\n- Kafka\n  - it is big\n- Rabbit\n\n## Decision\n\nChosen option: Kafka."
    )
    assert record.alternatives == ("Rabbit",)
    assert record.rationale is not None
    assert "it is big" in record.rationale


def test_the_wording_of_every_part_is_in_the_digest() -> None:
    text = "# A\n\nStatus: accepted\nContext: one\nDecision: two\n\nThe reason: three\nDeciders: four\n"
    digests = {record_of(text.replace(word, "x")).digest for word in ("A\n", "one", "two", "three", "four")}
    assert len(digests | {record_of(text).digest}) == 6
    assert record_of(text.replace("accepted", "rejected")).digest == record_of(text).digest


@pytest.mark.parametrize(
    ("said", "day", "remark"),
    [
        ("2024-07-01", date(2024, 7, 1), ""),
        ("25/07/2024", date(2024, 7, 25), ""),
        ("07/25/2024", date(2024, 7, 25), ""),
        ("07/07/2024", date(2024, 7, 7), ""),
        ("July 1, 2024", date(2024, 7, 1), ""),
        ("01/07/2024", None, "01/07/2024 is one day where"),
        ("01-07-2024", None, "01-07-2024 is one day where"),
        ("2024-02-30", None, "2024-02-30 is no day"),
        ("last spring", None, "'last spring' cannot be read"),
    ],
)
@pytest.mark.parametrize(
    "text", ["---\ndate: {}\n---\n# 1. A\n\nYes.", "# 1. A\n\nDate: {}\n\n## Decision\n\nYes."]
)
def test_a_date_that_is_not_clear_is_none_and_that_is_said(
    text: str, said: str, day: date | None, remark: str
) -> None:
    record, remarks = read("1.md", text.format(said))
    assert record is not None
    assert record.date == day
    assert (remark in remarks[-1].reason) if remark else remarks == []


def test_what_may_surprise_is_said() -> None:
    def said(text: str) -> list[str]:
        return [one.reason for one in read("1.md", text)[1]]

    assert said("# 1. A\n\n## Status\n\nProposed\n\n## Decision\n\nYes.") == [
        "proposed: it counts as active until it is decided"
    ]
    assert said("# 1. A\n\nStatus: wonderful\n\n## Decision\n\nYes.") == [
        "its status 'wonderful' is none that we know: it counts as active"
    ]
    assert said("# 1. A") == ["only its title is recorded: there is no other text in it"]


def test_front_matter_that_is_no_yaml_is_read_as_lines() -> None:
    record, remarks = read(
        "1.md", "---\nstatus: rejected\ntitle: Use: files\nwhy not: slow\n---\nAll of them."
    )
    assert record is not None
    assert (record.title, record.status) == ("Use: files", "rejected")
    assert record.text == "Use: files\n\nwhy not: slow\n\nAll of them."
    assert "its lines are read as text" in remarks[0].reason


def test_comments_are_left_out_and_nothing_else() -> None:
    record = record_of(
        "# 1. A\n\n<!-- a hint -->\nYes.\n\n```\n<!-- code -->\n```\n\n<!-- never closed\n\nNo."
    )
    assert "hint" not in record.text
    assert all(said in record.text for said in ("Yes.", "code", "never closed", "No."))


NAMES = [
    *(
        "Status",
        "Date",
        "Context",
        "Decision",
        "Deciders",
        "Title",
        "Number",
        "Tags",
        "Consequences",
        "Links",
    ),
    *(
        "Considered Options",
        "Rejected",
        "Notes",
        "Depends on",
        "Our choice",
        "The reason",
        "Why",
        "State of it",
    ),
    *("Context and Problem Statement", "Pros and Cons of the Options", "Data model", "Options", "Issue"),
]
SHAPES = [
    *(
        "{name}: {word}\n",
        "* **{name}:** {word}\n",
        "**{name}**\n\n{word}\n",
        "| {name} | {word} |\n|---|---|\n",
    ),
    *("\n## {name}\n\n{word}\n", "\n### {name}\n\n- {word}\n", "\n## {name} {word}\n\n", "{name}:\n{word}\n"),
    *("\n{word} {word}x\n\n", "- {word}\n  - {word}x\n", "\n```\n{name}: {word}\n```\n", "> {word}\n"),
    *(
        "1. [{word}](https://x.org/{word}x)\n",
        "Accepted, {word}\n",
        "superseded by {word} and ADR-2\n",
        "2024-01-02 {word}\n",
    ),
    *(
        "In the context of {word}, facing {word}x, we decided for {word}y and neglected {word}z to achieve {word}w.\n",
    ),
    *("Chosen option: {word}, because {word}x\n", "| {word} | {word}x |\n|---|---|\n| {name} | {word}y |\n"),
]


@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.sampled_from(NAMES)), min_size=1, max_size=12))
@example([("\n## {name}\n\n{word}\n", "Deciders"), ("\n### {name}\n\n- {word}\n", "Title")])
@settings(max_examples=400, deadline=None)
def test_no_word_of_a_record_is_lost(shapes: list[tuple[str, str]]) -> None:
    body = "".join(shape.format(name=name, word=f"word{place}") for place, (shape, name) in enumerate(shapes))
    record = record_of(f"# 1. A\n\n{body}")
    kept = [record.text, record.rationale or "", *record.alternatives, *(value for _, value in record.fields)]
    words = set(re.findall(r"\w+", " ".join(kept)))
    assert set(re.findall(r"\bword\w+", body)) - words == set()


WORDS = [
    *(
        "# ",
        "## ",
        "1. A\n",
        "Status",
        "Decision\n",
        "Context\n",
        "Links\n",
        "Considered Options\n",
        "Rejected\n",
    ),
    *(
        "accepted",
        "superseded by ",
        "supersedes ",
        "depends on ",
        "ADR-2",
        "[b](0002-b.md)",
        "\n",
        "\n\n",
        "- ",
        "* ",
    ),
    *(
        "---\n",
        "date: ",
        "2024-02-30",
        "importance: ",
        "status: ",
        ": ",
        "|",
        "<!--",
        "-->",
        "```\n",
        "In the context of ",
    ),
    *(
        "facing ",
        "decided for ",
        "to achieve ",
        "Chosen option: ",
        '"A"',
        "(",
        ")",
        "[",
        "]",
        "é",
        "状态",
        "\t",
        "> ",
    ),
]


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=40).map("".join))
def test_no_text_is_too_strange(text: str) -> None:
    record, remarks = read("0001-x.md", text)
    assert record is not None
    assert record.text.strip()
    assert len(record.alternatives) <= 20
    assert all(one.path == "0001-x.md" for one in remarks)


@pytest.mark.parametrize(
    "text",
    [
        "# 1. A\n\n## Decision\n\n" + "[a](" * 10_000,
        "a: b" + " " * 100_000 + "x\n\n# 1. A",
        "# 1. A\n\n## Decision\n\nin the context of " + "facing a decided for b " * 5_000,
        "# 1. A\n\n## Links\n\n" + "Depends on [a](b.md) " * 3_000,
    ],
    ids=["brackets", "spaces", "statement", "links"],
)
@pytest.mark.timeout(20)
def test_no_text_takes_for_ever(text: str) -> None:
    assert record_of(text)
