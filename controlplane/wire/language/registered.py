"""Python functions that queries may call by name.

    from controlplane.wire.language.registered import function

    @function(takes=("int", "int"), gives="float")
    def distance(x, y):
        return numpy.hypot(x, y)

    @aggregate(takes="float", gives="float")
    class GeometricMean:
        def partial(self, values): ...          # numpy array without nulls -> bytes
        def merge(self, left, right): ...       # bytes, bytes -> bytes
        def result(self, state): ...            # bytes -> a value, or None

A function receives one numpy array per argument and returns one of the same length. If an argument
is null the result is null. An aggregate's `merge` must not depend on the order, as windows are
merged from panes. Both must be deterministic, because a batch may be computed again after a crash.
`WEIR_FUNCTIONS` names the modules that register them, separated by commas, equally for the web
process and the data plane.
"""

import importlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from controlplane.wire.language.functions import FUNCTIONS, Function
from controlplane.wire.language.tree import Kind

MODULES: Final = "WEIR_FUNCTIONS"

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True)
class Registered:
    """A Python function with its signature."""

    signature: Function
    call: Callable[..., Any]


@dataclass(frozen=True)
class RegisteredAggregate:
    """A user's aggregate: an object with `partial`, `merge` and `result`."""

    takes: Kind
    gives: Kind
    about: str
    work: Any


_FUNCTIONS: Final[dict[str, Registered]] = {}
_AGGREGATES: Final[dict[str, RegisteredAggregate]] = {}


def function(*, takes: Sequence[str], gives: str, name: str | None = None) -> Callable[[F], F]:
    """Register a function; `takes` and `gives` are kinds: int, float, decimal, bool, text, time,
    date.

    Raises `ValueError` for an unknown kind and for a name that is taken.
    """
    kinds, result = [Kind(kind) for kind in takes], Kind(gives)

    def register(call: F) -> F:
        known = (name or call.__name__).lower()
        if known in FUNCTIONS or (known in _FUNCTIONS and _FUNCTIONS[known].call is not call):
            raise ValueError(f"there is a function {known} already")
        fits = tuple(accepted_kinds(kind) for kind in kinds)
        about = (call.__doc__ or "").strip().partition("\n")[0]
        _FUNCTIONS[known] = Registered(Function(fits, lambda _: result, about, len(fits)), call)
        return call

    return register


def aggregate(*, takes: str, gives: str, name: str | None = None) -> Callable[[type[T]], type[T]]:
    """Register a class as an aggregate of one expression.

    Raises `ValueError` for an unknown kind and for a name that is taken.
    """
    kind, result = Kind(takes), Kind(gives)

    def register(work: type[T]) -> type[T]:
        known = (name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", work.__name__)).lower()
        if known in _AGGREGATES and type(_AGGREGATES[known].work) is not work:
            raise ValueError(f"there is an aggregate {known} already")
        about = (work.__doc__ or "").strip().partition("\n")[0]
        _AGGREGATES[known] = RegisteredAggregate(kind, result, about, work())
        return work

    return register


def accepted_kinds(kind: Kind) -> tuple[Kind, ...]:
    """Return the kinds of argument that a parameter of a kind takes: numbers are widened to it."""
    if kind is Kind.FLOAT:
        return (Kind.FLOAT, Kind.INT, Kind.DECIMAL)
    return (Kind.DECIMAL, Kind.INT) if kind is Kind.DECIMAL else (kind,)


def registered_aggregate(name: str) -> RegisteredAggregate | None:
    """Return the aggregate of a name, in small letters; None if there is none."""
    load()
    return _AGGREGATES.get(name)


def registered(name: str) -> Registered | None:
    """Return the function of a name, in small letters; None if there is none."""
    load()
    return _FUNCTIONS.get(name)


def names() -> list[str]:
    """Return the names of all registered functions."""
    load()
    return sorted(_FUNCTIONS)


def aggregate_names() -> list[str]:
    """Return the names of all registered aggregates."""
    load()
    return sorted(_AGGREGATES)


@cache
def load() -> None:
    """Import the modules that `WEIR_FUNCTIONS` names, once."""
    for module in os.environ.get(MODULES, "").split(","):
        if module.strip():
            importlib.import_module(module.strip())
