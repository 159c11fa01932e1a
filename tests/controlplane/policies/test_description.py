"""The summary says what the policy says."""

from datetime import time

import pytest

from controlplane.policies.description import days_text, summary
from controlplane.policies.settings import PolicySettings


def test_the_default_policy() -> None:
    assert summary(PolicySettings()) == (
        "New queries are placed at once. Redirections of streams and shedding plans apply"
        " automatically when people request them. Moves of queries, moves of tasks and changes"
        " of key groupings wait for an"
        " approver. The monitors recommend plans; people decide."
    )


def test_a_policy_that_acts() -> None:
    policy = PolicySettings(
        auto_kinds=["migration"], auto_days=[0, 1, 2, 3, 4], auto_from=time(20),
        auto_until=time(6), auto_asked=False, four_eyes=True, approvers="admin", watch="act",
        auto_record=True,
    )  # fmt: skip
    assert summary(policy) == (
        "New queries are placed at once. Moves of tasks apply automatically on Monday to Friday"
        " from 20:00 to 06:00 UTC, unless a person requested them. Plans that move state need at"
        " most 50 moves and 10.0 MB, and a gain of at least 5 %, and 5 executed plans of their"
        " planner with a median error of at most 25 %. Moves of queries and changes of key"
        " groupings wait for an admin other than the requester. The monitors apply the plans"
        " that this allows, and recommend the others."
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
