"""Tables hold what JSON holds."""

import json

import numpy as np

from algorithms.lab.tables import Table


def test_numbers_that_json_lacks_are_missing() -> None:
    """A ratio over nothing must not make a whole table unreadable."""
    records = [{"a": np.float64("nan"), "b": float("inf"), "c": np.int32(3)}]
    table = Table.from_records(("a", "b", "c"), records)
    assert table.rows == ((None, None, 3),)
    assert Table.from_json(json.loads(json.dumps(table.to_json(), allow_nan=False))) == table
