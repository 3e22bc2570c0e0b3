"""A folder of records: order, keys, edges, supersessions, and what is said about everything else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ranked_ledger.adr import AdrFolder, read_folder
from ranked_ledger.errors import ConfigurationError

Write = Callable[..., AdrFolder]


def adr(
    title: str, *, status: str = "Accepted", date: str = "", links: str = "", decision: str = "Yes."
) -> str:
    return f"# {title}\n\nDate: {date}\n\n## Status\n\n{status}\n\n## Decision\n\n{decision}\n\n## Links\n\n{links}\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(**files: str | bytes) -> AdrFolder:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/').replace('_', '-')}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_folder(tmp_path)

    return write


def skipped(folder: AdrFolder) -> dict[str, str]:
    return {one.path: one.reason for one in folder.skipped}


def test_records_come_by_date_then_number(write: Write) -> None:
    folder = write(
        f_0003_c=adr("3. C", date="2020-01-01"), f_0001_a=adr("1. A", date="2021-01-01"), f_0002_b=adr("2. B")
    )
    assert [one.number for one in folder.records] == [3, 1, 2]


def test_a_chain_of_supersessions(write: Write) -> None:
    folder = write(
        a=adr("1. A", status="Superseded by ADR-2"),
        b=adr("2. B", status="Accepted", links="- Supersedes ADR-1"),
        c=adr("3. C", links="- Supersedes [B](b.md)"),
    )
    assert folder.supersessions == (("ADR-0001", "ADR-0002"), ("ADR-0002", "ADR-0003"))
    assert [one.lifecycle for one in folder.records] == ["superseded", "superseded", "active"]
    assert folder.edges == ()


def test_what_was_only_proposed_replaces_nothing(write: Write) -> None:
    folder = write(a=adr("1. A"), b=adr("2. B", status="Proposed", links="- Supersedes ADR-1"))
    assert folder.supersessions == ()
    assert folder.records[0].lifecycle == "active"
    assert [(one.path, one.reason) for one in folder.remarks] == [
        ("b.md", "proposed: it counts as active until it is decided"),
        ("b.md", "ADR-0002 would supersede ADR-0001, but is proposed: ADR-0001 stays as it is"),
    ]


def test_edges_point_where_the_words_say(write: Write) -> None:
    folder = write(
        a=adr("1. A", links="- Required by ADR-2\n- Amended by ADR-3"),
        b=adr("2. B"),
        c=adr("3. C", links="- Relates to ADR-2", decision="As [A](a.md) says."),
    )
    assert {(one.source, one.relation, one.target) for one in folder.edges} == {
        ("ADR-0002", "depends_on", "ADR-0001"),
        ("ADR-0003", "informs", "ADR-0001"),
        ("ADR-0002", "informs", "ADR-0003"),
    }


def test_links_that_lead_nowhere_are_said(write: Write) -> None:
    folder = write(a=adr("1. A", status="Superseded by ADR-9"))
    assert {one.reason for one in folder.remarks} == {
        "superseded by 'ADR-0009': there is no such record",
        "superseded, but by no record of this folder: it becomes stale",
    }


def test_a_record_may_be_named_by_its_address_and_other_addresses_are_nobodys_fault(write: Write) -> None:
    links = (
        "- Depends on [A](https://example.org/blob/main/adr/a.md)\n- See [the manual](https://example.org/x)"
    )
    folder = write(a=adr("1. A"), b=adr("2. B", links=links))
    assert [(one.source, one.target) for one in folder.edges] == [("ADR-0002", "ADR-0001")]
    assert folder.remarks == ()


def test_shared_numbers_get_keys_of_their_own_and_bare_ones_mean_none_of_them(write: Write) -> None:
    folder = write(
        f_0001_a=adr("A"),
        one__0002_b=adr("B"),
        two__0002_c=adr("C", links="- Depends on [A](../f-0001-a.md)"),
        three__0003_d=adr("D", links="- Depends on ADR-2\n- Depends on [C](../two/0002-c.md)"),
    )
    assert {one.key for one in folder.records} == {"f-0001-a", "ADR-0002-b", "ADR-0002-c", "ADR-0003"}
    assert {(one.source, one.target) for one in folder.edges} == {
        ("ADR-0002-c", "f-0001-a"),
        ("ADR-0003", "ADR-0002-c"),
    }
    assert [one.path for one in folder.remarks] == ["one/0002-b.md", "two/0002-c.md", "three/0003-d.md"]


def test_nothing_is_dropped_silently(write: Write, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / ".git").mkdir()
    folder = write(
        README=adr("Read me"),
        index=adr("Index"),
        adr_template=adr("Template"),
        latin=b"# 1. caf\xe9",
        utf16="# 1. A".encode("utf-16"),
        nul="# 1. A\x00",
        empty=b"  \n",
        huge="# 1. A\n\n## Decision\n\n" + "word " * 60_000,
        notes="no record",
        bom=b"\xef\xbb\xbf" + adr("1. A").encode(),
    )
    assert [one.path for one in folder.records] == ["bom.md"]
    assert set(skipped(folder)) == {
        *(
            "README.md",
            "adr-template.md",
            "empty.md",
            "huge.md",
            "index.md",
            "latin.md",
            "notes.md",
            "nul.md",
        ),
        *("picture.png", "utf16.md"),
    }
    assert "not UTF-8" in skipped(folder)["latin.md"]
    assert "262,144 are allowed" in skipped(folder)["huge.md"]


def test_a_link_out_of_the_folder_is_not_followed(write: Write, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.md"
    outside.write_text(adr("1. A"))
    (tmp_path / "inside.md").symlink_to(outside)
    assert skipped(write(b=adr("2. B")))["inside.md"] == "a link to a file outside the folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(write: Write, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text(adr("1. A"))
    secret.chmod(0)
    assert "cannot be read" in skipped(write(b=adr("2. B")))["secret.md"]


def test_a_pipe_is_not_waited_for(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert skipped(write(b=adr("2. B")))["pipe.md"] == "not a regular file"


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        read_folder(tmp_path / "missing")


def test_our_own_records_leave_nothing_to_look_at() -> None:
    folder = read_folder(Path(__file__).resolve().parents[2] / "docs" / "decisions")
    assert folder.remarks == ()
    assert {one.path for one in folder.skipped} <= {"README.md", "questions.yaml"}
    assert folder.supersessions
