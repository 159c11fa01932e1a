"""Checks of a placement problem's input; each names the invalid value and the reason."""

from typing import Any

import numpy as np

from algorithms.checks import amounts, as_integers, check_count, numbers_below, refuse_first
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints, SmallInts

_MOST_SOURCES = np.iinfo(np.int32).max
# Algorithms keep numbers for every server; a mistyped number must not fill the memory.
_MOST_SERVERS = 1_000_000


def checked_rates(rates: Any) -> Floats:
    """Return the rates as a new float64 vector, finite and not negative."""
    array = amounts("rates", rates)
    if len(array) > _MOST_SOURCES:
        raise BadProblem("rates", f"more than {_MOST_SOURCES:,} sources")
    return array


def checked_indptr(indptr: Any) -> Ints:
    """Return the row boundaries as a new vector: from 0, growing, so that no query is empty."""
    array = as_integers("indptr", indptr)
    if not len(array) or array[0] != 0:
        raise BadProblem("indptr", "must begin with 0")
    steps = np.diff(array)
    falling = np.flatnonzero(steps < 0)
    if len(falling):
        raise BadProblem(f"indptr[{int(falling[0]) + 1}]", "must not fall")
    empty = np.flatnonzero(steps == 0)
    if len(empty):
        raise BadProblem(f"queries[{int(empty[0])}]", "reads no source")
    return array


def checked_sources(indices: Any, indptr: Ints, known: int) -> SmallInts:
    """Return the source numbers as a new vector, all of them below `known`."""
    array = as_integers("indices", indices)
    if len(array) != indptr[-1]:
        raise BadProblem("indices", f"has {len(array)} entries where indptr ends at {indptr[-1]}")
    wrong = np.flatnonzero((array < 0) | (array >= known))
    if len(wrong):
        query = int(np.searchsorted(indptr, wrong[0], side="right")) - 1
        what = f"reads source {array[wrong[0]]}, but there are {known} (0 to {known - 1})"
        raise BadProblem(f"queries[{query}]", what)
    return array.astype(np.int32)


def check_servers(servers: Any) -> None:
    """Raise `BadProblem` unless the number of servers is whole and at least one."""
    check_count("servers", servers)
    if int(servers) > _MOST_SERVERS:
        raise BadProblem("servers", f"must be at most {_MOST_SERVERS:,}, not {servers}")


def checked_capacities(capacities: Any, servers: int) -> Floats:
    """Return one positive number per server as a new float64 vector; without capacities, ones."""
    if capacities is None:
        return np.ones(int(servers))
    try:
        array = np.array(capacities, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadProblem("capacities", "must be a flat list of numbers") from error
    if array.shape != (int(servers),):
        why = f"must name one capacity for each of {servers} servers, not {array.shape}"
        raise BadProblem("capacities", why)
    wrong = ~(np.isfinite(array) & (array > 0))
    refuse_first("capacities", array, wrong, "must be finite and above 0, not {}")
    return array


def checked_assignment(assignment: Any, queries: int, servers: int) -> SmallInts:
    """Return one server per query as a new int32 vector, all of them below `servers`."""
    array = numbers_below("assignment", assignment, servers, "server")
    if len(array) != queries:
        raise BadProblem("assignment", f"names {len(array)} servers for {queries} queries")
    return array.astype(np.int32)
