from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.placement.balance import even_cap, online_cap, relative_cap

HUNDREDTHS = st.integers(0, 2000)


@pytest.mark.parametrize(
    ("queries", "cap"),
    [(1, 10), (100, 11), (1_000, 20), (19_999, 209), (20_000, 210), (20_100, 211), (100_000, 1050)],
)
def test_equation_7_at_the_papers_defaults(queries: int, cap: int) -> None:
    """k = 100, alpha = 10, nu = 0.05: the constraint turns relative at alpha / nu * k = 20,000."""
    assert online_cap(queries, 100, 0.05, 10.0) == cap


@given(st.integers(0, 10**6), st.integers(1, 2000), HUNDREDTHS, HUNDREDTHS)
def test_caps_are_the_largest_whole_numbers_within(n: int, k: int, nu: int, alpha: int) -> None:
    """Compared with the definitions, in whole numbers: no rounding may enter."""
    relative, absolute = (1 + Fraction(nu, 100)) * n / k, Fraction(n, k) + Fraction(alpha, 100)
    cap = relative_cap(n, k, nu / 100)
    assert cap <= relative < cap + 1
    cap = online_cap(n, k, nu / 100, alpha / 100)
    assert cap <= max(relative, absolute) < cap + 1


def test_even_share_rounds_up() -> None:
    assert [even_cap(n, 3) for n in (0, 1, 3, 4)] == [0, 1, 1, 2]
