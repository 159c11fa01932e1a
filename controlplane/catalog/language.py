"""Reference of the query language: operators, functions and aggregates.

Derived from the tables that the checker reads, so they cannot differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from controlplane.wire.language.aggregates import AGGREGATES
from controlplane.wire.language.aggregates import Function as AggregateFunction
from controlplane.wire.language.functions import ANY, FUNCTIONS, OPERATORS, Function, Kinds
from controlplane.wire.language.registered import (
    aggregate_names,
    names,
    registered,
    registered_aggregate,
)
from controlplane.wire.language.tree import NUMBERS, Kind

# How an operator is written, where that is not `x <name> y`.
_WRITTEN: Final[Mapping[str, str]] = {
    "negative": "-x",
    "not": "not x",
    "is null": "x is null",
    "in": "x in (1, 2)",
    "like": "x like 'a%'",
    "case": "case when x then y else z end",
    "to int": "cast(x as int)",
    "to float": "cast(x as float)",
    "to decimal": "cast(x as decimal)",
    "to text": "cast(x as text)",
    "to time": "cast(x as timestamp)",
    "to date": "cast(x as date)",
}


@dataclass(frozen=True)
class LanguageEntry:
    """An entry of the reference: its syntax, the kind of its result, and a description."""

    written: str
    gives: str
    about: str


def operators() -> list[LanguageEntry]:
    """Return the operators."""
    return [
        LanguageEntry(_WRITTEN.get(name, f"x {name} y"), _gives(operator), operator.about)
        for name, operator in OPERATORS.items()
    ]


def functions() -> list[LanguageEntry]:
    """Return the built-in functions."""
    return _entries(FUNCTIONS)


def registered_functions() -> list[LanguageEntry]:
    """Return the functions of the modules of `WEIR_FUNCTIONS`."""
    return _entries(
        {name: functions.signature for name in names() if (functions := registered(name))}
    )


def aggregates() -> list[LanguageEntry]:
    """Return the built-in aggregates."""
    return [
        LanguageEntry(
            _aggregate(name, aggregate), _aggregate_gives(name, aggregate), aggregate.about
        )
        for name, aggregate in AGGREGATES.items()
    ]


def registered_aggregates() -> list[LanguageEntry]:
    """Return the aggregates of the modules of `WEIR_FUNCTIONS`."""
    registered_classes = ((name, registered_aggregate(name)) for name in aggregate_names())
    return [
        LanguageEntry(f"{name}({aggregate.takes})", str(aggregate.gives), aggregate.about)
        for name, aggregate in registered_classes
        if aggregate
    ]


def _entries(table: Mapping[str, Function]) -> list[LanguageEntry]:
    return [
        LanguageEntry(f"{name}({_parameters(function)})", _gives(function), function.about)
        for name, function in table.items()
    ]


def _aggregate(name: str, function: AggregateFunction) -> str:
    first = "* or any" if name == "count" else _word(function.takes)
    return f"{name}({first}, {function.setting[0]})" if function.setting else f"{name}({first})"


def _aggregate_gives(name: str, function: AggregateFunction) -> str:
    if name == "top_k":
        return "list"
    return "as its argument" if function.gives is None else str(function.gives)


def _parameters(function: Function) -> str:
    words = [_word(kinds) for kinds in function.takes]
    needed, more = words[: function.least], words[function.least :]
    shown = ", ".join(needed) + "".join(f"[, {word}]" for word in more)
    return f"{shown}, …" if function.repeats else shown


def _gives(function: Function) -> str:
    """Return the kind of the result over all kinds that the arguments may have."""
    takes = [function.takes[min(index, len(function.takes) - 1)] for index in range(function.least)]
    kinds = {function.gives(combination) for combination in product(*takes)} - {None, Kind.NULL}
    return _word(sorted(kind for kind in kinds if kind is not None), "as its arguments")


def _word(kinds: Kinds, many: str = "any") -> str:
    if set(kinds) == set(NUMBERS):
        return "number"
    if set(kinds) >= set(ANY):
        return many
    numbers: Sequence[str] = ["number"] if set(NUMBERS) <= set(kinds) else []
    rest = [str(kind) for kind in kinds if not (numbers and kind in NUMBERS)]
    return " or ".join([*numbers, *rest])
