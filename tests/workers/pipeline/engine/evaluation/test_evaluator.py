"""Hashes of values and functions of users on columns; all others are compared with DuckDB."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.registered import function
from controlplane.wire.language.tree import Kind
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.kernels import KERNELS

COLUMNS = {
    "a": Kind.INT,
    "b": Kind.INT,
    "f": Kind.FLOAT,
    "name": Kind.TEXT,
    "yes": Kind.BOOL,
    "ts": Kind.TIME,
}
RECORDS: list[dict[str, Any]] = [
    {"a": 7, "b": 2, "f": 1.5, "name": "Abc d", "yes": True, "ts": 1_211_018_400_123},
    {"a": -7, "b": 2, "f": -2.5, "name": "", "yes": False, "ts": 0},
    {"a": 7, "b": -2, "f": 0.0, "name": " x%_y ", "yes": True, "ts": 951_782_400_000},
    {"a": 0, "b": 0, "f": 1e15, "name": "Gröse", "yes": None, "ts": 1_735_689_599_999},
    {"a": None, "b": 3, "f": None, "name": None, "yes": None, "ts": None},
    {"a": 5, "b": None, "f": 3.25, "name": "abc", "yes": False, "ts": -1_000},
]


def evaluated(text: str, records: list[dict[str, Any]]) -> list[Any]:
    columns = {
        name: pa.array([record[name] for record in records], ARROW[kind])
        for name, kind in COLUMNS.items()
    }
    expression = parsed(text, COLUMNS)
    found = Evaluator(columns, len(records)).array(expression)
    assert found.type == ARROW[expression.kind]
    assert len(found) == len(records)
    if expression.kind is Kind.TIME:
        found = found.cast(pa.int64())
    elif expression.kind is Kind.DATE:
        found = found.cast(pa.int32())
    return list(found.to_pylist())


def test_every_function_computes() -> None:
    assert set(KERNELS) == {*OPERATORS, *FUNCTIONS}


def test_equal_values_have_one_hash_in_every_process() -> None:
    hashes = evaluated("hash(a)", RECORDS)
    assert hashes[0] == hashes[2] != hashes[1]
    assert hashes[4] is None
    assert evaluated("hash('abc')", RECORDS[:1]) == [-7867839195469854840]
    assert evaluated("hash(12)", RECORDS[:1]) == [9_086_514_976_817_923_733]


def test_a_registered_function_is_called_with_whole_columns() -> None:
    @function(takes=("int", "float"), gives="float")
    def test_mix(left: Any, right: Any) -> Any:
        """Add half of the other."""
        assert isinstance(left, np.ndarray)
        return left + right / 2

    assert evaluated("test_mix(a, b)", RECORDS)[:2] == [8.0, -6.0]
    assert evaluated("test_mix(a, b)", RECORDS)[3:] == [0.0, None, None]
    with pytest.raises(ValueError, match="already"):
        function(takes=("int",), gives="int", name="sqrt")(abs)
