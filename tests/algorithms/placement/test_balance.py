import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.balance import even_caps, online_caps, relative_caps, smallest_slack

HUNDREDTHS = st.integers(0, 2000)
CAPACITIES = st.lists(st.integers(1, 40).map(lambda n: n / 4), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("queries", "cap"),
    [(1, 10), (100, 11), (1_000, 20), (19_999, 209), (20_000, 210), (20_100, 211), (100_000, 1050)],
)
def test_equation_7_at_the_papers_defaults(queries: int, cap: int) -> None:
    """k = 100, alpha = 10, nu = 0.05: the constraint turns relative at alpha / nu * k = 20,000."""
    assert online_caps(queries, np.ones(100), 0.05, 10.0).tolist() == [cap] * 100


@given(st.integers(0, 10**6), st.integers(1, 300), HUNDREDTHS, HUNDREDTHS)
def test_caps_are_the_largest_whole_numbers_within(n: int, k: int, nu: int, alpha: int) -> None:
    """Compared with the definitions, in whole numbers: no rounding may enter."""
    relative, absolute = (1 + Fraction(nu, 100)) * n / k, Fraction(n, k) + Fraction(alpha, 100)
    assert set(relative_caps(n, np.ones(k), nu / 100)) == {math.floor(relative)}
    caps = online_caps(n, np.ones(k), nu / 100, alpha / 100)
    assert set(caps) == {math.floor(max(relative, absolute))}


@given(st.integers(0, 10**4), CAPACITIES, HUNDREDTHS)
def test_unequal_servers_get_their_share(n: int, capacities: list[float], nu: int) -> None:
    caps = relative_caps(n, np.array(capacities), nu / 100)
    for cap, capacity in zip(caps.tolist(), capacities, strict=True):
        bound = (1 + Fraction(nu, 100)) * n * Fraction(capacity) / Fraction(sum(capacities))
        assert cap == math.floor(bound)


@given(st.integers(1, 10**4), CAPACITIES, HUNDREDTHS)
def test_rounded_up_caps_have_room_and_are_else_the_papers(
    n: int, capacities: list[float], nu: int
) -> None:
    """On equal servers nothing changes where the queries fit anyway."""
    sizes = np.array(capacities)
    paper, caps = (
        relative_caps(n, sizes, nu / 100),
        relative_caps(n, sizes, nu / 100, round_up=True),
    )
    for cap, given_cap, capacity in zip(caps.tolist(), paper.tolist(), capacities, strict=True):
        share = n * Fraction(capacity) / Fraction(sum(capacities))
        assert cap == max(given_cap, math.ceil(share))
    assert caps.sum() >= n
    if len(set(capacities)) == 1 and paper.sum() >= n:
        assert caps.tolist() == paper.tolist()


@given(st.integers(1, 2000), CAPACITIES)
def test_the_smallest_slack_is_enough_and_less_is_not(n: int, capacities: list[float]) -> None:
    sizes = np.array(capacities)
    smallest = smallest_slack(n, sizes)
    assert relative_caps(n, sizes, smallest).sum() >= n
    if smallest:
        assert relative_caps(n, sizes, smallest * (1 - 1e-9)).sum() < n


def test_even_share_rounds_up() -> None:
    assert [even_caps(n, np.ones(3)).tolist()[0] for n in (0, 1, 3, 4)] == [0, 1, 1, 2]


@pytest.mark.parametrize("huge", [1e18, 1e300])
def test_an_enormous_slack_is_no_overflow(huge: float) -> None:
    """Whoever wants no balance at all may say so with any large number."""
    equal = np.ones(3)
    for caps in (relative_caps(5, equal, huge), online_caps(5, equal, 0.0, huge)):
        assert int(caps.sum()) >= 3 * 5
        assert (caps > 0).all()
