"""The demo, whole: what it prints, and that nothing of it stays, however it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def record(folder: Path, number: int, title: str, **said: str) -> None:
    text = f"# {number}. {title}\n\n## Status\n\n{said.get('status', 'Accepted')}\n\n"
    text += f"## Decision\n\n{said['decision']}\n\n## Links\n\n{said.get('links', '')}\n"
    (folder / f"{number:04}.md").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    superseded = "Superseded by ADR-3"
    record(
        folder, 1, "Keep sessions in memory", status=superseded, decision="They live in a process's memory."
    )
    record(folder, 2, "Run two processes", decision="For the load.")
    record(folder, 3, "Sign cookies", decision="The cookie holds it all.", links="- Depends on ADR-2")
    return folder


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Where the demo makes its folders: short, for sockets, and entered by the account of the server."""
    path = Path(tempfile.mkdtemp(prefix="rl-demo-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def start(folder: Path, temporary: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ranked_ledger.cli", "demo", "--from", str(folder), *more]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUPABASE_")}
    environment |= {"TMPDIR": str(temporary), "COLUMNS": "100"}  # as wide as the demo wants to be
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # who runs the tests in the background has them ignore SIGINT, which a child inherits
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def left_over(temporary: Path) -> list[str]:
    """Processes and files that point to the demo's own folder."""
    mine = [
        process
        for process in psutil.process_iter(["pid", "cmdline"])
        if any(str(temporary) in word for word in process.info["cmdline"] or ())
    ]
    return [f"{one.info['pid']} {one.info['cmdline']}" for one in mine] + [
        str(one) for one in temporary.iterdir()
    ]


def test_the_demo_shows_what_was_replaced_and_leaves_nothing(folder: Path, temporary: Path) -> None:
    out, err = (demo := start(folder, temporary)).communicate(timeout=120)
    assert demo.returncode == 0, err
    for said in (
        "supabase db push: open brain and decision ledger",
        "3 records new; 1 edge and 1 supersession new.",
        "Question 1: Keep sessions in memory",
        "Question 3:",
        "Without the ledger: by words alone",
        "1 ADR-0001 Keep sessions in memory",
        "ADR-0001 superseded → ADR-0003 active",
        "Ranked recall leaves ADR-0001 out",
        "Without a question",
        "nothing is left running",
    ):
        assert said in out
    assert max(map(len, out.splitlines())) <= 100
    assert left_over(temporary) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_ends_everything(folder: Path, temporary: Path, stop: signal.Signals) -> None:
    demo = start(folder, temporary)
    assert demo.stdout is not None
    assert "are running" in demo.stdout.readline()
    demo.send_signal(stop)
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert err.splitlines()[-1] == "Error: interrupted"
    assert left_over(temporary) == []


def test_questions_of_the_folder_and_json(folder: Path, temporary: Path) -> None:
    (folder / "questions.yaml").write_text(
        "- ask: where do sessions live in memory?\n  why: x\n- which cookies?\n"
    )
    out, err = (demo := start(folder, temporary, "--json")).communicate(timeout=120)
    assert demo.returncode == 0, err
    answer = json.loads(out)
    assert [one["ask"] for one in answer["questions"]] == [
        "where do sessions live in memory?",
        "which cookies?",
    ]
    assert answer["questions"][0]["without_ledger"]["retired_rank"] == 1
    assert len(answer["imported"]["recorded"]) == 3
    assert left_over(temporary) == []


def test_our_own_questions_are_answered_by_the_records_that_they_mean(temporary: Path) -> None:
    out, err = (demo := start(REPOSITORY / "docs" / "decisions", temporary, "--json")).communicate(
        timeout=120
    )
    assert demo.returncode == 0, err
    answer = json.loads(out)
    keys = {memory_id: key for key, memory_id in answer["imported"]["decisions"].items()}
    first = [keys[one["recall"]["hits"][0]["memory_id"]] for one in answer["questions"]]
    assert first == ["ADR-0010", "ADR-0008", "ADR-0009"]
    replaced = answer["questions"][0]["without_ledger"]
    assert keys[replaced["retired"]] == "ADR-0007"
    assert (replaced["retired_rank"], replaced["successor_rank"]) == (1, 1)
    assert "ADR-0007" not in {keys[hit["memory_id"]] for hit in answer["questions"][0]["recall"]["hits"]}
    assert max(map(len, err.splitlines())) <= 100
    assert len(err.splitlines()) <= 82


def test_a_folder_without_records_starts_nothing(tmp_path: Path, temporary: Path) -> None:
    out, err = (demo := start(tmp_path, temporary)).communicate(timeout=30)
    assert (demo.returncode, out) == (2, "")
    assert "holds no decision record" in err
    assert "looked for" in err
    assert left_over(temporary) == []
