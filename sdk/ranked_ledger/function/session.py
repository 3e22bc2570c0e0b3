"""What both clients of a function know and neither waits for: where it is, options, and when to try again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import httpx

from ranked_ledger import arguments, retry, settings
from ranked_ledger import wire as core
from ranked_ledger.connected import Basics, Http, InWorkspace
from ranked_ledger.errors import NotFoundError, RankedLedgerError, ServiceUnavailableError
from ranked_ledger.function.errands import Errand, Sender
from ranked_ledger.models import UNSET, Unset
from ranked_ledger.session import DEFAULT_RETRIES
from ranked_ledger.settings import Connection

DEFAULT_TIMEOUT: Final = 30.0  # a function may have to start, and waits for its own embedding service


@dataclass(frozen=True, kw_only=True)
class Options(Basics):
    """What `with_options` can change."""

    extra_body: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        Basics.__post_init__(self)
        if self.extra_body is not None:
            arguments.mapping("extra_body", self.extra_body)


class FunctionSession(InWorkspace[Http]):
    """The part of a function's client that is the same for both."""

    _options: Options

    def __init__(
        self,
        url: str,
        access_key: str,
        *,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        extra_body: Mapping[str, Any] | None = None,
        http_client: Http | None = None,
    ) -> None:
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            extra_body=extra_body,
        )
        self._begin(settings.function(url, access_key), options, http_client)

    def _begin(self, connection: Connection, options: Options, http: Http | None) -> Self:
        self._connect(connection, http)
        self._options = options
        return self

    @classmethod
    def from_env(
        cls,
        *,
        workspace: str,
        project: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_RETRIES,
        extra_body: Mapping[str, Any] | None = None,
        http_client: Http | None = None,
    ) -> Self:
        """A client of the function that the environment names: AGENT_MEMORY_URL, with MCP_ACCESS_KEY.

        Raises `ConfigurationError`, naming the variables, where one is missing.

        Example:
            >>> memory = MemoryFunction.from_env(workspace="acme", project="billing")   # doctest: +SKIP
        """
        options = Options(
            workspace=workspace,
            project=project,
            timeout=timeout,
            max_retries=max_retries,
            extra_body=extra_body,
        )
        return cls.__new__(cls)._begin(settings.function_environment(), options, http_client)

    def with_options(
        self,
        *,
        workspace: str | Unset = UNSET,
        project: str | Unset | None = UNSET,
        timeout: float | Unset = UNSET,
        max_retries: int | Unset = UNSET,
        extra_body: Mapping[str, Any] | Unset | None = UNSET,
    ) -> Self:
        """A copy with other options over the same connections; closing the copy leaves them open.

        Example:
            >>> memory.with_options(workspace="other").recall("...")           # doctest: +SKIP
        """
        asked = {
            "workspace": workspace,
            "project": project,
            "timeout": timeout,
            "max_retries": max_retries,
            "extra_body": extra_body,
        }
        changes: dict[str, Any] = {
            name: value for name, value in asked.items() if not isinstance(value, Unset)
        }
        made = type(self).__new__(type(self))
        return made._begin(self._connection, replace(self._options, **changes), self._http)

    def _sender(
        self, task: str | None, project: str | Unset | None, flow: str | None, runtime_name: str | None
    ) -> Sender:
        extra = self._options.extra_body or {}
        return Sender(self.workspace, self._project(project), task, flow, runtime_name, extra)

    def _request(self, errand: Errand[Any]) -> httpx.Request:
        content = core.encode(errand) if errand.body else None
        return self._built(errand.method, errand.path, content, seconds=errand.seconds)

    def _wait_for(
        self,
        problem: RankedLedgerError | httpx.HTTPError | httpx.InvalidURL,
        attempt: int,
        errand: Errand[Any],
    ) -> float:
        """As `_wait`; what is late is waited for, and whoever says when to come back has done nothing yet."""
        if errand.late and isinstance(problem, NotFoundError):
            wait = retry.until_written(attempt=attempt, max_retries=self._options.max_retries)
            if wait is not None:
                return wait
        invited = isinstance(problem, ServiceUnavailableError) and problem.retry_after is not None
        return self._wait(problem, attempt, errand.repeatable or invited)
