"""Shapes of comparisons, effects of actions, and the ledger in the API's bodies."""

from datetime import datetime
from typing import Any, Final

from ninja import Schema
from pydantic import Field

from controlplane.api.common.derived import below, columns_of, fields_of
from controlplane.api.common.schemas import PageOut
from controlplane.models import Comparison, LedgerEntry
from controlplane.planning.action_text import ActionText
from controlplane.planning.effects import Effect
from controlplane.policies.planner_record import Calibration, Record
from controlplane.proposals.comparison_table import Candidate
from controlplane.proposals.effects import EffectRow


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


class ComparisonOut(Schema):
    """A comparison: the figures of the snapshot, and the candidates.

    cost: the cost of a plan: bytes, or moves where no state was measured.
    """

    id: int = below("comparison.pk")
    requested_by: str = below("comparison.requested_by")
    requested_at: datetime = below("comparison.requested_at")
    snapshot: str | None = below("comparison.snapshot_row_id")
    imbalance: float
    replication_factor: float | None
    cost: str
    computing: int
    candidates: list[Candidate]


class ComparisonRow(columns_of(Comparison, "id requested_by requested_at")):  # type: ignore[misc]
    """A comparison in a list; how many candidates it has, and how many are still computed."""

    total: int
    computing: int


class ComparisonPage(PageOut):
    """One page of comparisons."""

    comparisons: list[ComparisonRow]


class CancelledOut(Schema):
    """How many candidates were stopped."""

    cancelled: int


class EffectValues(fields_of(Effect, without="place worst")):  # type: ignore[misc]
    """The change of each measure if the action is left out; above 0 it is worse without it."""


class EffectOut(fields_of(EffectRow, ActionText, without="text effect")):  # type: ignore[misc]
    """An action at its place in the order, its effect, and the worst loaded node without it."""

    effect: EffectValues


class EffectPage(PageOut):
    """One page of the effects of a proposal's actions."""

    effects: list[EffectOut]


class WithoutIn(Schema):
    """The places of the actions that are to be left out, from 0."""

    places: list[int] = Field(max_length=100_000)


_FIGURES: Final = dict[str, float]


class LedgerOut(
    columns_of(  # type: ignore[misc]
        LedgerEntry,
        "proposal planner algorithm outcome applied skipped samples at",
        approved=_FIGURES,
        expected=_FIGURES,
        measured=_FIGURES,
    )
):
    """What one executed proposal promised when it was approved, and what was measured.

    expected: the same figures for the actions that were applied.
    """


class LedgerPage(PageOut):
    """One page of the ledger."""

    entries: list[LedgerOut]


class RecordOut(fields_of(Record)):  # type: ignore[misc]
    """How good a planner's predictions were: in the median a run was off by median_error."""

    planner: str


class CalibrationsOut(Schema):
    """The records of all planners, and the calibration of every figure."""

    records: list[RecordOut]
    figures: list[Calibration]
