"""Placement as balanced hypergraph partitioning by Mt-KaHyPar, beyond the paper.

Pieces of query types are vertices, sources are edges, servers are blocks; the connectivity metric
(each edge costs its weight for every block it touches beyond the first) is the traffic beyond one
delivery of each source. Needs the package mtkahypar.
"""

import importlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.optional import optional_module
from algorithms.placement.offline.rounds import spread
from algorithms.placement.offline.rules import IncrementalCost
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine.annealing import Pieces, assignment_of, cut
from algorithms.placement.result import OfflinePlacement
from algorithms.rows import group_positions, pick_rows
from algorithms.vocabulary import Ints, Progress, SmallInts, parameter

_PRESETS: Final = ("deterministic", "default", "quality", "highest_quality", "large_k")
# Weights are whole numbers there; rates are scaled so that the largest is about this.
_LARGEST_WEIGHT: Final = 1 << 16
# Individual block weights bind; this only has to be valid.
_EPSILON: Final = 0.03


@dataclass(frozen=True)
class Hypergraph(OfflinePlacement):
    """Mt-KaHyPar on the hypergraph of types and sources, beyond section 4: fast and good.

    Types that are large against a server are cut into pieces first. Where blocks end above their
    weight, pieces are moved until none is.
    """

    preset: str = parameter(
        "default",
        help="How Mt-KaHyPar works; only deterministic gives the same plan each time.",
        choices=_PRESETS,
    )
    threads: int = parameter(
        1,
        unit="threads",
        help="Threads; the first call of a process decides for all that follow.",
        minimum=1,
        maximum=256,
    )
    seed: int = parameter(0, help="Seed of its random choices.", minimum=0, maximum=2**31 - 1)

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query. Raises `MissingDependency` without the package."""
        del progress
        pool = _thread_pool(self.threads)
        pieces = cut(problem, IncrementalCost().solve(problem).assignment)
        if min(problem.servers, len(pieces.kinds)) <= 1:
            return assignment_of(problem, pieces)
        blocks = self._partition(pool, problem, pieces)
        return spread(problem, repair_blocks(pieces.kinds, pieces.sizes, blocks, problem.caps))

    def _partition(self, pool: Any, problem: PlacementProblem, pieces: Pieces) -> Ints:
        """Return the server of each piece, int64[p], perhaps too many queries on some."""
        package = importlib.import_module("mtkahypar")
        context = pool.context_from_preset(getattr(package.PresetType, self.preset.upper()))
        context.logging = False
        package.set_seed(self.seed)
        context.set_partitioning_parameters(problem.servers, _EPSILON, package.Objective.KM1)
        context.set_individual_target_block_weights(problem.caps.tolist())
        edges, weights = _edges(problem, pieces)
        sizes = pieces.sizes.tolist()
        graph = pool.create_hypergraph(context, len(sizes), len(edges), edges, sizes, weights)
        return np.array(graph.partition(context).get_partition(), np.int64)


# The package's threads, which can be had once per process only.
_POOL: Final[dict[str, Any]] = {}


def _thread_pool(threads: int) -> Any:
    if "pool" not in _POOL:
        package = optional_module("mtkahypar", "hypergraph")
        _POOL["pool"] = package.initialize(threads)
    return _POOL["pool"]


def _edges(problem: PlacementProblem, pieces: Pieces) -> tuple[list[list[int]], list[int]]:
    """Return the pieces that read each source, and its weight; without sources of one piece."""
    indptr, entries = pick_rows(problem.types.indptr, pieces.kinds)
    bounds, order = group_positions(problem.types.indices[entries], len(problem.rates))
    owner = np.repeat(np.arange(len(pieces.kinds)), np.diff(indptr))[order]
    rows = np.split(owner, bounds[1:-1])
    largest = float(problem.rates.max()) or 1.0
    same = bool((problem.rates == problem.rates[0]).all())
    scale = 1.0 / largest if same else _LARGEST_WEIGHT / largest
    shared = [source for source, row in enumerate(rows) if len(row) > 1]
    weights = np.maximum(1, np.rint(problem.rates[shared] * scale)).astype(np.int64)
    return [rows[source].tolist() for source in shared], weights.tolist()


def repair_blocks(kinds: SmallInts, sizes: Ints, blocks: Ints, caps: Ints) -> Ints:
    """Return (type, server, queries) with no server above its cap, int64[r, 3].

    The excess of a server, its smallest pieces first, goes to the servers with most room; a piece
    is split where it does not fit whole.
    """
    given = [list(row) for row in zip(kinds.tolist(), blocks.tolist(), sizes.tolist(), strict=True)]
    loads = np.bincount(blocks, sizes, len(caps)).astype(np.int64)
    for block in np.flatnonzero(loads > caps).tolist():
        own = sorted((row for row in given if row[1] == block), key=lambda row: row[2])
        for row in own:
            while row[2] and loads[block] > caps[block]:
                target = int(np.argmax(caps - loads))
                moved = min(
                    row[2], int(caps[target] - loads[target]), int(loads[block] - caps[block])
                )
                row[2] -= moved
                loads[block] -= moved
                loads[target] += moved
                given.append([row[0], target, moved])
    return np.array([row for row in given if row[2]], np.int64)
