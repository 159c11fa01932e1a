"""The key that a filter of results names."""

from typing import Any

import pytest

from controlplane.results.filters import key_values
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText

KINDS = {kind.value: kind for kind in (Kind.TEXT, Kind.INT, Kind.BOOL, Kind.FLOAT)}


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("text", "true", "true"), ("text", "NaN", "NaN"), ("text", "-Infinity", "-Infinity"),
        ("text", "1e5", "1e5"), ("text", "007", "007"), ("text", '"true"', "true"),
        ("text", "null", None), ("text", "a b", "a b"), ("int", "7", 7), ("bool", "true", True),
        ("float", "1.5", 1.5),
    ],
)  # fmt: skip
def test_the_only_value_of_a_key_is_read_by_its_kind(column: str, text: str, value: Any) -> None:
    computation = computation_of(QueryText({"n": "count(*)"}, key=[column]), KINDS)
    assert key_values(text, computation, {}) == [value]
