"""The problem of one migration, section 3.1: tasks, their present and their target nodes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.checks import amounts, as_integers, check_count, check_slack, numbers_below
from algorithms.errors import BadProblem
from algorithms.migration.limits import node_limits
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class MigrationProblem:
    """Tasks on present nodes that must be spread over `nodes` target nodes.

    `work` float64[m]: work of each task, any unit. `state` float64[m]: bytes of its state.
    `owner` int64[m]: the present node of each task, of `present` nodes, n. `nodes`: target number
    n'. `tau`: a node may do (1 + tau) times its share of the work,
    definition 3.1. `capacities` float64[max(n, n')]: relative speeds, of the present nodes first;
    0 for a node that must leave, so that exactly n' are above 0. On equal nodes (None is given)
    the algorithm chooses who leaves, and all are 1.
    """

    work: Floats
    state: Floats
    owner: Ints
    present: int
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
        """Build the problem of tasks in intervals. Raises `BadProblem`, which names the value.

        `starts`: first task of each present node's interval, in position order; node i has the
        tasks [starts[i], starts[i + 1]), the last one those up to m; an interval may be empty.
        """
        works = _works(work)
        firsts = _interval_starts(starts, len(works))
        owner = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(works))))
        return cls.of_owner(works, state, owner, len(firsts), nodes, tau, capacities)

    @classmethod
    def of_owner(
        cls,
        work: Any,
        state: Any,
        owner: Any,
        present: int,
        nodes: int,
        tau: float,
        capacities: Any = None,
    ) -> "MigrationProblem":
        """Build the problem of tasks that are on any present nodes. Raises `BadProblem`."""
        works = _works(work)
        sizes = amounts("state", state)
        check_count("present", present)
        owners = numbers_below("owner", owner, int(present), "node")
        for name, array in (("state", sizes), ("owner", owners)):
            if len(array) != len(works):
                raise BadProblem(name, f"has {len(array)} entries for {len(works)} tasks")
        check_count("nodes", nodes)
        if nodes > len(works):
            why = f"{nodes} nodes cannot share {len(works)} tasks; at most one node per task"
            raise BadProblem("nodes", why)
        check_slack("tau", tau)
        speeds = _capacities(capacities, int(present), int(nodes))
        equal = capacities is None
        for array in (works, sizes, owners, speeds):
            array.setflags(write=False)
        return cls(works, sizes, owners, int(present), int(nodes), float(tau), speeds, equal)

    @property
    def tasks(self) -> int:
        """Number of tasks, m."""
        return len(self.work)

    @cached_property
    def bounds(self) -> Ints:
        """Where the present intervals begin and the last one ends, int64[n + 1].

        Raises `BadProblem` where a node's tasks are not an interval, or not in the order of nodes.
        """
        if (np.diff(self.owner) < 0).any():
            why = "must rise: each node one interval of tasks, nodes in position order"
            raise BadProblem("owner", why)
        return np.searchsorted(self.owner, np.arange(self.present + 1)).astype(np.int64)

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


def _works(values: Any) -> Floats:
    """Return the work of each task as a new vector. Raises `BadProblem` without any task."""
    array = amounts("work", values)
    if not len(array):
        raise BadProblem("work", "names no task")
    return array


def _interval_starts(starts: Any, tasks: int) -> Ints:
    """Return the first task of each present node: from 0, ascending, at most m."""
    array = as_integers("starts", starts)
    if not len(array):
        raise BadProblem("starts", "names no present node")
    if array[0] != 0:
        raise BadProblem("starts[0]", f"must be 0, where the tasks begin, not {array[0]}")
    falling = np.flatnonzero(np.diff(array) < 0)
    if len(falling):
        raise BadProblem(f"starts[{int(falling[0]) + 1}]", "must not fall: position order")
    if array[-1] > tasks:
        raise BadProblem(f"starts[{len(array) - 1}]", f"is beyond the {tasks} tasks")
    return array


def _capacities(capacities: Any, present: int, nodes: int) -> Floats:
    """Return one capacity per node, present ones first; without capacities, ones."""
    count = max(present, nodes)
    if capacities is None:
        return np.ones(count)
    array = amounts("capacities", capacities)
    if len(array) != count:
        why = f"must name {count} nodes, the {present} present ones first, not {len(array)}"
        raise BadProblem("capacities", why)
    staying = int((array > 0).sum())
    if staying != nodes:
        why = f"{staying} are above 0, but {nodes} nodes are wanted (0 is for one that leaves)"
        raise BadProblem("capacities", why)
    return array
