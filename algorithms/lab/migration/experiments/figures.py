"""Figures 9 to 14 of section 6 as named experiments, with the paper's defaults."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate, ProblemSize
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel, Repeated, part
from algorithms.lab.migration.experiments.chains import History, mean_delay, policy_of, run_policy
from algorithms.lab.migration.future.planners import MAX_PATHS, MAX_ROUNDS, Mtm
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.lab.migration.workloads import (
    DAILY,
    RECORDED,
    frequent_patterns,
    node_numbers,
    word_count,
)
from algorithms.migration.result import MigrationPlan
from algorithms.vocabulary import MAX_SLACK, Progress, parameter, portion

MOVED: Final = Axis("moved", "State moved per migration", "% of all")
SECONDS: Final = Axis("seconds", "Time per plan", "ms", log=True)
PREPARED: Final = Axis("prepared", "Time beforehand", "s")
IMBALANCE: Final = Axis("imbalance", "Imbalance of the work")
INFEASIBLE: Final = Axis("infeasible", "Share of migrations beyond the slack")
ENTRIES: Final = Axis("entries", "Entries of the routing table")
RESPONSE: Final = Axis("response", "Mean delay in the two minutes after", "ms")
TAU: Final = Axis("tau", "Slack of the work")
TASKS: Final = Axis("tasks", "Tasks", log=True)
WINDOW: Final = Axis("window", "Sliding window", "s")
GAMMA: Final = Axis("gamma", "Discount factor")

TAUS: Final = (0.4, 0.8, 1.2, 1.6, 2.0)
TASK_COUNTS: Final = (32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
WINDOWS: Final = (30.0, 60.0, 90.0, 120.0, 150.0)
GAMMAS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)

MEASURES: Final = ("moved", "imbalance", "infeasible", "entries", "seconds", "prepared", "response")
_AXES: Final = (MOVED, IMBALANCE, INFEASIBLE, ENTRIES, SECONDS, PREPARED, RESPONSE)
_SERIES: Final = ("single_step", "mtm", "consistent_hashing", "storm")
_CHOICES: Final = (*_SERIES, "storm_matched", "free", "ssm")
_TITLES: Final = {"ssm": "Fewest bytes now, as in the paper (SSM)"}
_CHOSEN: Final = (
    "The paper's tweets are not public; demand is drawn with a daily rhythm, or recorded "
    "(parameter “Demand”). The transition matrix is counted from what was before the first "
    "migration. “Imbalance of the work” is the busiest node's work over the mean, less 1."
)
# Share of a trial's progress that preparing takes.
_PREPARING: Final = 0.5


@dataclass(frozen=True)
class Migrating(Repeated):
    """An application on a changing number of nodes."""

    tau: float = parameter(
        1.2,
        title="Slack of the work",
        letter="tau",
        help="A node does at most (1 + tau) times its share of the work.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )
    tasks: int = parameter(
        64, letter="m", unit="tasks", help="Number of tasks.", minimum=16, maximum=16_384
    )
    application: str = parameter(
        "word_count",
        help="word_count: uneven work, even state. frequent_patterns: both about even.",
        choices=("word_count", "frequent_patterns"),
    )
    window: float = parameter(
        90.0,
        title="Sliding window",
        unit="s",
        help="Sliding window of frequent_patterns; its state grows with it.",
        minimum=1.0,
        maximum=86_400.0,
    )
    demand: str = parameter(
        DAILY,
        help="Where node numbers come from: daily is drawn, the others are recorded and need the "
        "data sets.",
        choices=(DAILY, *RECORDED),
    )
    migrations: int = parameter(
        100,
        unit="migrations",
        help="Consecutive migrations that are averaged.",
        minimum=1,
        maximum=100_000,
    )
    known: int = parameter(
        300,
        title="Known changes",
        unit="migrations",
        help="Changes before the first migration that the transition matrix is counted from.",
        minimum=2,
        maximum=100_000,
    )
    gamma: float = parameter(
        0.8,
        title="Discount factor",
        letter="gamma",
        help="Discount of migrations to come, for mtm.",
        minimum=0.0,
        maximum=0.99,
    )
    rounds: int = parameter(
        6,
        title="Rounds of learning",
        help="Rounds of learning, for mtm.",
        minimum=1,
        maximum=MAX_ROUNDS,
    )
    paths: int = parameter(
        128,
        title="Sampled futures",
        help="Futures that mtm plays out a decision on.",
        minimum=1,
        maximum=MAX_PATHS,
    )

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

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one policy through all migrations."""
        size = ProblemSize(self.tasks, 0, 0, 0)
        prepared = self.mtm_planner(0).estimate(size) if series == "mtm" else Estimate(0.0, 0.0)
        # Dynamic programs over the tasks, per migration.
        seconds = self.migrations * (2e-6 * self.tasks**2 + 5e-3) + prepared.seconds
        return Estimate(64.0 * self.tasks**2 + 1_000.0 * self.known, seconds)

    def mtm_planner(self, seed: int) -> Mtm:
        """Return the planner that looks ahead."""
        return Mtm(gamma=self.gamma, rounds=self.rounds, paths=self.paths, seed=seed)


@dataclass(frozen=True)
class Responding(Migrating):
    """A migrating application with the links that carry state."""

    application: str = parameter(
        "frequent_patterns",
        help="word_count: uneven work, even state. frequent_patterns: both about even.",
        choices=("word_count", "frequent_patterns"),
    )
    bandwidth: float = parameter(
        125e6,
        title="Bandwidth of a node",
        unit="bytes/s",
        help="What a node's link carries.",
        minimum=1.0,
        maximum=1e12,
    )


def _trial(
    parameters: Migrating, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    history = parameters.history(seed)
    for number, name in enumerate(series):
        own = part(report, number, len(series))
        mtm = parameters.mtm_planner(seed)
        preparing = portion(own, 0.0, _PREPARING)
        policy, prepared = policy_of(name, history, mtm, seed, preparing)
        plans = run_policy(history, policy, portion(own, _PREPARING, 1 - _PREPARING))
        yield name, {**_measures(parameters, history, plans), "prepared": prepared}


def _measures(
    parameters: Migrating, history: History, plans: Sequence[MigrationPlan]
) -> dict[str, Any]:
    mean = history.work.sum() / history.nodes[1:]
    bandwidth = getattr(parameters, "bandwidth", None)
    return {
        "moved": 100 * np.mean([plan.cost for plan in plans]) / history.state.sum(),
        "imbalance": np.mean([plan.max_load for plan in plans] / mean) - 1,
        "infeasible": np.mean([not plan.feasible for plan in plans]),
        "entries": np.mean([len(plan.intervals) for plan in plans]),
        "seconds": 1000 * np.median([plan.seconds for plan in plans]),
        "response": None if bandwidth is None else mean_delay(history, plans, bandwidth),
    }


def _figure(
    name: str,
    title: str,
    about: str,
    sweep: tuple[Axis, tuple[float, ...]],
    panels: tuple[Axis, ...],
    series: tuple[str, ...] = _SERIES,
    parameters: type[Migrating] = Migrating,
) -> Experiment:
    x, values = sweep
    return Experiment(
        planner="migration",
        name=name,
        title=title,
        about=f"{about} {_CHOSEN}",
        x=x,
        panels=tuple(Panel(f"{title}: {y.label.lower()}", y) for y in panels),
        parameters=parameters,
        values=values,
        series=series,
        choices=_CHOICES,
        series_titles=_TITLES,
        measures=MEASURES,
        axes=_AXES,
        trial=_trial,
    )


PLANNED: Final = (
    _figure(
        "fig9",
        "Slack of the work and migration cost",
        "Section 6, figure 9: 100 migrations each of word_count with 64 tasks.",
        (TAU, TAUS),
        (MOVED,),
    ),
    _figure(
        "fig10",
        "Slack of the work and running time",
        "Section 6, figure 10: the paper's SSM (figure 4, repaired), and Weir's single step.",
        (TAU, TAUS),
        (SECONDS,),
        ("ssm", "single_step"),
    ),
    _figure(
        "fig11",
        "Slack of the work and time beforehand",
        "Section 6, figure 11: the paper lists all partitionings, hundreds of minutes on 64 "
        "executors; here values of interval loads are learned.",
        (TAU, TAUS),
        (PREPARED,),
        ("mtm",),
    ),
    _figure(
        "fig12",
        "Number of tasks",
        "Section 6, figure 12: finer tasks cost less to move and more time to plan.",
        (TASKS, TASK_COUNTS),
        (MOVED, SECONDS),
        ("single_step", "ssm"),
    ),
    _figure(
        "fig13",
        "Window size and response time",
        "Section 6, figure 13. The delay is computed, not measured: a moved task's records wait "
        "until its state has arrived, in the order of the optimal schedule.",
        (WINDOW, WINDOWS),
        (RESPONSE,),
        ("single_step", "mtm", "consistent_hashing"),
        Responding,
    ),
    _figure(
        "fig14",
        "Discount factor",
        "Section 6, figure 14: the more the future counts, the less is moved in all.",
        (GAMMA, GAMMAS),
        (MOVED, PREPARED),
        ("mtm", "single_step"),
    ),
)
