"""Limits of steps: additive increase, multiplicative decrease (AIMD) of the actions per step.

As in congestion control, the rule adapts to the unknown capacity of a cluster.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.models import Execution, Step
from controlplane.numbers import milliseconds
from controlplane.planning import execution_plan
from controlplane.planning.execution_plan import StepLimits
from controlplane.policies.settings import PolicySettings

# The time until the latency has recovered from a step.
RECOVERY_S = 5.0


@dataclass(frozen=True)
class Allowance:
    """The cap of the next step and its reason, the wait before it and its reason."""

    cap: int
    reason: str
    not_before: datetime | None = None
    waits: str = ""


def first_cap(policy: PolicySettings) -> Allowance:
    """Return the cap of the first step: a quarter of the policy's limit."""
    cap = execution_plan.first_cap(policy.cluster_moves)
    return Allowance(cap, f"begins with a quarter of the {policy.cluster_moves} allowed")


def next_cap(
    execution: Execution, step: Step, policy: PolicySettings, sent: int, now: datetime
) -> Allowance:
    """Return the cap after a step; `sent`: bytes of state that all steps have moved."""
    trouble = _trouble(step, policy)
    if trouble:
        cap = max(1, min(execution.cap, policy.cluster_moves) // 2)
        later = now + timedelta(seconds=RECOVERY_S)
        return Allowance(cap, f"halved to {cap}: {trouble}", later, trouble)
    cap = min(policy.cluster_moves, execution.cap + 1)
    reason = f"one more: {_healthy(step, policy)}" if cap > execution.cap else "as much as allowed"
    earliest = execution.started_at + timedelta(seconds=sent / policy.bytes_per_s)
    if earliest > now:
        return Allowance(cap, reason, earliest, f"{policy.bytes_per_s:,} bytes/s are allowed")
    return Allowance(cap, reason)


def _trouble(step: Step, policy: PolicySettings) -> str:
    if step.p95_ms is not None and step.p95_ms > policy.latency_ms:
        return f"p95 latency {milliseconds(step.p95_ms)} is above {milliseconds(policy.latency_ms)}"
    if step.pause_ms is not None and step.pause_ms > policy.pause_ms:
        allowed = milliseconds(policy.pause_ms)
        return f"a task paused {milliseconds(step.pause_ms)}, {allowed} are allowed"
    return ""


def _healthy(step: Step, policy: PolicySettings) -> str:
    if step.p95_ms is None:
        return "the step went through"
    return f"p95 latency {milliseconds(step.p95_ms)} of {milliseconds(policy.latency_ms)}"


def range_s(actions: int, cap: int, step_s: float) -> tuple[float, float]:
    """Return the seconds of so many actions if no step is throttled, and if every step is.

    `cap`: of the next step; `step_s`: the duration of a step without the wait after a throttled
    one.
    """
    least = most = 0
    left, growing = actions, max(1, cap)
    while left > 0:
        left, growing, least = left - growing, growing + 1, least + 1
    left, halved = actions, max(1, cap)
    while left > 0 and halved > 1:
        left, halved, most = left - halved, halved // 2, most + 1
    return least * step_s, (most + max(0, left)) * (step_s + RECOVERY_S)


def step_limits(cap: int, policy: PolicySettings) -> StepLimits:
    """Return the bounds of the next step."""
    return StepLimits(policy.node_moves, min(cap, policy.cluster_moves), float(policy.bytes_per_s))


def columns(allowance: Allowance) -> dict[str, Any]:
    """Return the columns of an execution."""
    return {
        "cap": allowance.cap,
        "cap_reason": allowance.reason[:200],
        "not_before": allowance.not_before,
        "waits": allowance.waits[:200],
    }
