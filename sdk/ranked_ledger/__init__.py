"""Ranked Ledger: agent memory that knows where a decision was made, how much it matters, why, what rests on
it, and whether it still holds.

Example:
    >>> from ranked_ledger import RankedLedger
    >>> ledger = RankedLedger.from_env(workspace="acme", project="billing")         # doctest: +SKIP

`LongTermMemory` is the second store: what an agent may carry into the next run.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranked_ledger.async_client import AsyncRankedLedger
    from ranked_ledger.async_memory import AsyncLongTermMemory
    from ranked_ledger.async_stewardship import AsyncMemorySteward
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
        ErasedTextError,
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
    from ranked_ledger.memories import (
        Adopted,
        Attribution,
        Erasure,
        Expired,
        ForgottenMemory,
        MappedWorkspace,
        Member,
        Memory,
        MemoryHit,
        MemoryRead,
        MemoryRecall,
        MemoryUsage,
        Organization,
        Remembered,
        ReviewPage,
        Skipped,
        SubjectAccess,
    )
    from ranked_ledger.memory import LongTermMemory
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
        FittedRange,
        Forgotten,
        Impact,
        LostGround,
        NewDecision,
        Page,
        SimilarityRange,
        Status,
        Superseded,
        Transition,
        Weights,
        WorkspaceSettings,
        WorkspaceStatus,
    )
    from ranked_ledger.recalls import Hit, Recall
    from ranked_ledger.stewardship import MemorySteward
    from ranked_ledger.timeline import (
        AsyncPendingReviews,
        AsyncTimeline,
        AsyncTraces,
        PendingReviews,
        Timeline,
        Traces,
    )
    from ranked_ledger.traces import (
        PolicyStats,
        Pruned,
        RecallTrace,
        TracedItem,
        TracePage,
        UsageMarked,
    )

    __version__: str
else:
    _HOMES = (
        "client", "async_client", "async_memory", "async_stewardship", "embeddings", "errors", "explanation",
        "function.answers", "function.async_client", "function.client", "memories", "memory", "models",
        "recalls", "stewardship", "timeline", "traces",
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
    "Adopted",
    "AsyncEmbedder",
    "AsyncLongTermMemory",
    "AsyncMemoryFunction",
    "AsyncMemorySteward",
    "AsyncOpenAICompatibleEmbedder",
    "AsyncPendingReviews",
    "AsyncRankedLedger",
    "AsyncTimeline",
    "AsyncTraces",
    "Attribution",
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
    "ErasedTextError",
    "Erasure",
    "Expired",
    "Explanation",
    "FittedRange",
    "Forgotten",
    "ForgottenMemory",
    "FunctionMemory",
    "FunctionRecall",
    "GoneError",
    "Hit",
    "Impact",
    "InvalidArgumentError",
    "LongTermMemory",
    "LoopError",
    "LostGround",
    "MappedWorkspace",
    "Member",
    "Memory",
    "MemoryFunction",
    "MemoryHit",
    "MemoryRead",
    "MemoryRecall",
    "MemorySteward",
    "MemoryUsage",
    "NetworkError",
    "NewDecision",
    "NotFoundError",
    "NotInstalledError",
    "NotLinked",
    "NotPatchedError",
    "OpenAICompatibleEmbedder",
    "Organization",
    "Origin",
    "Page",
    "PendingReviews",
    "PermissionDeniedError",
    "PolicyStats",
    "Pruned",
    "RankedLedger",
    "RankedLedgerError",
    "RateLimitError",
    "Recall",
    "RecallTrace",
    "Recorded",
    "Remembered",
    "RequestTimeoutError",
    "ReviewPage",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "SchemaVersionError",
    "ServiceUnavailableError",
    "SimilarityRange",
    "Skipped",
    "Status",
    "SubjectAccess",
    "Superseded",
    "Timeline",
    "TracePage",
    "TracedItem",
    "Traces",
    "Transition",
    "UnexpectedResponseError",
    "UsageMarked",
    "VectorRecall",
    "Weights",
    "WorkspaceSettings",
    "WorkspaceStatus",
    "__version__",
]
