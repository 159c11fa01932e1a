"""The migration planner: its algorithms, and the JSON form of its problems and plans."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from algorithms.checks import object_fields
from algorithms.migration import formats
from algorithms.migration.baselines import ConsistentHashing, Storm, StormMatched
from algorithms.migration.free import Free
from algorithms.migration.future.planners import Mtm, Sequence
from algorithms.migration.schedule import Schedule, schedule_transfers
from algorithms.migration.single_step import SingleStep
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import MAX_SLACK, Parameters, Progress, parameter, silent

MIGRATION: Final = "migration"


@dataclass(frozen=True)
class Balance(Parameters):
    """How evenly nodes must be loaded after a migration, definition 3.1."""

    tau: float = parameter(
        0.4,
        title="Slack of the work",
        letter="tau",
        help="A node does at most (1 + tau) times its share of the work.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )


@dataclass(frozen=True)
class TransferSchedule(Parameters):
    """The order of transfers, section 5.1: phases in which every link is busy, in least time."""

    def solve(self, transfers: Any, progress: Progress = silent) -> Schedule:
        """Schedule a square matrix of bytes; row i sends to column j. Raises `BadProblem`."""
        schedule = schedule_transfers(transfers)
        progress(1.0)
        return schedule


_ALGORITHMS: Final = (
    Algorithm("single_step", "Fewest bytes now", "offline", SingleStep),
    Algorithm(
        "mtm",
        "Fewest bytes now and later",
        "offline",
        Mtm,
        read=lambda data, balance: formats.foreseen_from_json(data, balance.tau),
    ),
    Algorithm(
        "sequence",
        "Fewest bytes over a known sequence",
        "offline",
        Sequence,
        read=lambda data, balance: formats.sequence_from_json(data, balance.tau),
        report=lambda run: formats.sequence_to_json(run.plan),
    ),
    Algorithm("free", "Free assignment", "offline", Free),
    Algorithm("consistent_hashing", "Consistent hashing", "offline", ConsistentHashing),
    Algorithm("storm_matched", "Equal counts, matched", "offline", StormMatched),
    Algorithm("storm", "Equal counts", "offline", Storm),
    Algorithm(
        "schedule",
        "Order of transfers",
        "offline",
        TransferSchedule,
        read=lambda data, _: object_fields(data, ("transfers",))["transfers"],
        report=lambda run: asdict(run.plan),
    ),
)

PLANNER: Final = Planner(
    name=MIGRATION,
    title="Migration of operator state between nodes",
    algorithms=_ALGORITHMS,
    problem=Balance,
    read=lambda data, balance: formats.problem_from_json(data, balance.tau),
    report=lambda run: formats.plan_to_json(run.plan),
    order=1,
)
