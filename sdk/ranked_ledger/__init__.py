"""Ranked Ledger: agent memory that knows where a decision was made, how much it matters, why, what rests on
it, and whether it still holds.

Example:
    >>> from ranked_ledger import RankedLedger
    >>> ledger = RankedLedger.from_env(workspace="acme", project="billing")         # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        NotPatchedError,
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
    from ranked_ledger.explanation import Component, Explanation, Origin
    from ranked_ledger.function.answers import (
        FunctionMemory,
        FunctionRecall,
        NotLinked,
        Recorded,
        VectorRecall,
    )
    from ranked_ledger.function.async_client import AsyncMemoryFunction
    from ranked_ledger.function.client import MemoryFunction
    from ranked_ledger.models import (
        UNSET,
        ChainLink,
        Check,
        CopiesChecked,
        Decision,
        DecisionDetail,
        Dependent,
        Edge,
        EdgeEnd,
        Enrolled,
        EnrolmentFailure,
        Forgotten,
        Impact,
        LostGround,
        NewDecision,
        Page,
        PolicyStats,
        Pruned,
        SimilarityRange,
        Status,
        Superseded,
        Transition,
        UsageMarked,
        Weights,
        WorkspaceSettings,
        WorkspaceStatus,
    )
    from ranked_ledger.recalls import Hit, Recall
    from ranked_ledger.timeline import AsyncTimeline, Timeline

    __version__: str
else:
    _HOMES = (
        "client", "async_client", "embeddings", "errors", "explanation", "function.answers",
        "function.async_client", "function.client", "models", "recalls", "timeline",
    )  # fmt: skip

    def __getattr__(name):
        # loaded at the first use of one: until then a program can be interrupted without a traceback of ours
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module, metadata  # noqa: PLC0415

        found = {"__version__": metadata.version("ranked-ledger")}
        for home in _HOMES:
            found |= vars(import_module(f"{__name__}.{home}"))
        globals().update({public: found[public] for public in __all__})
        return found[name]

    def __dir__():
        return sorted({*globals(), *__all__})


__all__ = [
    "UNSET",
    "APIError",
    "AsyncEmbedder",
    "AsyncMemoryFunction",
    "AsyncOpenAICompatibleEmbedder",
    "AsyncRankedLedger",
    "AsyncTimeline",
    "AuthenticationError",
    "ChainLink",
    "Check",
    "Component",
    "ConfigurationError",
    "ConflictError",
    "CopiesChecked",
    "Decision",
    "DecisionDetail",
    "Dependent",
    "DimensionError",
    "Edge",
    "EdgeEnd",
    "Embedder",
    "EmbeddingError",
    "Enrolled",
    "EnrolmentFailure",
    "Explanation",
    "Forgotten",
    "FunctionMemory",
    "FunctionRecall",
    "GoneError",
    "Hit",
    "Impact",
    "InvalidArgumentError",
    "LoopError",
    "LostGround",
    "MemoryFunction",
    "NetworkError",
    "NewDecision",
    "NotFoundError",
    "NotInstalledError",
    "NotLinked",
    "NotPatchedError",
    "OpenAICompatibleEmbedder",
    "Origin",
    "Page",
    "PermissionDeniedError",
    "PolicyStats",
    "Pruned",
    "RankedLedger",
    "RankedLedgerError",
    "RateLimitError",
    "Recall",
    "Recorded",
    "RequestTimeoutError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "SchemaVersionError",
    "ServiceUnavailableError",
    "SimilarityRange",
    "Status",
    "Superseded",
    "Timeline",
    "Transition",
    "UnexpectedResponseError",
    "UsageMarked",
    "VectorRecall",
    "Weights",
    "WorkspaceSettings",
    "WorkspaceStatus",
    "__version__",
]
