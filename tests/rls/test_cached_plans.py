"""PostgREST keeps the plan of a statement for all roles that come over its connection: none may answer for the next."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors


@pytest.mark.parametrize("function", ["ledger_schema_version", "memory_schema_version"])
def test_a_plan_of_the_service_role_answers_nobody_else(full_project, function):
    query = f"select public.{function}()"
    with psycopg.connect(full_project().dsn("authenticator"), autocommit=True) as connection:
        connection.execute("set role service_role")
        for _ in range(10):  # a plan is generic from the sixth time on
            assert connection.execute(query, prepare=True).fetchone() == (1,)
        connection.execute("set role anon")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(query, prepare=True)


def test_nothing_that_is_called_from_outside_is_folded_into_a_plan(full_project):
    folded = full_project().rows(
        """select p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.provolatile = 'i'
          and 'search_path=public, extensions, pg_temp' = any (p.proconfig)"""
    )
    assert folded == []
