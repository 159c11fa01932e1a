"""Figures 9 to 14 of section 6 as named experiments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.experiment import Axis, Experiment, Measures, Panel, part
from algorithms.migration.experiments import setup
from algorithms.migration.experiments.chains import Course, History, lived, policy_of
from algorithms.migration.experiments.setup import Migrating
from algorithms.migration.experiments.waiting import mean_delay
from algorithms.vocabulary import Progress, parameter, portion

MEASURES: Final = (
    "moved",
    "imbalance",
    "infeasible",
    "entries",
    "seconds",
    "prepared",
    "response",
)
_SERIES: Final = ("single_step", "mtm", "consistent_hashing", "storm")
_CHOICES: Final = (*_SERIES, "storm_matched", "free", "ssm")
_CHOSEN: Final = (
    "The paper's tweets are not public; demand is drawn with a daily rhythm, or recorded "
    "(parameter demand). The transition matrix is counted from what was before the first "
    "migration. imbalance is the busiest node's work over the mean, less 1; infeasible the share "
    "of migrations beyond tau; entries those of the routing table."
)
# Share of a trial's progress that preparing takes.
_PREPARING: Final = 0.5


@dataclass(frozen=True)
class Responding(Migrating):
    """A migrating application with the links that carry state."""

    application: str = parameter(
        "frequent_patterns",
        help="word_count: uneven work, even state. frequent_patterns: both about even.",
        choices=("word_count", "frequent_patterns"),
    )
    bandwidth: float = parameter(
        125e6, unit="bytes/s", help="What a node's link carries.", minimum=1.0
    )


def _trial(
    parameters: Migrating, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    history = parameters.history(seed)
    for number, name in enumerate(series):
        own = part(report, number, len(series))
        mtm = parameters.foreseeing(seed)
        preparing = portion(own, 0.0, _PREPARING)
        policy, prepared = policy_of(name, history, mtm, seed, preparing)
        course = lived(history, policy, prepared, portion(own, _PREPARING, 1 - _PREPARING))
        yield name, _measures(parameters, history, course)


def _measures(parameters: Migrating, history: History, course: Course) -> dict[str, Any]:
    plans = course.plans
    mean = history.work.sum() / history.nodes[1:]
    bandwidth = getattr(parameters, "bandwidth", None)
    return {
        "moved": 100 * np.mean([plan.cost for plan in plans]) / history.state.sum(),
        "imbalance": np.mean([plan.max_load for plan in plans] / mean) - 1,
        "infeasible": np.mean([not plan.feasible for plan in plans]),
        "entries": np.mean([len(plan.intervals) for plan in plans]),
        "seconds": 1000 * np.median([plan.seconds for plan in plans]),
        "prepared": course.prepared,
        "response": None if bandwidth is None else mean_delay(history, course, bandwidth),
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
        measures=MEASURES,
        trial=_trial,
    )


PLANNED: Final = (
    _figure(
        "fig9",
        "Load balancing factor and migration cost",
        "Section 6, figure 9: 100 migrations each; at tau = 1.2 word_count, m = 64.",
        (setup.TAU, setup.TAUS),
        (setup.MOVED,),
    ),
    _figure(
        "fig10",
        "Load balancing factor and running time",
        "Section 6, figure 10: the paper's SSM (figure 4, repaired), and Weir's single step.",
        (setup.TAU, setup.TAUS),
        (setup.SECONDS,),
        ("ssm", "single_step"),
    ),
    _figure(
        "fig11",
        "Load balancing factor and time beforehand",
        "Section 6, figure 11: the paper lists all partitionings, hundreds of minutes on 64 "
        "executors; here values of interval loads are learned.",
        (setup.TAU, setup.TAUS),
        (setup.PREPARED,),
        ("mtm",),
    ),
    _figure(
        "fig12",
        "Number of tasks",
        "Section 6, figure 12: finer tasks cost less to move and more time to plan.",
        (setup.TASKS, setup.TASK_COUNTS),
        (setup.MOVED, setup.SECONDS),
        ("single_step", "ssm"),
    ),
    _figure(
        "fig13",
        "Window size and response time",
        "Section 6, figure 13. The delay is computed, not measured: a moved task's records wait "
        "until its state has arrived, in the order of the optimal schedule.",
        (setup.WINDOW, setup.WINDOWS),
        (setup.RESPONSE,),
        ("single_step", "mtm", "consistent_hashing"),
        Responding,
    ),
    _figure(
        "fig14",
        "Discount factor",
        "Section 6, figure 14: the more the future counts, the less is moved in all.",
        (setup.GAMMA, setup.GAMMAS),
        (setup.MOVED, setup.PREPARED),
        ("mtm", "single_step"),
    ),
)
