"""Hashes: equal numbers have one, whatever their kind, and others have others."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.hashing import hash_rows
from workers.pipeline.engine.kernels.types import in_kind

DECIMAL = ARROW[Kind.DECIMAL]


def hashes(values: list[Any], arrow: Any) -> list[int]:
    return [int(one) for one in hash_rows([pa.array(values, arrow)], len(values))]


def widened(values: list[Any], arrow: Any, kind: Kind) -> list[int]:
    """Return the hashes of values that a query sees in another kind."""
    return [int(one) for one in hash_rows([in_kind(pa.array(values, arrow), kind)], len(values))]


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1))
def test_whole_numbers_have_the_same_hash_in_every_kind(numbers: list[int]) -> None:
    plain = hashes(numbers, pa.int64())
    assert widened(numbers, pa.int64(), Kind.DECIMAL) == plain
    assert widened(numbers, pa.int64(), Kind.FLOAT) == plain


@given(
    st.lists(
        st.one_of(
            st.decimals(-(2**23), 2**23, places=9),
            st.decimals(-(10**13), 10**13, places=2),
            st.decimals(-(10**5), 10**5, places=4),
        ),
        min_size=1,
    )
)
def test_decimals_have_the_hash_of_their_float(numbers: list[Decimal]) -> None:
    plain = hashes(numbers, DECIMAL)
    assert widened(numbers, DECIMAL, Kind.FLOAT) == plain
    assert len(set(plain)) == len(set(numbers))


@given(st.lists(st.integers(-(10**37), 10**37), min_size=2, unique=True))
def test_different_decimals_have_different_hashes(units: list[int]) -> None:
    """Also where they have more digits than a float, or than 64 bits."""
    numbers = [Decimal(one).scaleb(-9) for one in units]
    near = [one + Decimal("1e-9") for one in numbers]
    both = list(dict.fromkeys(numbers + near))
    assert len(set(hashes(both, DECIMAL))) == len(both)


@pytest.mark.parametrize("whole", [2**63 - 1, 2**62 + 1, -(2**63) + 1, 5_000_000_000])
def test_large_whole_numbers_have_the_same_hash_as_decimals(whole: int) -> None:
    values = [whole, None, 1]
    assert widened(values, pa.int64(), Kind.DECIMAL) == hashes(values, pa.int64())


def test_zeros_nan_and_infinities() -> None:
    found = hashes([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e300], pa.float64())
    assert found[0] == found[1] == hashes([0], pa.int64())[0]
    assert found[2] == found[3]
    assert len(set(found)) == 5
    assert hashes([None], pa.float64()) == hashes([None], DECIMAL) == hashes([None], pa.int64())
    assert hash_rows([], 2).tolist() == np.zeros(2).tolist()
