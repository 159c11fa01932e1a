"""A check of any assignment that shares no code with the algorithms: it only counts.

Plain Python with exact fractions, so it is for at most some million messages.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import NamedTuple

_TOLERANCE = 1e-9


class Counts(NamedTuple):
    """Messages per worker, distinct pairs of key and worker, and the imbalance in messages."""

    loads: list[int]
    memory: int
    imbalance: float


def count(
    keys: Sequence[Hashable],
    assignment: Sequence[int],
    workers: int,
    capacities: Sequence[float] | None = None,
) -> Counts:
    """Return what an assignment amounts to. Raises `AssertionError` if it is not a valid one."""
    if len(assignment) != len(keys):
        raise AssertionError(f"{len(assignment)} assigned messages instead of {len(keys)}")
    wrong = [worker for worker in assignment if not 0 <= worker < workers]
    if wrong:
        raise AssertionError(f"worker {wrong[0]} is unknown; there are {workers}")
    of_worker = Counter(assignment)
    loads = [of_worker[worker] for worker in range(workers)]
    sizes = [Fraction(value) for value in (capacities or [1.0] * workers)]
    average = sum(sizes, Fraction(0)) / workers
    over_share = [load * average / size for load, size in zip(loads, sizes, strict=True)]
    mean = sum(over_share, Fraction(0)) / workers
    pairs = set(zip(keys, assignment, strict=True))
    return Counts(loads, len(pairs), float(max(over_share) - mean))


def certify(
    keys: Sequence[Hashable],
    assignment: Sequence[int],
    claimed: Counts,
    capacities: Sequence[float] | None = None,
) -> None:
    """Raise `AssertionError` unless the assignment is valid and the claimed counts are true."""
    true = count(keys, assignment, len(claimed.loads), capacities)
    scale = max(1.0, *(float(load) for load in true.loads))
    if list(claimed.loads) != true.loads:
        raise AssertionError(f"the loads are {true.loads}, not {list(claimed.loads)}")
    if claimed.memory != true.memory:
        raise AssertionError(f"the memory is {true.memory} pairs, not {claimed.memory}")
    if abs(claimed.imbalance - true.imbalance) > _TOLERANCE * scale:
        raise AssertionError(f"the imbalance is {true.imbalance}, not {claimed.imbalance}")
