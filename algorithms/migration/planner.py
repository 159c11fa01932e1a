"""The migration planner: its algorithms, and how its problems and plans look as JSON."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.migration import formats
from algorithms.migration.baselines import ConsistentHashing, Storm, StormMatched
from algorithms.migration.free import Free
from algorithms.migration.future.planners import Mtm, Sequence
from algorithms.migration.planners import SingleStep
from algorithms.migration.schedule import Schedule, scheduled
from algorithms.planner import Algorithm, Planner, Run
from algorithms.vocabulary import MAX_SLACK, Parameters, Progress, parameter

MIGRATION: Final = "migration"


@dataclass(frozen=True)
class Balance(Parameters):
    """How evenly nodes must be loaded after a migration, definition 3.1."""

    tau: float = parameter(
        0.4,
        help="A node does at most (1 + tau) times its share of the work.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )


@dataclass(frozen=True)
class TransferSchedule(Parameters):
    """The order of transfers, section 5.1: phases in which every link is busy, in least time."""

    def solve(self, transfers: Any, progress: Progress | None = None) -> Schedule:
        """Schedule a square matrix of bytes; row i sends to column j. Raises `BadProblem`."""
        schedule = scheduled(transfers)
        if progress is not None:
            progress(1.0)
        return schedule


def _read(data: object, balance: Any) -> Any:
    return formats.problem_from_json(data, balance.tau)


def _report(run: Run) -> dict[str, Any]:
    return formats.plan_to_json(run.plan)


def _read_sequence(data: object, balance: Any) -> Any:
    return formats.sequence_from_json(data, balance.tau)


def _report_sequence(run: Run) -> dict[str, Any]:
    return formats.sequence_to_json(run.plan)


def _read_foreseen(data: object, balance: Any) -> Any:
    return formats.foreseen_from_json(data, balance.tau)


def _read_transfers(data: object, balance: Any) -> Any:
    del balance
    return formats.transfers_from_json(data)


def _report_schedule(run: Run) -> dict[str, Any]:
    return formats.schedule_to_json(run.plan)


MIGRATION_ALGORITHMS: Final = (
    Algorithm("single_step", "Fewest bytes now", "offline", SingleStep),
    Algorithm("mtm", "Fewest bytes now and later", "offline", Mtm, read=_read_foreseen),
    Algorithm(
        "sequence",
        "Fewest bytes over a known sequence",
        "offline",
        Sequence,
        read=_read_sequence,
        report=_report_sequence,
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
        read=_read_transfers,
        report=_report_schedule,
    ),
)

PLANNER: Final = Planner(
    name=MIGRATION,
    title="Migration of operator state between nodes",
    algorithms=MIGRATION_ALGORITHMS,
    problem=Balance,
    read=_read,
    report=_report,
    order=1,
)
