"""The baselines of section 6: consistent hashing and Storm's default scheduler."""

import hashlib
from dataclasses import dataclass

import numpy as np

from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measure_assignment
from algorithms.optimizers import best_assignment
from algorithms.vocabulary import (
    MAX_SEED,
    Floats,
    Ints,
    Parameters,
    Progress,
    SmallInts,
    parameter,
    silent,
)


@dataclass(frozen=True)
class ConsistentHashing(Parameters):
    """Consistent hashing with balanced tokens, section 6: equal numbers of tasks, few moves.

    Tasks and tokens are points on a ring; a task goes to the node of the next token on. Balanced:
    a node takes no more than its share of the tasks, rounded up, and the excess goes on to the
    next node on the ring. Work and state play no part, so the balance bound may be broken.
    """

    tokens: int = parameter(
        100,
        title="Tokens of a node",
        unit="per node",
        help="Points of each node on the ring.",
        minimum=1,
        maximum=10_000,
    )
    balanced: bool = parameter(
        default=True,
        title="Bounded loads",
        help="Whether a node refuses tasks beyond its share, rounded up.",
    )
    seed: int = parameter(0, help="Same seed, same ring.", minimum=0, maximum=MAX_SEED)

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Assign every task to its node on the ring; the last of equal nodes leave."""
        progress(1.0)
        return measure_assignment(problem, lambda: self._assign(problem))

    def _assign(self, problem: MigrationProblem) -> tuple[SmallInts, Ints]:
        nodes = target_nodes(problem)
        ring = [
            (self._point(f"node {node} token {token}"), node)
            for node in nodes.tolist()
            for token in range(self.tokens)
        ]
        ring.sort()
        points = np.array([point for point, _ in ring])
        owners = [node for _, node in ring]
        room = dict(zip(nodes.tolist(), self._shares(problem, nodes).tolist(), strict=True))
        assignment = np.empty(problem.tasks, np.int32)
        for task in range(problem.tasks):
            position = int(np.searchsorted(points, self._point(f"task {task}")))
            while room[owners[position % len(owners)]] == 0:
                position += 1
            assignment[task] = owners[position % len(owners)]
            room[owners[position % len(owners)]] -= 1
        return assignment, nodes

    def _shares(self, problem: MigrationProblem, nodes: Ints) -> Ints:
        """Return the most tasks that each node takes, rounded up so that all tasks fit."""
        if not self.balanced:
            return np.full(len(nodes), problem.tasks)
        speeds = problem.capacities[nodes]
        shares: Ints = np.ceil(problem.tasks * speeds / speeds.sum() - 1e-9).astype(np.int64)
        return shares

    def _point(self, name: str) -> int:
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big")


@dataclass(frozen=True)
class Storm(Parameters):
    """Storm's default scheduler, section 6: equal counts of consecutive tasks, in node order."""

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Assign the i-th block of tasks to node i, ignoring owners; the last nodes leave."""
        progress(1.0)
        return measure_assignment(problem, lambda: _in_node_order(problem))


@dataclass(frozen=True)
class StormMatched(Parameters):
    """Storm's equal counts of consecutive tasks, section 6, each block to the best present node.

    The numbering of the nodes is a maximum weight matching, so this is the least that equal
    counts can cost.
    """

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Assign each block of tasks to the node that keeps most of it."""
        progress(1.0)
        return measure_assignment(problem, lambda: _matched(problem))


def target_nodes(problem: MigrationProblem) -> Ints:
    """Return the remaining nodes if the problem names no leaving ones: the last ones leave."""
    return np.flatnonzero(problem.capacities > 0)[: problem.nodes]


def _in_node_order(problem: MigrationProblem) -> tuple[SmallInts, Ints]:
    nodes = target_nodes(problem)
    return nodes[_blocks(problem.tasks, problem.capacities[nodes])].astype(np.int32), nodes


def _matched(problem: MigrationProblem) -> tuple[SmallInts, Ints]:
    equal = problem.equal_nodes
    nodes = np.arange(len(problem.capacities)) if equal else target_nodes(problem)
    speeds = np.ones(problem.nodes) if equal else problem.capacities[nodes]
    blocks = _blocks(problem.tasks, speeds)
    kept = np.zeros((problem.nodes, max(len(problem.capacities), problem.present)))
    np.add.at(kept, (blocks, problem.owner), problem.state)
    rows, columns = best_assignment(kept[:, nodes])
    names = np.empty(problem.nodes, np.int64)
    names[rows] = nodes[columns]
    return names[blocks].astype(np.int32), names


def _blocks(tasks: int, speeds: Floats) -> Ints:
    """Return the block of each task: counts in proportion to the speeds, in order."""
    ends = np.round(tasks * np.cumsum(speeds) / speeds.sum()).astype(np.int64)
    return np.searchsorted(ends, np.arange(tasks), side="right")
