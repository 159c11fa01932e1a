"""The migration planner: its algorithms."""

from dataclasses import dataclass
from typing import Final

from algorithms.migration.baselines import ConsistentHashing, Storm, StormMatched
from algorithms.migration.free import Free
from algorithms.migration.single_step import SingleStep
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import MAX_SLACK, Parameters, parameter

MIGRATION: Final = "migration"


@dataclass(frozen=True)
class Balance(Parameters):
    """How evenly nodes must be loaded after a migration, definition 3.1."""

    tau: float = parameter(
        0.4,
        title="Uneven work allowed",
        letter="tau",
        help="A node does at most (1 + tau) times its share of the work.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )


_ALGORITHMS: Final = (
    Algorithm("single_step", "Fewest bytes now", "offline", SingleStep),
    Algorithm("free", "Free assignment", "offline", Free),
    Algorithm("consistent_hashing", "Consistent hashing", "offline", ConsistentHashing),
    Algorithm("storm_matched", "Equal counts, matched", "offline", StormMatched),
    Algorithm("storm", "Equal counts", "offline", Storm),
)

PLANNER: Final = Planner(
    name=MIGRATION,
    title="Move tasks of split queries",
    algorithms=_ALGORITHMS,
    problem=Balance,
    order=1,
)
