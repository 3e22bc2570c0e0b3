"""What the gateway's process and the command that starts it agree on."""

from __future__ import annotations

from dataclasses import dataclass, field

LOOPBACK = "127.0.0.1"
HEALTH_PATH = "/health"


@dataclass(frozen=True)
class GatewayConfig:
    """`bearers` maps every accepted key to the JWT of its role; a legacy key is its own JWT.

    `identity` is new at every start: who answers it on the port is the process that was started.
    """

    identity: str
    port: int
    upstream_socket: str
    bearers: dict[str, str] = field(repr=False)
