"""What the ledger takes on the disk beyond the host's own rows."""

from __future__ import annotations

from tests.bench.findings import Finding
from tests.bench.plan import DISK
from tests.rig.databases import Database

_KB = 1000

# indexes, toast and maps included
_SIZES = """
select n.nspname || '.' || c.relname, pg_total_relation_size(c.oid)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm', 'S')
  and (n.nspname = 'ranked_ledger'
       or n.nspname = 'public' and c.relname in ('agent_decision_ledger', 'agent_decision_edges'))
order by 2 desc, 1
"""
_HOST = """
select pg_total_relation_size('public.thoughts') + pg_total_relation_size('public.agent_memories')
"""


def finding(database: Database, rows: int) -> Finding:
    """Everything of ours, after VACUUM, by decision."""
    sizes = dict(database.rows(_SIZES, role="supabase_admin"))
    return Finding(
        case="disk",
        title="disk",
        rows=rows,
        figure=sum(sizes.values()) / rows / _KB,
        words=DISK.words,
        bar=DISK,
        details={
            "bytes_a_decision": {name: round(size / rows, 1) for name, size in sizes.items()},
            "bytes_a_decision_of_the_host": round(int(str(database.value(_HOST))) / rows, 1),
        },
    )
