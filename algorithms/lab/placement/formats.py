"""Placement problems from JSON values and from data frames, and plans as JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.rows import boundaries, group_positions
from algorithms.vocabulary import Ints, is_finite


def problem_from_json(data: object, nu: float) -> PlacementProblem:
    """Build a problem from JSON values, as docs/algorithms.md shows them.

    `{"rates": {"A": 1, "B": 1}, "queries": [["A", "B"], ["A"]], "servers": 2}`, perhaps with
    `capacities` (one number per server) and `nu`, which overrules the one given. Queries are in
    arrival order. Raises `BadProblem`, which names the wrong value and why.
    """
    fields = object_fields(data, ("rates", "queries", "servers"), ("capacities", "nu"))
    rates = fields["rates"]
    if not isinstance(rates, Mapping):
        raise BadProblem("rates", "must be an object: a rate for each source by name")
    for name, rate in rates.items():
        _check_number(f"rates.{name}", rate)
    known = {name: number for number, name in enumerate(rates)}
    indptr, indices = _number_sources(fields["queries"], known)
    return PlacementProblem.from_arrays(
        list(rates.values()),
        indptr,
        indices,
        fields["servers"],
        fields.get("nu", nu),
        _checked_capacities(fields.get("capacities")),
    )


def problem_from_frame(
    frame: Any,
    rates: Any,
    servers: int,
    nu: float,
    capacities: Sequence[float] | None = None,
    *,
    query: str = "query",
    source: str = "source",
) -> PlacementProblem:
    """Build a problem from a table with one row for each source that a query reads.

    `frame`: anything whose columns are had by `frame[name]` and turned into arrays by numpy:
    pandas, polars, pyarrow, a dict of lists. Queries are numbered in order of first appearance.
    `rates`: by source, a dict or a pandas Series; those that no query reads are kept. Raises
    `BadProblem`, which names the wrong value and why.
    """
    readers, names = (_column(frame, column) for column in (query, source))
    if len(readers) != len(names):
        raise BadProblem(source, f"has {len(names)} rows where {query} has {len(readers)}")
    by_name = _by_name(rates)
    known = {name: number for number, name in enumerate(by_name)}
    numbers: dict[Any, int] = {}
    owner = np.array([numbers.setdefault(reader, len(numbers)) for reader in readers], np.int64)
    indices = np.array(
        [_number_of(name, known, f"{source}[{row}]") for row, name in enumerate(names)], np.int64
    )
    indptr, order = group_positions(owner, len(numbers))
    return PlacementProblem.from_arrays(
        list(by_name.values()), indptr, indices[order], servers, nu, capacities
    )


def plan_to_json(plan: PlacementPlan, caps: Ints) -> dict[str, Any]:
    """Return a plan as JSON values; `feasible`: whether every load is within `caps`."""
    names = ("traffic", "replication_factor", "max_load", "lower_bound")
    return {
        "assignment": plan.assignment.tolist(),
        **{name: getattr(plan, name) for name in names},
        "feasible": bool((plan.loads <= caps).all()),
        "seconds": plan.seconds,
    }


def _number_sources(queries: object, known: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Return the queries as compressed rows of source numbers."""
    if not isinstance(queries, list):
        raise BadProblem("queries", "must be a list with the sources of each query")
    for number, row in enumerate(queries):
        if not isinstance(row, list):
            raise BadProblem(f"queries[{number}]", f"must be a list of source names, not {row!r}")
    indptr = boundaries(np.fromiter(map(len, queries), np.int64, len(queries)))
    try:
        indices = [known[name] for row in queries for name in row]
    except (KeyError, TypeError):
        # A second, slow pass finds the place.
        for number, row in enumerate(queries):
            for name in row:
                _number_of(name, known, f"queries[{number}]")
        raise
    return indptr, np.array(indices, np.int64)


def _number_of(name: Any, known: Mapping[Any, int], where: str) -> int:
    try:
        return known[name]
    except (KeyError, TypeError):
        raise BadProblem(where, f"reads source {name!r}, which has no rate") from None


def _checked_capacities(capacities: object) -> list[float] | None:
    if capacities is None:
        return None
    if not isinstance(capacities, list):
        raise BadProblem("capacities", "must be null or a list with a number for each server")
    for server, capacity in enumerate(capacities):
        _check_number(f"capacities[{server}]", capacity)
    return capacities


def _check_number(where: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProblem(where, f"must be a number, not {value!r}")
    if not is_finite(value) or value < 0:
        raise BadProblem(where, f"must be finite and not negative, not {value}")


def _by_name(rates: Any) -> dict[Any, float]:
    try:
        by_name = dict(rates.items())
    except (AttributeError, TypeError):
        raise BadProblem("rates", "must have a rate for each source by name") from None
    if len(by_name) != len(rates):
        raise BadProblem("rates", "names a source twice")
    return by_name


def _column(frame: Any, name: str) -> list[Any]:
    try:
        column = frame[name]
    except (KeyError, TypeError, IndexError) as error:
        raise BadProblem(name, "is not a column of the table") from error
    array = np.asarray(column)
    if array.ndim != 1:
        raise BadProblem(name, "must be one column with one value in each row")
    values: list[Any] = array.tolist()
    for row, value in enumerate(values):
        if _is_missing(value):
            raise BadProblem(f"{name}[{row}]", "is missing")
    return values


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - true of NaN alone
    except TypeError:
        # pandas.NA is neither equal to itself nor not.
        return True
