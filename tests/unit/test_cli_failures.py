"""How commands fail: sentences and JSON on standard error, exit codes, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import respx

from ranked_ledger import errors
from ranked_ledger.cli import app as cli
from ranked_ledger.cli import failures

URL = "http://ledger.test"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPABASE_URL", URL)
    monkeypatch.setenv("SUPABASE_SECRET_KEY", "sb_secret_test")
    monkeypatch.setenv("RANKED_LEDGER_WORKSPACE", "acme")
    monkeypatch.delenv("RANKED_LEDGER_EMBEDDINGS_URL", raising=False)
    monkeypatch.setattr("ranked_ledger.running.sleep", lambda _: None)


def answering(respx_mock: respx.MockRouter, status: int, body: object) -> None:
    respx_mock.post(f"{URL}/rest/v1/rpc/ledger_schema_version").respond(json=1)
    respx_mock.post(url__startswith=f"{URL}/rest/v1/rpc/").respond(status, json=body)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.NotFoundError, 3),
        (errors.GoneError, 3),
        (errors.ConflictError, 4),
        (errors.LoopError, 4),
        (failures.Refused, 4),
        (errors.NotInstalledError, 5),
        (errors.SchemaTooOldError, 5),
        (errors.SchemaTooNewError, 5),
        (errors.NetworkError, 6),
        (errors.RequestTimeoutError, 6),
        (errors.RateLimitError, 6),
        (errors.ServiceUnavailableError, 6),
        (errors.EmbeddingError, 6),
        (errors.AuthenticationError, 7),
        (errors.PermissionDeniedError, 7),
        (errors.InvalidArgumentError, 2),
        (errors.ConfigurationError, 2),
        (errors.DimensionError, 2),
        (errors.APIError, 1),
        (errors.UnexpectedResponseError, 1),
    ],
)
def test_exit_codes(kind: type[errors.RankedLedgerError], code: int) -> None:
    assert failures.exit_code(kind("no")) == code


@pytest.mark.usefixtures("environment")
def test_an_error_is_a_sentence_on_standard_error(
    respx_mock: respx.MockRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(
        respx_mock, 400, {"code": "RL404", "message": "There is no \x1b[2Jdecision.", "hint": "Look again."}
    )
    assert cli.run(["show", "00000000-0000-0000-0000-000000000001"]) == failures.NOT_FOUND
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "Error: There is no  [2Jdecision. Next: Look again. [RL404, HTTP 400]\n"


@pytest.mark.usefixtures("environment")
def test_an_error_as_json(respx_mock: respx.MockRouter, capsys: pytest.CaptureFixture[str]) -> None:
    answering(
        respx_mock, 400, {"code": "RL461", "message": "A loop.", "details": "a, b", "hint": "Break it."}
    )
    ids = ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]
    assert cli.run(["link", *ids, "--json"]) == failures.REFUSED
    shown = capsys.readouterr()
    assert shown.out == ""
    error = json.loads(shown.err)["error"]
    assert error["type"] == "LoopError"
    assert error["code"] == "RL461"
    assert (error["detail"], error["exit_code"]) == ("a, b", 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ["recall", "--nonsense"],
        ["record"],
        ["recall", "x", "--limit", "many"],
        ["unknown"],
        ["recall", "x", "--limit", "0"],
        ["show", "no-uuid"],
        ["link", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"],
        ["prune"],
        ["record", "x", "--metadata", "[1]"],
        ["import", "/does/not/exist"],
        ["record-many", "/does/not/exist"],
        ["record-many", "/"],
        ["timeline", "--after", "x"],
    ],
)
@pytest.mark.usefixtures("environment")
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == failures.USAGE
    said = capsys.readouterr()
    assert said.err.startswith("Error: ")
    assert cli.run([*arguments, "--json"]) == failures.USAGE
    again = capsys.readouterr()
    assert again.out == ""
    assert json.loads(again.err)["error"]["exit_code"] == failures.USAGE


def test_what_the_environment_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("SUPABASE_URL", "SUPABASE_SECRET_KEY", "SUPABASE_SERVICE_ROLE_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert cli.run(["stats", "-w", "acme"]) == failures.USAGE
    assert "SUPABASE_URL" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_an_embedding_service_without_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKED_LEDGER_EMBEDDINGS_URL", "http://vectors.test")
    assert cli.run(["recall", "x"]) == failures.USAGE
    assert "RANKED_LEDGER_EMBEDDINGS_MODEL" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_forget_without_a_yes_refuses_where_nobody_can_be_asked(
    respx_mock: respx.MockRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["forget", "00000000-0000-0000-0000-000000000001"]) == failures.REFUSED
    assert "--yes" in capsys.readouterr().err
    assert not respx_mock.calls


@pytest.mark.usefixtures("environment")
def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ranked_ledger.RankedLedger.policy_stats", interrupted)
    assert cli.run(["stats"]) == failures.INTERRUPTED
    assert capsys.readouterr().err == "Error: interrupted\n"


def test_ctrl_c_while_modules_are_loaded() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "httpx":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from ranked_ledger.cli import main
main(["stats"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Error: interrupted\n")


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from ranked_ledger.cli import main
main({arguments})
"""


@pytest.mark.parametrize(
    ("blocked", "arguments", "said", "code"),
    [
        ({"typer"}, ["--help"], "pip install 'ranked-ledger[cli]'", 2),
        ({"rich"}, ["stats"], "pip install 'ranked-ledger[cli]'", 2),
        ({"psycopg"}, ["stack", "status"], "pip install 'ranked-ledger[local]'", 24),
        ({"psycopg"}, ["demo"], "pip install 'ranked-ledger[local]'", 24),
    ],
)
def test_a_missing_extra_is_named(blocked: set[str], arguments: list[str], said: str, code: int) -> None:
    program = BLOCKED.format(blocked=blocked, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code


@pytest.mark.parametrize(
    ("blocked", "module", "extra"),
    [("markdown_it", "ranked_ledger.adr", "cli"), ("yaml", "ranked_ledger.adr", "cli")]
    + [(name, "ranked_ledger.stack", "local") for name in ("psycopg", "psutil", "jwt", "platformdirs")],
)
def test_a_module_without_its_extra_names_it(blocked: str, module: str, extra: str) -> None:
    program = f"import sys; sys.modules[{blocked!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ModuleNotFoundError")]
    package = said.split(" needs the package ")[1]
    assert package == f"{blocked}: pip install 'ranked-ledger[{extra}]'"


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m ranked_ledger.cli --help | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
