"""The listing of the language says what its checker does."""

import pytest

from controlplane.catalog.language import (
    LanguageEntry,
    aggregates,
    functions,
    operators,
    registered_aggregates,
    registered_functions,
)
from controlplane.wire.language.aggregates import AGGREGATES
from controlplane.wire.language.functions import ANY, FUNCTIONS, OPERATORS
from controlplane.wire.language.grammar import BadExpression
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.registered import aggregate, function
from controlplane.wire.language.tree import Call


@pytest.mark.parametrize(("name", "entry"), list(zip(OPERATORS, operators(), strict=True)))
def test_an_operator_is_written_as_it_says(name: str, entry: LanguageEntry) -> None:
    """Over columns x, y, z of some kind it is that operator, and gives what it says."""
    found = set()
    for kind in ANY:
        for first in ANY:
            try:
                one = parsed(entry.written, {"x": first, "y": kind, "z": kind})
            except BadExpression:
                continue  # most kinds do not fit
            assert isinstance(one, Call)
            assert one.function == name
            found.add(one.kind)
    assert found
    if entry.gives in ANY:
        assert entry.gives in found


def test_nothing_of_the_language_is_left_out() -> None:
    listed = [entry.written.partition("(")[0] for entry in functions()]
    assert listed == list(FUNCTIONS)
    listed = [entry.written.partition("(")[0] for entry in aggregates()]
    assert listed == list(AGGREGATES)


@function(takes=("int", "float"), gives="float", name="listed_distance")
def distance(x: object, y: object) -> object:
    """Length of a vector.

    In the unit of its parts.
    """
    return x, y


@aggregate(takes="float", gives="float")
class ListedMean:
    """Mean of another kind."""


def test_what_a_site_registers_is_listed_with_its_first_line() -> None:
    entry = LanguageEntry("listed_distance(int, number)", "float", "Length of a vector.")
    assert entry in registered_functions()
    assert (
        LanguageEntry("listed_mean(float)", "float", "Mean of another kind.")
        in registered_aggregates()
    )


@pytest.mark.parametrize(
    ("written", "gives"),
    [
        ("round(number[, int])", "decimal or float"),
        ("coalesce(any, …)", "as its arguments"),
        ("abs(number)", "number"),
        ("substr(text, int[, int])", "text"),
    ],
)
def test_signatures_are_read_from_the_tables(written: str, gives: str) -> None:
    assert {entry.written: entry.gives for entry in functions()}[written] == gives
