"""Caps of steps: one more after a healthy step, halved after one that hurts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.models import Execution, Step
from controlplane.planning.execution_plan import StepLimits
from controlplane.policies.settings import PolicySettings, settings_of
from controlplane.proposals.executions.step_limits import (
    Allowance,
    columns,
    first_cap,
    next_cap,
    range_s,
    step_limits,
)

RECOVERY_S = 5.0
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
POLICY = settings_of(
    {"cluster_moves": 40, "bytes_per_s": 1000, "latency_ms": 5000, "pause_ms": 2000}
)


def after(
    cap: int, policy: PolicySettings = POLICY, sent: int = 0, age_s: float = 0, **step: Any
) -> Allowance:
    execution = Execution(cap=cap, started_at=NOW - timedelta(seconds=age_s))
    return next_cap(execution, Step(number=1, **step), policy, sent, NOW)


@pytest.mark.parametrize(("cap", "expected"), [(1, 2), (38, 39), (39, 40), (40, 40), (50, 40)])
def test_a_healthy_step_allows_one_more_up_to_the_limit(cap: int, expected: int) -> None:
    allowance = after(cap)
    assert (allowance.cap, allowance.not_before, allowance.waits) == (expected, None, "")
    assert ("one more" in allowance.reason) == (expected > cap)
    if expected > cap:
        assert "the step went through" in allowance.reason
        assert "p95 latency 12 ms of 5.0 s" in after(cap, p95_ms=12.0).reason


@pytest.mark.parametrize(("cap", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (40, 20), (90, 20)])
@pytest.mark.parametrize("hurt", [{"p95_ms": 5000.5}, {"pause_ms": 2000.5}])
def test_a_step_that_hurts_halves_the_cap(cap: int, expected: int, hurt: dict[str, Any]) -> None:
    allowance = after(cap, **hurt)
    assert allowance.cap == expected
    assert allowance.not_before == NOW + timedelta(seconds=RECOVERY_S)
    assert allowance.waits
    assert allowance.waits in allowance.reason


@pytest.mark.parametrize("well", [{"p95_ms": 5000.0, "pause_ms": 2000.0}, {"p95_ms": 0.0}, {}])
def test_a_step_as_slow_as_allowed_is_healthy(well: dict[str, Any]) -> None:
    assert after(4, **well).cap == 5


@pytest.mark.parametrize(
    ("sent", "age_s", "wait_s"),
    [(10_000, 4.0, 6.0), (10_000, 10.0, None), (10_000, 11.0, None), (10_001, 10.0, 0.001)],
)
def test_more_bytes_than_allowed_delay_the_next_step(
    sent: int, age_s: float, wait_s: float | None
) -> None:
    allowance = after(4, sent=sent, age_s=age_s)
    expected = None if wait_s is None else NOW + timedelta(seconds=wait_s)
    assert (allowance.cap, allowance.not_before) == (5, expected)
    assert bool(allowance.waits) == (wait_s is not None)


def test_the_first_step_has_a_quarter() -> None:
    assert [first_cap(settings_of({"cluster_moves": n})).cap for n in (1, 4, 40)] == [1, 1, 10]


@pytest.mark.parametrize(
    ("actions", "cap", "least", "most"),
    [(0, 4, 0, 0), (1, 4, 1, 1), (4, 4, 1, 1), (10, 4, 3, 6), (3, 1, 2, 3), (3, 0, 2, 3)],
)
def test_the_time_of_actions_has_a_range(actions: int, cap: int, least: int, most: int) -> None:
    """Steps of 4, 5 and 1 at best; of 4, 2, 1, 1, … with a wait after each at worst."""
    assert range_s(actions, cap, 2.0) == (least * 2.0, most * (2.0 + RECOVERY_S))


def test_limits_of_a_step_are_those_of_the_policy_below_its_cap() -> None:
    policy = settings_of({"node_moves": 3, "cluster_moves": 7, "bytes_per_s": 1000})
    limits = [step_limits(cap, policy) for cap in (5, 7, 9)]
    assert limits == [StepLimits(3, cap, 1000.0) for cap in (5, 7, 7)]


def test_texts_fit_their_columns() -> None:
    row = columns(Allowance(3, "r" * 300, NOW, "w" * 300))
    assert row == {"cap": 3, "cap_reason": "r" * 200, "not_before": NOW, "waits": "w" * 200}
