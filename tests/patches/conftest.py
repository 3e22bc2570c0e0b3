"""What every file here shares: a served project and an embedding model, each started once a worker."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from ranked_ledger import RankedLedger
from ranked_ledger.stack import StackInfo
from tests.patches import rig
from tests.patches.patched import Rows, database


@pytest.fixture(scope="session")
def project() -> Iterator[StackInfo]:
    """A host's Open Brain of 384 dimensions with our ledger, served."""
    with rig.served_project() as info:
        yield info


@pytest.fixture(scope="session")
def embeddings() -> Iterator[str]:
    """The base URL of a real model of 384 dimensions."""
    with rig.embedding_model() as url:
        yield url


@pytest.fixture
def workspace() -> str:
    """A workspace of this test alone."""
    return f"w-{uuid4()}"


@pytest.fixture
def rows(project: StackInfo) -> Iterator[Rows]:
    """Asks the database itself."""
    with database(project) as rows:
        yield rows


@pytest.fixture
def ledger(project: StackInfo, workspace: str) -> Iterator[RankedLedger]:
    """The ledger of this test's workspace, asked by itself and not through a function."""
    with RankedLedger(project.url, project.secret_key, workspace=workspace) as ledger:
        yield ledger
