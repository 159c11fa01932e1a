"""Shapes of proposals in the API's bodies."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from controlplane.models import Proposal


class ProposalIn(Schema):
    """Which algorithm of the placement planner, and its parameters."""

    algorithm: str = "mms"
    parameters: dict[str, Any] = Field(default_factory=dict)


class ApplyIn(Schema):
    """The seal names exactly the moves that are approved."""

    seal: str


class ProposalOut(Schema):
    """A proposal without its snapshot; lower_bound is a bound of the replication factor."""

    id: int
    state: str
    progress: float
    algorithm: str
    parameters: dict[str, Any]
    requested_by: str
    requested_at: datetime
    decided_by: str
    decided_at: datetime | None
    snapshot_version: int
    before: dict[str, Any]
    after: dict[str, Any]
    lower_bound: float | None
    move_count: int
    moves: list[dict[str, Any]]
    seal: str
    error: str

    @staticmethod
    def resolve_move_count(row: Proposal) -> int:
        """Return how many queries the proposal moves."""
        return len(row.moves)


class ProposalPage(Schema):
    """One page of proposals."""

    total: int
    page: int
    pages: int
    proposals: list[ProposalOut]
