"""The language of queries as people look it up: every operator, function and aggregate.

Derived from the tables that the checker reads, so that it cannot say anything else.
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
class Entry:
    """One thing of the language: how it is written, the kind it gives, what it is."""

    written: str
    gives: str
    about: str


def operators() -> list[Entry]:
    """Return the operators."""
    return [
        Entry(_WRITTEN.get(name, f"x {name} y"), _gives(one), one.about)
        for name, one in OPERATORS.items()
    ]


def functions() -> list[Entry]:
    """Return the functions of the language itself."""
    return _entries(FUNCTIONS)


def registered_functions() -> list[Entry]:
    """Return the functions of the modules of `WEIR_FUNCTIONS`."""
    return _entries({name: found.signature for name in names() if (found := registered(name))})


def aggregates() -> list[Entry]:
    """Return the aggregates of the language itself."""
    return [
        Entry(_aggregate(name, one), _aggregate_gives(name, one), one.about)
        for name, one in AGGREGATES.items()
    ]


def registered_aggregates() -> list[Entry]:
    """Return the aggregates of the modules of `WEIR_FUNCTIONS`."""
    found = ((name, registered_aggregate(name)) for name in aggregate_names())
    return [Entry(f"{name}({one.takes})", str(one.gives), one.about) for name, one in found if one]


def _entries(found: Mapping[str, Function]) -> list[Entry]:
    return [
        Entry(f"{name}({_parameters(one)})", _gives(one), one.about) for name, one in found.items()
    ]


def _aggregate(name: str, one: AggregateFunction) -> str:
    first = "* or any" if name == "count" else _word(one.takes)
    return f"{name}({first}, {one.setting[0]})" if one.setting else f"{name}({first})"


def _aggregate_gives(name: str, one: AggregateFunction) -> str:
    if name == "top_k":
        return "list"
    return "as its argument" if one.gives is None else str(one.gives)


def _parameters(one: Function) -> str:
    words = [_word(kinds) for kinds in one.takes]
    needed, more = words[: one.least], words[one.least :]
    shown = ", ".join(needed) + "".join(f"[, {word}]" for word in more)
    return f"{shown}, …" if one.repeats else shown


def _gives(one: Function) -> str:
    """Return the kind of the result over all kinds that the arguments may have."""
    takes = [one.takes[min(at, len(one.takes) - 1)] for at in range(one.least)]
    kinds = {one.gives(combination) for combination in product(*takes)} - {None, Kind.NULL}
    return _word(sorted(kind for kind in kinds if kind is not None), "as its arguments")


def _word(kinds: Kinds, many: str = "any") -> str:
    if set(kinds) == set(NUMBERS):
        return "number"
    if set(kinds) >= set(ANY):
        return many
    numbers: Sequence[str] = ["number"] if set(NUMBERS) <= set(kinds) else []
    rest = [str(kind) for kind in kinds if not (numbers and kind in NUMBERS)]
    return " or ".join([*numbers, *rest])
