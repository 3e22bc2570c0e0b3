"""An evaluation stays in its throwaway stack, whatever libpq's variables say."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ranked_ledger.evals.asking import Session
from ranked_ledger.evals.ground import ground

SDK = Path(__file__).parents[2] / "sdk" / "ranked_ledger"


@contextmanager
def listener() -> Iterator[socket.socket]:
    """A server of somebody else: nobody may so much as knock."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.5)
        yield listening


def knocked(listening: socket.socket) -> bool:
    try:
        listening.accept()[0].close()
    except TimeoutError:
        return False
    return True


def variables(way: str, port: int, folder: Path) -> dict[str, str]:
    """Two ways to name an address, and a setting that would keep anything from being written."""
    read_only = "-c default_transaction_read_only=on"
    if way == "address":
        return {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(port), "PGOPTIONS": read_only}
    file = folder / "services.conf"
    said = [f"port={port}", f"options={read_only}", "target_session_attrs=standby", "require_auth=password"]
    file.write_text("\n".join(["[elsewhere]", "hostaddr=127.0.0.1", *said, ""]), encoding="utf-8")
    return {"PGSERVICE": "elsewhere", "PGSERVICEFILE": str(file)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["address", "service"])
def test_no_connection_leaves_the_stack(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listener() as listening:
        for name, value in variables(way, listening.getsockname()[1], tmp_path).items():
            monkeypatch.setenv(name, value)
        with ground(8) as there:
            assert "p_workspace_id" in there.parameters()
            assert set(there.presets()) == {"published", "tuned"}
            assert there.versions()["pgvector"]
            with Session(there.info.superuser_db_url) as session:
                assert session.in_force("nothing is there") == 0
        assert not knocked(listening)


def test_there_is_one_way_to_connect() -> None:
    direct = [file.name for file in SDK.rglob("*.py") if "psycopg.connect(" in file.read_text()]
    assert direct == ["connecting.py"]
