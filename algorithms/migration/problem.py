"""The problem of one migration, section 3.1: tasks, where they are, where they may go."""

import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.errors import BadProblem
from algorithms.migration import checks
from algorithms.migration.limits import node_limits
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class MigrationProblem:
    """Tasks on present nodes that must be spread over `nodes` target nodes.

    `work` float64[m]: work of each task, any unit. `state` float64[m]: bytes of its state.
    `starts` int64[n]: first task of each present node's interval, in position order; node i has
    the tasks [starts[i], starts[i + 1]), the last one those up to m; an interval may be empty.
    `nodes`: target number n'. `tau`: a node may do (1 + tau) times its share of the work,
    definition 3.1. `capacities` float64[max(n, n')]: relative speeds, of the present nodes first;
    0 for a node that must leave, so that exactly n' are above 0. On equal nodes (None is given)
    the algorithm chooses who leaves, and all are 1.
    """

    work: Floats
    state: Floats
    starts: Ints
    nodes: int
    tau: float
    capacities: Floats
    equal_nodes: bool

    @classmethod
    def of(
        cls,
        work: Any,
        state: Any,
        starts: Any,
        nodes: int,
        tau: float,
        capacities: Any = None,
    ) -> "MigrationProblem":
        """Check the input and build the problem. Raises `BadProblem`, which names the value."""
        works = checks.amounts("work", work)
        sizes = checks.amounts("state", state)
        if not len(works):
            raise BadProblem("work", "names no task")
        if len(sizes) != len(works):
            raise BadProblem("state", f"has {len(sizes)} entries for {len(works)} tasks")
        firsts = checks.interval_starts(starts, len(works))
        _check_nodes(nodes)
        _check_tau(tau)
        speeds = checks.capacities_of(capacities, len(firsts), int(nodes))
        equal = capacities is None
        return cls(works, sizes, firsts, int(nodes), float(tau), speeds, equal)

    @property
    def tasks(self) -> int:
        """Number of tasks, m."""
        return len(self.work)

    @property
    def present(self) -> int:
        """Number of present nodes, n."""
        return len(self.starts)

    @cached_property
    def bounds(self) -> Ints:
        """Where the present intervals begin and the last one ends, int64[n + 1]."""
        return np.append(self.starts, self.tasks)

    @cached_property
    def work_before(self) -> Floats:
        """Work of all tasks before each position, float64[m + 1]."""
        return np.concatenate([[0.0], np.cumsum(self.work)])

    @cached_property
    def state_before(self) -> Floats:
        """Bytes of all tasks before each position, float64[m + 1]."""
        return np.concatenate([[0.0], np.cumsum(self.state)])

    @property
    def total_work(self) -> float:
        """Work of all tasks, W."""
        return float(self.work_before[-1])

    @property
    def total_state(self) -> float:
        """Bytes of all tasks."""
        return float(self.state_before[-1])

    @cached_property
    def limits(self) -> Floats:
        """Most work that each node may do, float64[max(n, n')]; definition 3.1."""
        return node_limits(self.total_work, self.nodes, self.tau, self.capacities)


def _check_nodes(nodes: Any) -> None:
    if isinstance(nodes, bool) or not isinstance(nodes, numbers.Integral):
        raise BadProblem("nodes", f"must be a whole number, not {nodes!r}")
    if int(nodes) < 1:
        raise BadProblem("nodes", f"must be at least 1, not {nodes}")


def _check_tau(tau: Any) -> None:
    if isinstance(tau, bool) or not isinstance(tau, numbers.Real):
        raise BadProblem("tau", f"must be a number, not {tau!r}")
    if not math.isfinite(float(tau)) or float(tau) < 0:
        raise BadProblem("tau", f"must be finite and not negative, not {tau}")
