"""A queueing simulation of split nodes: one first-come queue per node, optimised periodically."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from algorithms.admission.forecasting.holt import HoltState
from algorithms.admission.prediction import (
    MetadataColumns,
    Predictions,
    expectations,
    expected_cycle,
)
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem
from algorithms.admission.strategies import Strategy
from algorithms.lab.admission.bounds import checked_items, l2
from algorithms.lab.admission.workloads import Workload
from algorithms.vocabulary import Floats, Ints

# Rates of this many periods are kept for the phases of meta-data.
HISTORY: Final = 128


@dataclass(frozen=True)
class Setting:
    """Settings of a simulation.

    `capacity`: records/s of a split node; `period_s`: seconds between two optimisations, a multiple
    of the workload's step; `horizon`: periods that are forecast; `redirect_s`: seconds for which a
    redirected stream waits at its client; `latency_weight`: of the newest sample of a queue in the
    moving average; `alpha`, `gamma`: smoothing factors; `warm_up`: the first periods, which are not
    measured.
    """

    capacity: float = 1_000.0
    period_s: float = 10.0
    horizon: int = 3
    redirect_s: float = 0.5
    latency_weight: float = 0.3
    alpha: float = 0.5
    gamma: float = 0.2
    warm_up: int = 20


@dataclass
class Course:
    """What a simulation measured, one value per period after the warm-up."""

    nodes: list[int] = field(default_factory=list)
    optimum: list[int] = field(default_factory=list)
    redirections: list[int] = field(default_factory=list)
    buffered: list[float] = field(default_factory=list)
    delay_s: list[float] = field(default_factory=list)
    overloaded: list[int] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)

    def means(self) -> dict[str, float]:
        """Return the mean of each measure, and the share of nodes above the optimum."""
        result = {name: float(np.mean(values)) for name, values in vars(self).items()}
        result["above_optimum"] = result["nodes"] / result["optimum"] - 1
        return result


class _State:
    """The split nodes and what is known of the streams."""

    def __init__(self, workload: Workload, setting: Setting, seed: int) -> None:
        count = len(workload.rates)
        self.rng = np.random.default_rng((seed, 1))
        self.metadata = MetadataColumns.of(workload.metadata)
        self.owner: Ints = np.full(count, NEW)
        self.queues = np.zeros(0)
        self.latency = np.zeros(0)
        self.history = np.zeros((count, 0))
        self.holt: HoltState | None = None
        self.setting = setting

    def observe(self, rates: Floats) -> None:
        """Take the rates of a period into history and forecasts."""
        self.history = np.concatenate([self.history, rates[:, None]], axis=1)[:, -HISTORY:]
        if self.holt is None:
            self.holt = HoltState.start(rates, self.setting.alpha, self.setting.gamma)
        else:
            self.holt = self.holt.observed(rates)

    def predictions(self) -> Predictions:
        """Return the predictions after the last period; before it those of the meta-data."""
        setting = self.setting
        if self.holt is None:
            average = np.nan_to_num(self.metadata.average, nan=setting.capacity / 10)
            forecast = np.repeat(average[:, None], setting.horizon, axis=1)
        else:
            average, forecast = self.history[:, -1], self.holt.forecast(setting.horizon)
        forecast = np.minimum(forecast, setting.capacity)
        expected, known = expectations(self.history, forecast, self.metadata, setting.period_s)
        cycle = expected_cycle(self.history, forecast, self.metadata, setting.period_s)
        return Predictions(np.minimum(average, setting.capacity), forecast,
                           np.minimum(expected, setting.capacity), known, cycle)  # fmt: skip


def simulate(
    workload: Workload, strategy: Strategy, setting: Setting | None = None, seed: int = 0
) -> Course:
    """Return the course of a workload under a strategy."""
    setting = setting or Setting()
    steps = round(setting.period_s / workload.step_s)
    state = _State(workload, setting, seed)
    course = Course()
    for period in range(workload.rates.shape[1] // steps):
        problem = AdmissionProblem(
            setting.capacity,
            np.full(len(state.queues), setting.capacity),
            state.owner,
            state.predictions(),
            state.latency if period else None,
        )
        plan = strategy.solve(problem)
        waits = _redirect(state, problem, plan)
        rates = workload.rates[:, period * steps : (period + 1) * steps]
        _pass_period(state, course, workload, rates, plan, waits, period)
    return course


def _redirect(state: _State, problem: AdmissionProblem, plan: AdmissionPlan) -> Floats:
    """Apply a plan; return the seconds for which each stream waits, float64[s]."""
    more = plan.nodes - problem.nodes
    state.queues = np.concatenate([state.queues, np.zeros(more)])
    state.latency = np.concatenate([state.latency, np.zeros(more)])
    state.owner = plan.assignment.copy()
    waits = np.zeros(len(state.owner))
    waits[plan.redirected] = state.setting.redirect_s
    # A node without streams is closed when its queue is empty.
    used = (np.bincount(state.owner, minlength=plan.nodes) > 0) | (state.queues > 0)
    places = np.cumsum(used) - 1
    state.queues, state.latency = state.queues[used], state.latency[used]
    state.owner = places[state.owner]
    return waits


def _pass_period(
    state: _State,
    course: Course,
    workload: Workload,
    rates: Floats,
    plan: AdmissionPlan,
    waits: Floats,
    period: int,
) -> None:
    setting, nodes = state.setting, len(state.queues)
    step_s = workload.step_s
    expected = rates * step_s
    arrived = state.rng.poisson(expected).astype(np.float64) if workload.drawn else expected
    # A redirection is shorter than a step: what its client buffers arrives within the same step.
    worst = 0.0
    for step in range(rates.shape[1]):
        inflow = np.bincount(state.owner, arrived[:, step], nodes)
        state.queues = np.maximum(0.0, state.queues + inflow - setting.capacity * step_s)
        sample = state.queues / setting.capacity
        state.latency += setting.latency_weight * (sample - state.latency)
        worst = max(worst, float(sample.max(initial=0.0)))
    measured = arrived.sum(axis=1) / setting.period_s
    state.observe(measured)
    if period < setting.warm_up:
        return
    loads = np.bincount(state.owner, measured, nodes)
    buffered = waits * measured
    course.nodes.append(nodes)
    course.optimum.append(l2(checked_items(setting.capacity, rates.mean(axis=1))))
    course.redirections.append(len(plan.redirected))
    course.buffered.append(float(buffered.sum()))
    course.delay_s.append(float(buffered @ waits) / 2)
    course.overloaded.append(int((loads > setting.capacity).sum()))
    course.latency_s.append(worst)
