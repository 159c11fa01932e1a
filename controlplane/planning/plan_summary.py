"""Summaries of plans: figures about a plan as a whole, so that pages need not read its actions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from controlplane.formats.json_values import JsonValue
from controlplane.plans.plan import PlannedAction, task_moves
from controlplane.wire.routing.action_json import kind_of

# A chart of about 1200 pixels shows no more points than this.
MAX_POINTS: Final = 600


@dataclass(frozen=True)
class Flow:
    """The moves from node `source` to node `target` (indices), and their bytes of state."""

    source: int
    target: int
    moves: int
    bytes: int


@dataclass(frozen=True)
class PlanSummary(JsonValue):
    """A summary of a plan.

    `kinds`: the number of actions by kind; `queries`: the number of queries of which tasks move, of
    `total_queries` that run; `flows`: the moves by source and target, ascending; `places`,
    `imbalance`: the imbalance after so many actions, from 1, of many in a row the largest.
    """

    kinds: Mapping[str, int] = field(default_factory=dict)
    queries: int = 0
    total_queries: int = 0
    flows: Sequence[Flow] = ()
    places: Sequence[int] = ()
    imbalance: Sequence[float] = ()

    @classmethod
    def of(
        cls, plan: Sequence[PlannedAction], imbalance: Sequence[float], total_queries: int = 0
    ) -> Self:
        """Return the summary of a plan with the imbalance after each action."""
        moves = task_moves(plan)
        counts: Counter[tuple[int, int]] = Counter()
        sent: Counter[tuple[int, int]] = Counter()
        for _, _, source, target, size in moves:
            counts[source, target] += 1
            sent[source, target] += size
        others = Counter(
            kind_of(planned.action) for planned in plan if not isinstance(planned, tuple)
        )
        places = worst_places(imbalance, MAX_POINTS)
        return cls(
            kinds=_kinds(len(moves), others),
            queries=queries_of(plan),
            total_queries=total_queries,
            flows=[Flow(*pair, counts[pair], sent[pair]) for pair in sorted(counts)],
            places=[place + 1 for place in places],
            imbalance=[imbalance[place] for place in places],
        )

    @property
    def peak(self) -> float | None:
        """Return the largest imbalance during the execution, None without actions."""
        return max(self.imbalance, default=None)


def queries_of(plan: Iterable[PlannedAction]) -> int:
    """Return the number of queries of which tasks move: they pause."""
    return len({move.query for move in task_moves(plan)})


def worst_places(values: Sequence[float], points: int) -> list[int]:
    """Return ascending places, of many in a row that of the largest value: no peak is hidden."""
    size = -(-len(values) // points)
    if size <= 1:
        return list(range(len(values)))
    worst = {
        max(range(begin, min(begin + size, len(values))), key=values.__getitem__)
        for begin in range(0, len(values), size)
    }
    return sorted({0, *worst, len(values) - 1})


def _kinds(moves: int, others: Mapping[str, int]) -> dict[str, int]:
    kinds = dict(others)
    if moves:
        kinds["move_tasks"] = kinds.get("move_tasks", 0) + moves
    return kinds
