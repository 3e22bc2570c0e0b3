"""Processes that outlive the command that started them, and the proof that a pid is still one of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from ranked_ledger.stack.errors import StackError, StartFailed
from ranked_ledger.stack.keys import write_private
from ranked_ledger.stack.logs import rotate

POLL_SECONDS = 0.05
_SAME_MOMENT_SECONDS = 0.02


@dataclass(frozen=True)
class Daemon:
    """One detached process, whose command line names `program` and ends in its configuration file."""

    name: str
    program: str
    config_file: Path
    pid_file: Path
    log_file: Path

    def process(self) -> psutil.Process | None:
        """The living process, or None; a recycled pid is told apart by the time at which it was created."""
        try:
            noted = json.loads(self.pid_file.read_text())
            process = psutil.Process(noted["pid"])
            same = abs(process.create_time() - noted["create_time"]) < _SAME_MOMENT_SECONDS
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        except (OSError, ValueError, KeyError, psutil.Error):
            pass
        return self._unnoted()

    def _unnoted(self) -> psutil.Process | None:
        # Started by a command that was killed before it noted the pid, or noted before the clock was set.
        me = os.geteuid()
        for process in psutil.process_iter():
            try:
                *command, last = process.cmdline() or [""]
                ours = last == str(self.config_file) and any(self.program in part for part in command)
                if ours and process.uids().effective == me:
                    return process
            except psutil.Error:
                continue
        return None

    def usable(self) -> bool:
        """Whether it lives and still has its folder; one whose folder was deleted under it is ended."""
        if self.process() is None:
            return False
        if not self.config_file.exists():
            self.stop()
            return False
        return True

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it in a session of its own, as nobody's child: no terminal and no parent takes it down."""
        rotate(self.log_file)
        self.log_file.touch(mode=0o600)
        # The shell leaves at once and the process is handed to init, which reaps it: a long-lived caller
        # neither collects zombies nor is warned of children that it never waited for.
        launch = 'log=$1; shift; "$@" >>"$log" 2>&1 & echo $!'
        launched = subprocess.run(
            ["/bin/sh", "-c", launch, "sh", str(self.log_file), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
            text=True,
        )
        self._note(int(launched.stdout))

    def _note(self, pid: int) -> None:
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            return  # it ended already; whoever waits for its readiness reads the log
        write_private(self.pid_file, json.dumps({"pid": pid, "create_time": created}) + "\n")

    def stop(self, grace_seconds: float = 10.0) -> None:
        """Ask it to end, wait, and kill it if it does not."""
        if (process := self.process()) is not None:
            process.terminate()
            if not self._gone(grace_seconds):
                process.kill()
                if not self._gone(grace_seconds):
                    raise StackError(f"{self.name} (pid {process.pid}) does not end, even when it is killed.")
        self.pid_file.unlink(missing_ok=True)

    def _gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.process() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def await_ready(self, probe: Callable[[], str | None], seconds: float) -> None:
        """Wait until `probe` answers None; its last answer or the last line of the log explains a failure."""
        deadline = time.monotonic() + seconds
        while (answer := probe()) is not None:
            if self.process() is None:
                raise StartFailed(
                    f"{self.name} ended while it started: {self.last_line()} (log: {self.log_file})"
                )
            if time.monotonic() > deadline:
                raise StartFailed(
                    f"{self.name} is not ready after {seconds:.0f} s: {answer} (log: {self.log_file})"
                )
            time.sleep(POLL_SECONDS)

    def last_line(self) -> str:
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].strip() if lines else "it printed nothing"
