"""Equation 7 as thresholds, and the absolute slack of section 5.2.2."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.lab.placement.formulas import alpha_from_epsilon
from algorithms.placement.balance import online_caps, thresholds


@given(
    st.integers(1, 40),
    st.sampled_from([0.0, 0.05, 0.3, 1.15]),
    st.sampled_from([0.0, 0.5, 2, 10.0]),
)
def test_thresholds_are_equation_7(servers: int, nu: float, alpha: float) -> None:
    found = thresholds(servers, nu, alpha, 400)
    for queries in range(1, 401):
        cap = int(np.searchsorted(found, queries, side="right")) - 1
        # Above the number of queries a cap does not bind.
        wanted = min(int(online_caps(queries, np.ones(servers), nu, alpha)[0]), len(found) - 1)
        assert cap == wanted


def test_alpha_makes_the_switch_late_enough() -> None:
    """At n = alpha k / nu the chance of equation 9 for one server is epsilon."""
    alpha = alpha_from_epsilon(0.01, 100, 0.05)
    switch = alpha * 100 / 0.05
    assert math.exp(-2 * 0.05**2 / 100**2 * switch) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("epsilon", "servers", "nu"), [(0, 1, 0.1), (1, 1, 0.1), (0.5, 0, 0.1), (0.5, 1, 0)]
)
def test_alpha_needs_sensible_numbers(epsilon: float, servers: int, nu: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        alpha_from_epsilon(epsilon, servers, nu)
