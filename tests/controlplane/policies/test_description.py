"""The summary says what the policy says."""

from datetime import time

import pytest

from controlplane.policies.description import days_text, size_text, summary
from controlplane.policies.settings import PolicySettings


def test_the_default_policy() -> None:
    assert summary(PolicySettings()) == (
        "New queries are placed at once. Moves of queries and moves of tasks wait for an approver."
        " The watch loops recommend, and leave it to people."
    )


def test_a_policy_that_acts() -> None:
    policy = PolicySettings(
        auto_kinds=["migration"], auto_days=[0, 1, 2, 3, 4], auto_from=time(20),
        auto_until=time(6), auto_asked=False, four_eyes=True, approvers="admin", watch="act",
        auto_record=True,
    )  # fmt: skip
    assert summary(policy) == (
        "New queries are placed at once. Moves of tasks apply by themselves on Monday to Friday"
        " from 20:00 to 06:00 UTC, if no person asked for them. What moves state does so with at"
        " most 50 moves and 10 MB, for a gain of 5% at least, once 5 plans of its planner were"
        " carried out and were off by 25% at most. Moves of queries wait for an admin, not the"
        " one who asked. The watch loops act where this allows it, and recommend the rest."
    )


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ([5, 6], "Saturday and Sunday"),
        ([0], "Monday"),
        ([0, 2, 3, 4], "Monday and Wednesday to Friday"),
        ([0, 2, 4], "Monday, Wednesday and Friday"),
    ],
)
def test_days(days: list[int], told: str) -> None:
    assert days_text(days) == told


def test_sizes() -> None:
    assert [size_text(n) for n in (12, 1500, 10_000_000)] == ["12 bytes", "1.5 kB", "10 MB"]
