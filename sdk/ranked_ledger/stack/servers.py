"""The two daemons beside PostgreSQL: how each is started, and how it is known to be ready."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from dataclasses import asdict
from pathlib import Path

import httpx

from ranked_ledger.stack import postgrest
from ranked_ledger.stack.daemons import Daemon
from ranked_ledger.stack.errors import StartFailed
from ranked_ledger.stack.gateway_config import HEALTH_PATH, LOOPBACK, GatewayConfig
from ranked_ledger.stack.keys import Keys, write_private
from ranked_ledger.stack.layout import Layout

READY_SECONDS = 60.0
# PostgREST waits up to 32 s between two attempts to reconnect; starting it anew takes less than one
RECONNECT_SECONDS = 10.0

_PORTS = range(18000, 28000)  # below what systems hand out by themselves, so that a remembered one stays free


def port_refused(port: int) -> OSError | None:
    """Why no server could listen there now, or None; one that just closed does not count as taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error
    return None


def port_free(port: int) -> bool:
    """Whether a server could listen there now."""
    return port_refused(port) is None


def choose_port(avoid: tuple[int, ...] = ()) -> int:
    """A free port; random, so that stacks that are started at the same time do not choose the same one."""
    for _ in range(200):
        port = secrets.choice(_PORTS)
        if port not in avoid and port_free(port):
            return port
    raise StartFailed(f"No free port between {_PORTS.start} and {_PORTS.stop} was found: free some.")


class Rest:
    """PostgREST on a Unix socket that only the gateway uses, with its admin server on a loopback port."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._config_file = layout.folder / "postgrest.conf"
        self._admin_file = layout.run / "postgrest.admin"
        self.daemon = Daemon(
            name="PostgREST",
            program="postgrest",
            config_file=self._config_file,
            pid_file=layout.run / "postgrest.pid",
            log_file=layout.log("postgrest"),
        )

    def start(self, program: Path, db_url: str, jwt_secret: str) -> None:
        admin_port = choose_port()
        text = postgrest.config_text(
            db_url=db_url,
            socket=self._layout.rest_socket,
            admin_host=LOOPBACK,
            admin_port=admin_port,
            jwt_secret=jwt_secret,
        )
        write_private(self._config_file, text)
        write_private(self._admin_file, str(admin_port))
        # PGRST_ variables would overrule the file, and libpq's the URL: it gets neither.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        self.daemon.start([str(program), str(self._config_file)], environment)

    def await_ready(self, seconds: float = READY_SECONDS) -> None:
        self.daemon.await_ready(self._unready, seconds)

    def _unready(self) -> str | None:
        try:
            url = f"http://{LOOPBACK}:{self._admin_file.read_text()}/ready"
            answer = httpx.get(url, timeout=5, trust_env=False)
        except (OSError, httpx.HTTPError) as error:
            return f"its admin server does not answer ({error})"
        return None if answer.status_code == 200 else f"its /ready answers {answer.status_code}"


class Gateway:
    """Our gateway process."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._config_file = layout.folder / "gateway.json"
        self.daemon = Daemon(
            name="The gateway",
            program="ranked_ledger.stack.gateway",
            config_file=self._config_file,
            pid_file=layout.run / "gateway.pid",
            log_file=layout.log("gateway"),
        )

    def start(self, port: int, keys: Keys) -> None:
        config = GatewayConfig(
            identity=secrets.token_hex(8),
            port=port,
            upstream_socket=str(self._layout.rest_socket),
            bearers={
                keys.publishable: keys.anon,
                keys.secret: keys.service_role,
                keys.anon: keys.anon,
                keys.service_role: keys.service_role,
            },
        )
        write_private(self._config_file, json.dumps(asdict(config)) + "\n")
        environment = dict(os.environ)
        if paths := environment.get("PYTHONPATH"):
            # it is started elsewhere, where a relative path would mean something else
            environment["PYTHONPATH"] = os.pathsep.join(
                os.path.abspath(part) for part in paths.split(os.pathsep)
            )
        command = [sys.executable, "-P", "-m", "ranked_ledger.stack.gateway", str(self._config_file)]
        self.daemon.start(command, environment)

    def await_ready(self) -> None:
        self.daemon.await_ready(self._unready, READY_SECONDS)

    def port(self) -> int | None:
        """The port that the running gateway was started on."""
        try:
            return int(json.loads(self._config_file.read_text())["port"])
        except (OSError, ValueError, KeyError):
            return None

    def _unready(self) -> str | None:
        config = json.loads(self._config_file.read_text())
        try:
            answer = httpx.get(f"http://{LOOPBACK}:{config['port']}{HEALTH_PATH}", timeout=5, trust_env=False)
            identity = answer.json().get("identity")
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            return f"it does not answer ({error})"
        return None if identity == config["identity"] else "another program answers on its port"
