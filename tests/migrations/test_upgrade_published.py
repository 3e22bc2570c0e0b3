"""An install of the published proposal becomes ours by the same push, and its callers notice nothing."""

from __future__ import annotations

import pytest

from tests.rig import deploy, hosts
from tests.rig.catalogue import catalogue
from tests.rig.contents import contents
from tests.rig.hosts import Port

PUBLISHED_LEDGER = (
    "id, memory_id, workspace_id, project_id, task_id, flow_id, step_index, rationale, importance, pinned, "
    "recall_count, used_count, last_recalled_at, metadata, created_at"
)
PUBLISHED_ROWS = (
    "memory_id, summary, content, rationale, step_index, importance, pinned, lifecycle_status, relevance, "
    "relevance_source, recency, dependency_boost, ranking_score"
)
PUBLISHED_CALL = """public.match_decision_ledger(
  p_workspace_id => 'acme', p_query => 'archive exports', p_query_embedding => null,
  p_project_id => 'billing', p_task_id => 'archive', p_current_step => 20, p_match_count => 10,
  p_w_similarity => 0.45, p_w_importance => 0.25, p_w_recency => 0.15, p_w_dependency => 0.15,
  p_half_life_steps => 30, p_dependency_saturation => 3, p_include_superseded => false)"""
STATS = (
    "recall_policy, recall_requests, items_returned, avg_similarity, avg_ranking_score, "
    "used_rate, ignored_rate"
)


@pytest.fixture(params=["old", "none"])
def proposal(request, published_proposal_host):
    return published_proposal_host(default_privileges=request.param)


def install(database) -> None:
    deploy.apply(database, "open_brain", "decision_ledger")


@pytest.mark.parametrize(
    "port",
    [
        pytest.param(Port(default_privileges="old"), id="the usual host"),
        pytest.param(Port(3072, "public", "none", fingerprint=False), id="large vectors in public"),
        pytest.param(Port(384, "public", "old", postgres=16), id="PostgreSQL 16"),
    ],
)
def test_a_push_upgrades_in_place(port, databases, tmp_path):
    host = databases(hosts.published_proposal_host, port)
    done = deploy.push(host, deploy.project_folder(tmp_path, *deploy.migrations()))

    assert done.returncode == 0, done.stderr
    assert host.value("select count(*) from public.agent_decision_ledger") == 11


def test_rows_duplicate_steps_pins_and_counters_stay(proposal):
    query = (
        f"select {PUBLISHED_LEDGER} from agent_decision_ledger where memory_id::text like '3%%' order by 2"
    )
    edges = "select * from public.agent_decision_edges order by id"
    before, before_edges = proposal.rows(query), proposal.rows(edges)
    install(proposal)

    assert len(before) == 6
    assert proposal.rows(query) == before
    assert proposal.rows(edges) == before_edges


def test_only_the_missing_decisions_are_enrolled(proposal):
    missing = "select id from agent_memories where memory_type = 'decision' and id::text like '1%%'"
    assert proposal.rows("select memory_id from agent_decision_ledger where memory_id::text like '1%%'") == []
    install(proposal)

    enrolled = proposal.rows(
        "select memory_id from agent_decision_ledger where memory_id::text like '1%%' order by 1"
    )
    assert enrolled == proposal.rows(missing + " order by 1")


def test_a_step_beyond_the_limit_is_kept_and_ignored_for_newest(proposal):
    install(proposal)
    proposal.service.execute(
        """insert into agent_memories (id, workspace_id, project_id, task_id, memory_type, summary, content)
        values ('40000000-0000-4000-8000-000000000001', 'acme', 'billing', 'export', 'decision', 's', 'c')"""
    )

    steps = proposal.rows(
        "select step_index from agent_decision_ledger where task_id = 'export' order by step_index"
    )
    assert [step for (step,) in steps] == [3, 4, 4, 5, 2_000_000_000]


def test_exactly_one_match_decision_ledger_remains(published_proposal_host):
    host = published_proposal_host()
    # installs from an earlier state of the proposal have another list of arguments
    host.owner.execute(
        "create function match_decision_ledger(p_workspace_id text, p_query text, p_limit integer default 5) "
        "returns setof uuid language sql stable as 'select null::uuid'"
    )
    install(host)

    assert host.value("select count(*) from pg_proc where proname = 'match_decision_ledger'") == 1
    assert host.value("select count(*) from pg_proc where proname = 'touch_decision_recall'") == 1


def test_a_call_with_the_published_arguments_answers_the_same(proposal):
    query = f"select {PUBLISHED_ROWS} from {PUBLISHED_CALL}"
    before = proposal.rows(query)
    install(proposal)
    after = proposal.rows(query, role="service_role")

    assert len(before) == 2
    for old, new in zip(before, after, strict=True):
        assert [*new[:5], *new[6:8], new[9]] == [*old[:5], *old[6:8], old[9]]
        for column in (5, 8, 10, 11, 12):
            assert float(new[column]) == pytest.approx(float(old[column]), abs=1e-6)


def test_the_published_columns_come_first_in_the_answer(proposal):
    install(proposal)
    columns = [
        column.name for column in proposal.service.execute(f"select * from {PUBLISHED_CALL}").description
    ]

    assert ", ".join(columns[:13]) == PUBLISHED_ROWS


def test_touch_decision_recall_goes_on(proposal):
    install(proposal)
    ids = [f"30000000-0000-4000-8000-00000000000{number}" for number in (1, 2)]
    call = "select touch_decision_recall(p_memory_ids => %s::uuid[]{})"
    recalled = proposal.value(call.format(""), (ids,), role="service_role")
    used = proposal.value(call.format(", p_used => true"), (ids,), role="service_role")

    assert (recalled, used) == (2, 2)
    assert proposal.rows(
        "select recall_count, used_count from agent_decision_ledger "
        "where memory_id = any(%s::uuid[]) order by memory_id",
        (ids,),
    ) == [(19, 6), (2, 1)]


def test_the_stats_view_goes_on_with_its_columns_and_what_stands_on_it(proposal):
    proposal.owner.execute(
        "create view host_report as select recall_policy, used_rate from agent_recall_policy_stats"
    )
    before = proposal.rows(f"select {STATS} from agent_recall_policy_stats")
    install(proposal)

    assert proposal.rows(f"select {STATS} from agent_recall_policy_stats", role="service_role") == before
    columns = [
        c.name for c in proposal.service.execute("select * from agent_recall_policy_stats").description
    ]
    assert ", ".join(columns[:7]) == STATS
    assert proposal.value("select count(*) from host_report") == 1


def test_a_view_on_the_old_function_stops_the_push_in_words_and_stays(published_proposal_host, tmp_path):
    host = published_proposal_host()
    host.owner.execute("create view host_recent as select memory_id from match_decision_ledger('acme')")
    before = catalogue(host)

    done = deploy.push(host, deploy.project_folder(tmp_path, *deploy.migrations()))

    assert "RL501" in done.stderr
    assert "host_recent" in done.stderr.split("(SQLSTATE RL501)")[0]
    assert catalogue(host) == before


def test_the_proposals_rights_are_taken_back(published_proposal_host):
    host = published_proposal_host(default_privileges="old")
    install(host)
    ours = ("agent_decision_ledger", "agent_decision_edges", "match_decision_ledger", "touch_decision_recall",
            "agent_recall_policy_stats")  # fmt: skip
    left = [
        line
        for line in catalogue(host)
        if line.startswith("grant ")
        and line.split(" to ")[-1] in ("anon", "authenticated", "public")
        and any(name in line for name in ours)
    ]

    assert left == []


def test_a_writer_loses_nothing_to_what_the_proposal_could_not_take(proposal):
    install(proposal)
    for number, step in enumerate(('"soon"', "-1", "1.5", "99999999999999999999", "null", '{"a": 1}')):
        proposal.service.execute(
            """insert into agent_memories (workspace_id, task_id, memory_type, summary, content, metadata)
            values ('acme', 'faults', 'decision', %s, 'c', jsonb_build_object('step_index', %s::jsonb))""",
            (str(number), step),
        )

    assert proposal.value("select count(*) from agent_decision_ledger where task_id = 'faults'") == 6


def test_an_upgraded_install_has_the_columns_indexes_and_triggers_of_a_new_one(proposal, open_brain_host):
    fresh = open_brain_host()
    install(proposal)
    install(fresh)

    def ours(database, kind: str) -> set[str]:
        lines = (line for line in catalogue(database, ("public",)) if line.startswith(f"{kind} "))
        return {line for line in lines if "decision" in line}

    for kind in ("column", "index", "function", "view"):
        assert ours(fresh, kind) - ours(proposal, kind) == set(), kind
    # nothing of the proposal's acts beside ours
    for kind in ("trigger", "policy"):
        assert ours(fresh, kind) == ours(proposal, kind), kind


def test_no_row_of_the_hosts_tables_is_changed(proposal):
    before = contents(proposal, "public")
    install(proposal)
    after = contents(proposal, "public")

    for table in (table for table in before if "decision" not in table):
        assert after[table] == before[table], table
