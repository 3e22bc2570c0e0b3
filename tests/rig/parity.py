"""Ports of a host, and which differences between two installed catalogues have been reviewed."""

from __future__ import annotations

import itertools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.rig.hosts import Port

ALLOWLIST = Path(__file__).parents[1] / "migrations" / "parity_allowlist.toml"
AXES = ("dimension", "vector_schema", "default_privileges", "postgres")

# What the others are compared with.
USUAL = Port()

ALL = [
    Port(dimension, vector_schema, default_privileges, postgres)
    for dimension, vector_schema, default_privileges, postgres in itertools.product(
        (384, 768, 1024, 1536, 3072), ("extensions", "public"), ("none", "old"), (18, 16)
    )
]

# Every value of every axis, in few ports: for the tests that push through the real CLI.
CHOSEN = [
    Port(384, "public", "old", 18),
    Port(768, "extensions", "none", 16),
    Port(1024, "public", "none", 18),
    Port(1536, "extensions", "old", 18),
    Port(1536, "public", "old", 16),
    Port(3072, "extensions", "none", 18),
]


@dataclass(frozen=True)
class Allowed:
    """One entry of the allowlist."""

    axis: str
    pattern: str
    reason: str

    def explains(self, line: str, port: Port) -> bool:
        """Whether the line may differ, given how the port differs from the usual one."""
        differs = getattr(port, self.axis) != getattr(USUAL, self.axis)
        return differs and re.fullmatch(self.pattern, line) is not None


def allowlist() -> list[Allowed]:
    entries = tomllib.loads(ALLOWLIST.read_text(encoding="utf-8"))["difference"]
    return [Allowed(**entry) for entry in entries]
