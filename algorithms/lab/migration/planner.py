"""The migration planner with plans for later migrations, orders of transfers, and the JSON form."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from algorithms.lab.json_values import object_fields
from algorithms.lab.migration import formats
from algorithms.lab.migration.future.planners import Mtm, Sequence
from algorithms.lab.migration.schedule import Schedule, schedule_transfers
from algorithms.lab.planner import JsonPlanner
from algorithms.migration import planner
from algorithms.planner import Algorithm
from algorithms.vocabulary import Parameters, Progress, silent


@dataclass(frozen=True)
class TransferSchedule(Parameters):
    """The order of transfers, section 5.1: phases in which every link is busy, in least time."""

    def solve(self, transfers: Any, progress: Progress = silent) -> Schedule:
        """Schedule a square matrix of bytes; row i sends to column j. Raises `BadProblem`."""
        schedule = schedule_transfers(transfers)
        progress(1.0)
        return schedule


_ADDED: Final = (
    Algorithm("mtm", "Fewest bytes now and later", "offline", Mtm),
    Algorithm("sequence", "Fewest bytes over a known sequence", "offline", Sequence),
    Algorithm("schedule", "Order of transfers", "offline", TransferSchedule),
)

PLANNER: Final = JsonPlanner.of(
    planner.PLANNER,
    _ADDED,
    read=lambda data, balance: formats.problem_from_json(data, balance.tau),
    report=lambda run: formats.plan_to_json(run.plan),
    reads={
        "mtm": lambda data, balance: formats.foreseen_from_json(data, balance.tau),
        "sequence": lambda data, balance: formats.sequence_from_json(data, balance.tau),
        "schedule": lambda data, _: object_fields(data, ("transfers",))["transfers"],
    },
    reports={
        "sequence": lambda run: formats.sequence_to_json(run.plan),
        "schedule": lambda run: asdict(run.plan),
    },
)
