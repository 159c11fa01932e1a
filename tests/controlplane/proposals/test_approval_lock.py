"""What an approver reads must be what happens, but for a few ended queries."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.errors import Conflict
from controlplane.policies.settings import PolicySettings, settings_of
from controlplane.proposals.approval_lock import approval_lock, require_unlocked
from controlplane.proposals.review import Review


def approve(applicable: int, named: int | None, **drift: Any) -> None:
    row = Review(
        7, "2026-11-17T10:46:00+00:00", 0.1, applicable, {}, {}, {}, None, 0, drift
    ).to_json()
    require_unlocked(row, PolicySettings(), 200, named)


@pytest.mark.parametrize(("applicable", "named"), [(95, 100), (105, 100), (19, 19), (3, None)])
def test_about_as_many_actions_as_named_are_approved(applicable: int, named: int | None) -> None:
    approve(applicable, named)


@pytest.mark.parametrize(("applicable", "named"), [(94, 100), (106, 100), (18, 19), (1, 0)])
def test_another_number_of_actions_is_read_again(applicable: int, named: int) -> None:
    with pytest.raises(Conflict) as refused:
        approve(applicable, named)
    assert refused.value.code == "effect_changed"
    assert refused.value.data == {"applicable": applicable, "named": named}


@pytest.mark.parametrize(
    ("seconds", "lost", "text"),
    [
        (0, 0.8, "20 % of the gain remains, at least 70 % is required"),
        (29, 0.1, "90 % of the gain remains again, but at least 70 % is required for 30 s"),
        (30, 0.1, ""),
    ],
)
def test_a_gain_that_was_lost_must_remain_for_the_hold_time_of_alerts(
    seconds: int, lost: float, text: str
) -> None:
    """Otherwise an approval would be allowed and locked from look to look near the limit."""
    policy = settings_of({"tolerated_gain_loss": 0.3, "alert_hold_s": 30})
    at = datetime(2026, 11, 17, 10, 46, tzinfo=UTC)
    lost_at, at = at.isoformat(), at + timedelta(seconds=seconds)
    review = Review(7, at.isoformat(), 0.1, 9, {}, {}, {}, lost, 0, {}, lost_at)
    lock = approval_lock(review, policy, 9)
    assert (str(lock) if lock is not None else "") == text


def test_a_plan_that_exceeds_a_limit_as_loads_are_now_is_not_approved() -> None:
    with pytest.raises(Conflict) as refused:
        approve(100, 100, raised=["imbalance"])
    assert refused.value.code == "exceeds"
    assert refused.value.data["raised"] == ["imbalance"]
