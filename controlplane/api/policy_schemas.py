"""Shapes of policies, blackouts, exclusions and decisions in the API's bodies."""

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any, Final

from django.utils import timezone
from ninja import Schema
from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from controlplane.api.schemas import ListOut, ReasonIn
from controlplane.models import Blackout, Decision, Policy
from controlplane.services.policies import blackout_until, summary
from controlplane.services.policies.blackouts import cron_told
from controlplane.services.watching.codes import CODES

Number = StrictInt | StrictFloat

POLICY_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Placements apply by themselves at night": {
        "auto_kinds": ["placement", "admission", "shedding"],
        "auto_from": "22:00",
        "auto_until": "05:00",
        "watch": "act",
        "reason": "nobody is there to approve",
    },
    "Four eyes": {"four_eyes": True, "approvers": "approver"},
}
BLACKOUT_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "The morning rush, on working days": {
        "cron": "30 6 * * 1-5",
        "minutes": 180,
        "reason": "the busiest hours",
    },
    "A range": {
        "starts_at": "2030-12-24T12:00:00Z",
        "ends_at": "2030-12-27T06:00:00Z",
        "reason": "holidays",
    },
}
EXCLUSION_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "A node in repair": {
        "kind": "node",
        "subject": "node 1",
        "reason": "its disk is being changed",
        "expires_at": "2030-12-24T12:00:00Z",
    },
}


class PolicyOut(Schema):
    """The policy of a cluster, its defaults where none was set; summary says it in words.

    auto_*: what applies by itself; tolerated_*: shares of drift; node_moves, cluster_moves,
    bytes_per_s, pause_ms: bounds of an execution; latency_ms, watch_*, dead_band, cooldown_s: the
    watch loops. Times of day are UTC, days 0 (Monday) to 6.
    """

    summary: str
    auto_kinds: list[str]
    auto_asked: bool
    auto_moves: int
    auto_bytes: int
    auto_gain: float
    auto_days: list[int]
    auto_from: time | None
    auto_until: time | None
    auto_record: bool
    auto_record_runs: int
    auto_record_error: float
    approvers: str
    four_eyes: bool
    starts: bool
    tolerated_rates: float
    tolerated_ended: float
    tolerated_new: float
    node_moves: int
    cluster_moves: int
    bytes_per_s: int
    pause_ms: int
    latency_ms: int
    watch: str
    watch_imbalance: float
    watch_replication: float
    dead_band: float
    cooldown_s: int
    changed_by: str
    changed_at: datetime | None

    @staticmethod
    def resolve_summary(row: Policy) -> str:
        """Return the policy in words."""
        return summary(row)


class PolicyIn(ReasonIn):
    """The settings to change; what is left out stays. auto_from and auto_until: null for none."""

    model_config = ConfigDict(extra="forbid")

    auto_kinds: list[str] | None = None
    auto_asked: StrictBool | None = None
    auto_moves: Number | None = None
    auto_bytes: Number | None = None
    auto_gain: Number | None = None
    auto_days: list[StrictInt] | None = None
    auto_from: time | None = None
    auto_until: time | None = None
    auto_record: StrictBool | None = None
    auto_record_runs: Number | None = None
    auto_record_error: Number | None = None
    approvers: str | None = None
    four_eyes: StrictBool | None = None
    starts: StrictBool | None = None
    tolerated_rates: Number | None = None
    tolerated_ended: Number | None = None
    tolerated_new: Number | None = None
    node_moves: Number | None = None
    cluster_moves: Number | None = None
    bytes_per_s: Number | None = None
    pause_ms: Number | None = None
    latency_ms: Number | None = None
    watch: str | None = None
    watch_imbalance: Number | None = None
    watch_replication: Number | None = None
    dead_band: Number | None = None
    cooldown_s: Number | None = None

    def changes(self) -> dict[str, Any]:
        """Return the settings that were sent."""
        return self.model_dump(exclude_unset=True, exclude={"reason"})


class BlackoutIn(ReasonIn):
    """A cron line (five fields, UTC) with the minutes after each of its moments, or a range."""

    model_config = ConfigDict(extra="forbid")

    cron: str = Field("", max_length=100)
    minutes: StrictInt = 0
    starts_at: datetime | None = None
    ends_at: datetime | None = None


class BlackoutOut(Schema):
    """A blackout; told is its cron line in words, until when it ends where it holds now."""

    id: int
    cron: str
    minutes: int
    starts_at: datetime | None
    ends_at: datetime | None
    reason: str
    owner: str
    created_at: datetime
    told: str
    until: datetime | None

    @staticmethod
    def resolve_told(row: Blackout) -> str:
        """Return the cron line in words."""
        return cron_told(row.cron) if row.cron else ""

    @staticmethod
    def resolve_until(row: Blackout) -> datetime | None:
        """Return when it ends, null where it does not hold now."""
        return blackout_until(row, timezone.now())


class ExclusionIn(ReasonIn):
    """What no plan may move until it expires: a query, node or stream by its name."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    subject: str = Field(max_length=100)
    expires_at: datetime


class ExclusionOut(Schema):
    """An exclusion that holds."""

    id: int
    kind: str
    subject: str
    reason: str
    owner: str
    created_at: datetime
    expires_at: datetime


class DecisionOut(Schema):
    """A decision of a watch loop; equal ones in a row are one, count says how many.

    about is what code means; number decided, limit is what it was
    compared with, both in unit: share, ratio, ms, s, nodes, moves or records/s.
    """

    id: int
    loop: str
    code: str
    about: str
    number: float | None
    limit: float | None
    unit: str
    text: str
    proposal: int | None
    first_at: datetime
    last_at: datetime
    count: int

    @staticmethod
    def resolve_about(row: Decision) -> str:
        """Return what the code means."""
        return CODES[row.code].about if row.code in CODES else ""

    @staticmethod
    def resolve_proposal(row: Decision) -> int | None:
        """Return the proposal's id."""
        return row.proposal_id


class DecisionPage(ListOut):
    """Some decisions, the one begun last first."""

    decisions: list[DecisionOut]
