"""Values of results as JSON has them."""

import math
from decimal import Decimal
from typing import Any

import pytest

from controlplane.results.values import plain
from controlplane.wire.language.tree import Kind


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (Decimal("1.500000000"), Kind.DECIMAL, "1.5"),
        (Decimal("100.000000000"), Kind.DECIMAL, "100"),
        (Decimal("100"), Kind.DECIMAL, "100"),
        (Decimal("3E-9"), Kind.DECIMAL, "0.000000003"),
        (Decimal("-0E-9"), Kind.DECIMAL, "0"),
        (
            Decimal("99999999999999999999999999999.999999999"),
            Kind.DECIMAL,
            "99999999999999999999999999999.999999999",
        ),
        (2**70, Kind.INT, 2**70),
        (math.nan, Kind.FLOAT, "NaN"),
        (-math.inf, Kind.FLOAT, "-Infinity"),
    ],
)
def test_numbers_are_shown_exactly(value: Any, kind: Kind, shown: Any) -> None:
    assert plain(value, kind) == shown
