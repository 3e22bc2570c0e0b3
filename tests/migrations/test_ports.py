"""Every kind of host ends up with the same objects of ours: installed catalogues are compared line by line."""

from __future__ import annotations

import pytest

from tests.rig import deploy, hosts, parity
from tests.rig.catalogue import catalogue, differences
from tests.rig.hosts import Port
from tests.rig.parity import ALL, AXES, CHOSEN, USUAL, allowlist


def ports(chosen: list[Port]):
    return [pytest.param(port, id=f"{port.name}_pg{port.postgres}") for port in chosen]


def unexplained(database, usual, port: Port) -> list[str]:
    """The lines in which two installs differ and that no entry of the allowlist explains."""
    lines = differences(catalogue(usual), catalogue(database))
    return [line for line in lines if not any(entry.explains(line[2:], port) for entry in allowlist())]


@pytest.mark.parametrize("port", ports(CHOSEN))
def test_a_push_to_any_port_installs_the_same(port: Port, databases, tmp_path):
    host = databases(hosts.open_brain_host, port)
    done = deploy.push(host, deploy.project_folder(tmp_path, *deploy.migrations()))

    assert done.returncode == 0, done.stderr
    assert unexplained(host, databases(hosts.full_host, USUAL), port) == []


@pytest.mark.matrix
@pytest.mark.parametrize("port", ports(ALL))
def test_all_forty_ports_get_the_same(port: Port, databases):
    installed = databases(hosts.full_host, port)

    assert unexplained(installed, databases(hosts.full_host, USUAL), port) == []
    assert installed.value("select count(*) from agent_decision_ledger") == 5


def test_every_entry_of_the_allowlist_is_still_needed(databases):
    usual = catalogue(databases(hosts.full_host, USUAL))
    seen = {port: differences(usual, catalogue(databases(hosts.full_host, port))) for port in CHOSEN}

    for entry in allowlist():
        needed = any(entry.explains(line[2:], port) for port, lines in seen.items() for line in lines)
        assert needed, f"nothing differs by this any more: {entry.pattern}"
        assert entry.axis in AXES


def test_the_chosen_ports_show_every_value_of_every_axis():
    for axis in AXES:
        values = {getattr(port, axis) for port in ALL}
        assert {getattr(port, axis) for port in CHOSEN} == values


def test_there_are_forty_ports():
    assert len(set(parity.ALL)) == 40
