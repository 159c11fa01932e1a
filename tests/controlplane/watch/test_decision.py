"""What a loop decides about its figure, whatever stands in the way."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.policies.settings import PolicySettings, settings_of
from controlplane.watch.codes import CODES
from controlplane.watch.decision import LoopDecision, Situation, decide
from controlplane.watch.reading import LoopReading

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
CALM = Situation(runs=True, age_s=1.0, trigger_ms=1000)
TROUBLE = LoopReading(0.31, 0.2, "Imbalance 31 %", trouble=True)
LIMIT = 0.2


def decided(
    reading: LoopReading = TROUBLE, last: str = "", watch: str = "act", **situation: Any
) -> LoopDecision:
    policy = settings_of({"watch": watch})
    return decide(reading, replace(CALM, **situation), policy, last, NOW)


def test_trouble_that_nothing_hinders_asks_a_planner() -> None:
    outcome = decided()
    assert (outcome.code, outcome.number, outcome.limit) == ("asked", 0.31, 0.2)


@pytest.mark.parametrize(
    ("situation", "code", "number", "limit"),
    [
        ({"runs": False}, "not_running", None, None),
        ({"age_s": None}, "no_data", None, None),
        ({"age_s": 31.0}, "data_too_old", None, None),
        ({"age_s": 31.0, "trigger_ms": 10_000}, "asked", 0.31, 0.2),
        ({"running": 7}, "execution_running", 0.31, 0.2),
        ({"blackout_until": NOW + timedelta(hours=1), "blackout": "rush"}, "blackout", 0.31, 0.2),
        ({"waiting": 8, "waiting_since": NOW - timedelta(hours=1)}, "proposal_waiting", 0.31, 0.2),
        ({"quiet_since": NOW - timedelta(minutes=5)}, "cooldown", 0.31, 0.2),
        ({"quiet_since": NOW - timedelta(minutes=10)}, "asked", 0.31, 0.2),
    ],
)
def test_the_number_that_decided_is_told(
    situation: dict[str, Any], code: str, number: float | None, limit: float | None
) -> None:
    outcome = decided(**situation)
    assert (outcome.code, outcome.number, outcome.limit) == (code, number, limit)
    assert outcome.code in CODES
    assert outcome.unit == "share", "of the measure, never of its age"
    assert outcome.text


def test_whatever_hinders_is_told_with_the_figure() -> None:
    told = decided(quiet_since=NOW - timedelta(minutes=5)).text
    assert told == "Imbalance 31 %; the last plan was 5 min ago, the cool-down is 10 min"
    told = decided(blackout_until=NOW + timedelta(minutes=90), blackout="rush").text
    assert told == "Imbalance 31 %; blackout for another 1.5 h: rush"


def test_nobody_watches_where_the_policy_says_so() -> None:
    assert decided(watch="off").code == "off"


def test_what_is_unknown_is_no_trouble() -> None:
    assert decided(LoopReading(None, 0.2, "nothing told")).code == "no_data"


def test_what_blocks_every_plan_comes_before_what_delays_it() -> None:
    assert decided(replace(TROUBLE, blocked="excluded"), running=7).code == "excluded"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("", "balanced"),
        ("balanced", "balanced"),
        ("data_too_old", "balanced"),
        ("cooldown", "dead_band"),
        ("dead_band", "dead_band"),
        ("no_gain", "dead_band"),
    ],
)
def test_it_has_mended_once_it_is_below_by_the_dead_band(last: str, code: str) -> None:
    near = LoopReading(0.19, 0.2, "Imbalance 19 %", near=True, calm="balanced")
    assert decided(near, last).code == code
    assert decided(replace(near, near=False), last).code == "balanced"


def course(figures: Sequence[float], policy: PolicySettings) -> list[tuple[datetime, str]]:
    """Return the codes of passes 10 s apart; a plan that is asked for is turned down at once."""
    situation, last, told = CALM, "", []
    for at, figure in enumerate(figures):
        now = NOW + timedelta(seconds=10 * at)
        near = figure > LIMIT * (1 - policy.dead_band)
        reading = LoopReading(
            figure, LIMIT, "", trouble=figure > LIMIT, near=near and figure <= LIMIT
        )
        last = decide(reading, situation, policy, last, now).code
        if last == "asked":
            situation = replace(situation, quiet_since=now)
        told.append((now, last))
    return told


@given(
    noise=st.lists(st.floats(0.15, 0.25), min_size=1, max_size=400),
    cooldown_s=st.integers(1, 900),
    dead_band=st.floats(0.0, 0.3),
)
def test_a_noisy_figure_around_its_bound_asks_once_per_cool_down(
    noise: list[float], cooldown_s: int, dead_band: float
) -> None:
    """However it jumps over the bound and back."""
    policy = PolicySettings(watch="act", cooldown_s=cooldown_s, dead_band=dead_band)
    asked = [at for at, code in course(noise, policy) if code == "asked"]
    for before, after in pairwise(asked):
        assert after - before >= timedelta(seconds=cooldown_s)


@given(noise=st.lists(st.floats(0.185, 0.25), min_size=2, max_size=200))
def test_within_the_dead_band_it_never_counts_as_mended(noise: list[float]) -> None:
    codes = [code for _, code in course([0.3, *noise], PolicySettings(watch="act"))]
    assert "balanced" not in codes
    assert "within" not in codes
