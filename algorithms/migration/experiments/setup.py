"""The set-up of section 6: applications, demand, and the paper's defaults."""

from dataclasses import dataclass
from typing import Final

from algorithms.errors import BadParameters
from algorithms.experiment import Axis, Repeated
from algorithms.migration.experiments.chains import History
from algorithms.migration.future.planners import Mtm
from algorithms.migration.future.transitions import Transitions
from algorithms.migration.workloads import frequent_patterns, node_numbers, word_count
from algorithms.migration.workloads.demand import DAILY, RECORDED
from algorithms.vocabulary import parameter


@dataclass(frozen=True)
class Migrating(Repeated):
    """An application on a changing number of nodes."""

    tau: float = parameter(
        1.2,
        help="A node does at most (1 + tau) times its share of the work.",
        minimum=0.0,
    )
    tasks: int = parameter(64, unit="tasks", help="Number of tasks, m.", minimum=16)
    application: str = parameter(
        "word_count",
        help="word_count: uneven work, even state. frequent_patterns: both about even.",
        choices=("word_count", "frequent_patterns"),
    )
    window: float = parameter(
        90.0,
        unit="s",
        help="Sliding window of frequent_patterns; its state grows with it.",
        minimum=1.0,
    )
    demand: str = parameter(
        DAILY,
        help="Where node numbers come from: daily is drawn, the others are recorded and need the "
        "data sets.",
        choices=(DAILY, *RECORDED),
    )
    migrations: int = parameter(
        100, unit="migrations", help="Consecutive migrations that are averaged.", minimum=1
    )
    known: int = parameter(
        300,
        unit="migrations",
        help="Changes before the first migration that the transition matrix is counted from.",
        minimum=2,
    )
    gamma: float = parameter(
        0.8, help="Discount of migrations to come, for mtm.", minimum=0.0, maximum=0.99
    )
    rounds: int = parameter(6, help="Rounds of learning, for mtm.", minimum=1)
    paths: int = parameter(128, help="Futures that mtm plays out a decision on.", minimum=1)

    def history(self, seed: int) -> History:
        """Draw the history of one seed; each seed has its own start in the recorded demand.

        Raises `BadProblem` without the data, `BadParameters` where a record is too short.
        """
        numbers = node_numbers(self.demand, seed)
        needed = self.known + self.migrations + 1
        if len(numbers) < needed:
            why = f"{self.demand} has {len(numbers) - 1} changes, {needed - 1} are needed"
            raise BadParameters({"known": [why]})
        begin = (seed * self.migrations) % (len(numbers) - needed + 1)
        numbers = numbers[begin : begin + needed]
        if self.application == "word_count":
            work, state = word_count(self.tasks, seed)
        else:
            work, state = frequent_patterns(self.tasks, seed, self.window)
        # Only the known past counts; the future may have other numbers, too.
        transitions = Transitions.from_history(numbers[: self.known + 1], also=numbers)
        return History(work, state, numbers[self.known :], transitions, self.tau)

    def foreseeing(self, seed: int) -> Mtm:
        """Return the planner that looks ahead."""
        return Mtm(gamma=self.gamma, rounds=self.rounds, paths=self.paths, seed=seed)


MOVED: Final = Axis("moved", "State moved per migration", "% of all")
SECONDS: Final = Axis("seconds", "Time per plan", "ms", log=True)
PREPARED: Final = Axis("prepared", "Time beforehand", "s")
RESPONSE: Final = Axis("response", "Mean delay in the two minutes after", "ms")
TAU: Final = Axis("tau", "Load balancing factor tau")
TASKS: Final = Axis("tasks", "Tasks", log=True)
WINDOW: Final = Axis("window", "Sliding window", "s")
GAMMA: Final = Axis("gamma", "Discount factor gamma")

TAUS: Final = (0.4, 0.8, 1.2, 1.6, 2.0)
TASK_COUNTS: Final = (32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
WINDOWS: Final = (30.0, 60.0, 90.0, 120.0, 150.0)
GAMMAS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
