"""Checks of waiting proposals by the policy, each with its number and limit."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from django.utils import timezone

from controlplane.models import Proposal
from controlplane.planning.measures import Unit
from controlplane.policies.blackouts import in_blackout
from controlplane.policies.settings import PolicySettings
from controlplane.proposals.drift import tolerances
from controlplane.proposals.outcome import Outcome
from controlplane.proposals.review import Review


class CheckCode(StrEnum):
    """What is checked."""

    LIMIT = "limit"
    ORDER = "order"
    RATES = "rates"
    ENDED = "ended"
    NEW = "new"
    GAIN = "gain"
    PAUSE = "pause"
    FOUR_EYES = "four_eyes"
    BLACKOUT = "blackout"


class CheckUnit(StrEnum):
    """The units of numbers that no measure has."""

    MILLISECONDS = "ms"


@dataclass(frozen=True)
class Check:
    """A check: whether it passes, its number and limit in `unit`; `detail`: for people.

    Of a limit of the policy, the number is that after the plan.
    """

    code: CheckCode
    passed: bool
    number: float | None = None
    limit: float | None = None
    unit: Unit | CheckUnit = Unit.SHARE
    detail: str = ""


def checks_of(proposal: Proposal, outcome: Outcome, policy: PolicySettings) -> list[Check]:
    """Return the checks of a proposal with a plan that waits for its approval or its start."""
    return [
        *_of_plan(outcome, policy),
        *_of_drift(Review.stored(proposal.review), policy),
        *_of_approval(proposal),
    ]


def _of_plan(outcome: Outcome, policy: PolicySettings) -> Iterator[Check]:
    for row in outcome.measures:
        if row.limit is not None and row.expected is not None:
            passed = row.expected <= row.limit
            yield Check(
                CheckCode.LIMIT, passed, row.expected, row.limit, row.measure.unit,
                row.measure.title,
            )  # fmt: skip
    yield Check(CheckCode.ORDER, outcome.is_safe, outcome.peak)
    yield Check(
        CheckCode.PAUSE, outcome.pause_ms <= policy.pause_ms, outcome.pause_ms, policy.pause_ms,
        CheckUnit.MILLISECONDS,
    )  # fmt: skip


def _of_drift(review: Review | None, policy: PolicySettings) -> Iterator[Check]:
    if review is None or not review.drift:
        return
    for name, number, limit in tolerances(review.drift, policy):
        yield Check(CheckCode(name), number <= limit, number, limit)


def _of_approval(proposal: Proposal) -> Iterator[Check]:
    if proposal.four_eyes:
        is_other = proposal.approved_by != proposal.requested_by
        yield Check(CheckCode.FOUR_EYES, is_other, detail=proposal.requested_by)
    blackout = in_blackout(proposal.cluster, timezone.now())
    reason = blackout.reason if blackout is not None else ""
    yield Check(CheckCode.BLACKOUT, blackout is None, detail=reason)
