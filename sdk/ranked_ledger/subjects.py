"""Whom a memory is about, and what people do with it: the words that both stores and their clients share."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

SubjectType = Literal["workspace", "candidate", "user"]
Subject = tuple[SubjectType, UUID | str | None]
"""A type and an id, such as `("candidate", id)`; only a workspace needs no id."""

Author = Literal["model", "person"]
ReviewOutcome = Literal["approved", "evidence_only", "rejected"]
MemberRole = Literal["member", "admin", "owner"]
OnReturn = Literal["refuse", "flag"]
