"""Shapes of comparisons, effects of actions, and the ledger in the API's bodies."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ninja import Schema
from pydantic import Field

from controlplane.models import LedgerEntry
from controlplane.proposals.comparison_table import Compared

COMPARE_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Two planners side by side": {
        "asked": [
            {"planner": "placement", "algorithm": "mms"},
            {"planner": "placement", "algorithm": "refined", "parameters": {"nu": 0.2}},
        ],
    },
    "The curve of bytes against balance": {
        "asked": [{"planner": "placement", "algorithm": "mms"}],
        "budgets": [{"share": 0.1}, {"share": 0.25}, {"share": 0.5}, {}],
    },
    "At most ten moves and a megabyte": {
        "asked": [{"planner": "migration", "algorithm": "single_step"}],
        "budgets": [{"moves": 10, "bytes": 1_000_000}],
    },
}


class AskedIn(Schema):
    """One planner's algorithm with its parameters; empty is the planner's default."""

    planner: str = Field("", max_length=30)
    algorithm: str = Field("", max_length=30)
    parameters: dict[str, Any] = Field(default_factory=dict)


class ComparisonIn(Schema):
    """Who is asked; budgets: every planner is asked under each, {} is without a limit.

    A budget has some of bytes, moves, pause_ms (of all tasks together) and share (0 to 1, of the
    plan's own bytes).
    """

    asked: list[AskedIn] = Field(max_length=24)
    budgets: list[dict[str, float | None]] = Field(default_factory=list, max_length=24)


class CandidateOut(Schema):
    """One plan; its figures are null until it is ready.

    pareto: no other candidate beats it in cost, imbalance and replication factor together.
    proven: no better choice of moves within the budget exists; null without a budget.
    """

    proposal: int
    planner: str
    algorithm: str
    parameters: dict[str, Any]
    budget: dict[str, float]
    state: str
    progress: float
    error: str
    seal: str
    bytes: int | None
    actions: int | None
    moves: int | None
    steps: int | None
    seconds: float | None
    pause_ms: float | None
    imbalance: float | None
    replication_factor: float | None
    values: dict[str, float]
    bounds: dict[str, float]
    computed_s: float | None
    left_out: int | None
    proven: bool | None
    pareto: bool


class ComparisonOut(Schema):
    """A comparison: the figures of the snapshot, and the candidates.

    cost: the figure that stands for a plan's price: bytes, or moves where no state was measured.
    """

    id: int
    requested_by: str
    requested_at: datetime
    snapshot: str | None
    imbalance: float
    replication_factor: float | None
    cost: str
    computing: int
    candidates: list[CandidateOut]

    @classmethod
    def of(cls, table: Compared) -> dict[str, Any]:
        """Return a comparison as the body has it."""
        row = table.comparison
        return {
            "id": row.pk,
            "requested_by": row.requested_by,
            "requested_at": row.requested_at,
            "snapshot": row.snapshot_row_id,
            "imbalance": table.imbalance,
            "replication_factor": table.replication_factor,
            "cost": table.cost,
            "computing": table.computing,
            "candidates": table.candidates,
        }


class ComparisonRow(Schema):
    """A comparison in a list; how many candidates it has, and how many are still computed."""

    id: int
    requested_by: str
    requested_at: datetime
    total: int
    computing: int


class ComparisonPage(Schema):
    """One page of comparisons."""

    total: int
    page: int
    pages: int
    comparisons: list[ComparisonRow]


class CancelledOut(Schema):
    """How many candidates were stopped."""

    cancelled: int


class EffectValues(Schema):
    """The change of each measure if the action is left out; above 0 it is worse without it."""

    imbalance: float
    replication_factor: float
    bytes: int
    worst_share: float


class EffectOut(Schema):
    """An action at its place in the order, its effect, and the worst loaded node without it."""

    place: int
    kind: str
    title: str
    object: str
    before: str
    after: str
    query: int | None
    task: int | None
    bytes: int
    effect: EffectValues
    worst: str


class EffectPage(Schema):
    """One page of the effects of a proposal's actions."""

    total: int
    page: int
    pages: int
    effects: list[EffectOut]


class WithoutIn(Schema):
    """The places of the actions that are to be left out, from 0."""

    places: list[int] = Field(max_length=100_000)


class LedgerOut(Schema):
    """What one executed proposal promised when it was approved, and what was measured.

    expected: the same figures for the actions that were applied.
    """

    proposal: int
    planner: str
    algorithm: str
    outcome: str
    approved: dict[str, float]
    expected: dict[str, float]
    measured: dict[str, float]
    applied: int
    skipped: int
    samples: int
    at: datetime

    @staticmethod
    def resolve_proposal(row: LedgerEntry) -> int:
        """Return the id of the proposal."""
        return row.proposal_id


class LedgerPage(Schema):
    """One page of the ledger."""

    total: int
    page: int
    pages: int
    entries: list[LedgerOut]


class CalibrationOut(Schema):
    """How predictions of a figure came out: ratio is the median of measured/predicted."""

    planner: str
    algorithm: str
    figure: str
    runs: int
    ratio: float | None
    error: float


class RecordOut(Schema):
    """How good a planner's predictions were: in the median a run was off by median_error."""

    planner: str
    runs: int
    median_error: float | None


class CalibrationsOut(Schema):
    """The records of all planners, and the calibration of every figure."""

    records: list[RecordOut]
    figures: list[CalibrationOut]
