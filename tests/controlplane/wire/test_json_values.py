"""Values of results as JSON."""

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pytest

from controlplane.wire.json_values import json_value, moment_of


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (1.5, 1.5),
        (2**70, 2**70),
        (Decimal("1.500000000"), "1.5"),
        (Decimal("100.000000000"), "100"),
        (Decimal("100"), "100"),
        (Decimal("3E-9"), "0.000000003"),
        (Decimal("-0E-9"), "0"),
        (
            Decimal("9999999999999999999999999999.999999999"),
            "9999999999999999999999999999.999999999",
        ),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime(2024, 2, 29, 12, 0, 0, 5000, dt.UTC), "2024-02-29T12:00:00.005000Z"),
        ([("a", 2), (math.nan, 1)], [["a", 2], ["NaN", 1]]),
        (True, True),
        (None, None),
        ({1}, "{1}"),
    ],
)
def test_every_value_has_a_form_in_json(value: Any, shown: Any) -> None:
    found = json_value(value)
    assert found == shown
    assert json.loads(json.dumps(found, allow_nan=False)) == shown


def test_times_beyond_those_of_python_are_texts() -> None:
    assert moment_of(5) == dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.UTC)
    assert moment_of(2**60) == "36536598-01-28T21:54:06.976Z"
    assert str(moment_of(-(2**60))).startswith("-36532659-")
