"""Ranked Ledger: agent memory that knows where a decision was made, how much it matters, why, what rests on
it, and whether it still holds.

Example:
    >>> from ranked_ledger import RankedLedger
    >>> ledger = RankedLedger.from_env(workspace="acme", project="billing")         # doctest: +SKIP
"""

from importlib.metadata import version as _version

from ranked_ledger.async_client import AsyncRankedLedger
from ranked_ledger.client import RankedLedger
from ranked_ledger.embeddings import (
    AsyncEmbedder,
    AsyncOpenAICompatibleEmbedder,
    Embedder,
    OpenAICompatibleEmbedder,
)
from ranked_ledger.errors import (
    APIError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    DimensionError,
    EmbeddingError,
    GoneError,
    InvalidArgumentError,
    LoopError,
    NetworkError,
    NotFoundError,
    NotInstalledError,
    PermissionDeniedError,
    RankedLedgerError,
    RateLimitError,
    RequestTimeoutError,
    SchemaTooNewError,
    SchemaTooOldError,
    SchemaVersionError,
    ServiceUnavailableError,
    UnexpectedResponseError,
)
from ranked_ledger.explanation import Component, Explanation
from ranked_ledger.models import (
    UNSET,
    ChainLink,
    Check,
    Decision,
    DecisionDetail,
    Edge,
    EdgeEnd,
    Enrolled,
    EnrolmentFailure,
    Forgotten,
    LostGround,
    NewDecision,
    Page,
    PolicyStats,
    Pruned,
    Status,
    Superseded,
    Transition,
    UsageMarked,
    Weights,
    WorkspaceStatus,
)
from ranked_ledger.recalls import Hit, Recall
from ranked_ledger.timeline import AsyncTimeline, Timeline

__version__ = _version("ranked-ledger")

__all__ = [
    "UNSET",
    "APIError",
    "AsyncEmbedder",
    "AsyncOpenAICompatibleEmbedder",
    "AsyncRankedLedger",
    "AsyncTimeline",
    "AuthenticationError",
    "ChainLink",
    "Check",
    "Component",
    "ConfigurationError",
    "ConflictError",
    "Decision",
    "DecisionDetail",
    "DimensionError",
    "Edge",
    "EdgeEnd",
    "Embedder",
    "EmbeddingError",
    "Enrolled",
    "EnrolmentFailure",
    "Explanation",
    "Forgotten",
    "GoneError",
    "Hit",
    "InvalidArgumentError",
    "LoopError",
    "LostGround",
    "NetworkError",
    "NewDecision",
    "NotFoundError",
    "NotInstalledError",
    "OpenAICompatibleEmbedder",
    "Page",
    "PermissionDeniedError",
    "PolicyStats",
    "Pruned",
    "RankedLedger",
    "RankedLedgerError",
    "RateLimitError",
    "Recall",
    "RequestTimeoutError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "SchemaVersionError",
    "ServiceUnavailableError",
    "Status",
    "Superseded",
    "Timeline",
    "Transition",
    "UnexpectedResponseError",
    "UsageMarked",
    "Weights",
    "WorkspaceStatus",
    "__version__",
]
