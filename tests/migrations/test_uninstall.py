"""docs/uninstall.md: the ledger goes, the host stays as it was, and it can come back."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import HostMaker
from tests.rig import deploy
from tests.rig.catalogue import catalogue, differences

PAGE = Path(__file__).parents[2] / "docs" / "uninstall.md"


def test_the_host_is_left_as_it_was_and_the_ledger_can_come_back(open_brain_host: HostMaker) -> None:
    host = open_brain_host()
    before = catalogue(host)
    memories = host.rows("select * from agent_memories order by id")
    deploy.apply(host, "decision_ledger")
    (script,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    host.owner.execute(script)
    assert differences(before, catalogue(host)) == []
    assert host.rows("select * from agent_memories order by id") == memories
    host.owner.execute(
        "insert into agent_memories (workspace_id, memory_type, summary, content) values ('acme', 'decision', 's', 'c')"
    )
    deploy.apply(host, "decision_ledger")
    assert host.value("select count(*) from agent_decision_ledger") == host.value(
        "select count(*) from agent_memories where memory_type = 'decision'"
    )
