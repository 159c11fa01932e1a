"""Compile the hot loops once, so that no later process pays for it: `python -m algorithms.warm_up`.

numba keeps compiled code beside the source, or in the user's cache directory where the source
cannot be written.
"""

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.workloads import bipartite
from algorithms.registry import PLACEMENT, algorithms

# Two sources per query and one: the single-source algorithm has a loop of its own.
_INSTANCES = ([[0, 1], [0], [1, 2]], [[0], [1], [2]])


def warm_up() -> None:
    """Run every registered algorithm on a tiny problem, and draw a random one."""
    bipartite(4, 2, 1.0, 0)
    for queries in _INSTANCES:
        problem = PlacementProblem.from_lists([1.0, 2.0, 3.0], queries, 2, 0.5)
        for algorithm in algorithms(PLACEMENT):
            algorithm.solve(problem, algorithm.parameters())


if __name__ == "__main__":
    warm_up()
