"""The admission problem of a snapshot, and the actions of its plans."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, islice
from typing import Any, Final

import numpy as np

from algorithms.admission.metadata import StreamMetadata, averages
from algorithms.admission.prediction import (
    MetadataColumns,
    Predictions,
    expectations,
    expected_cycle,
)
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem, StreamTooLarge
from algorithms.vocabulary import Floats, Ints
from controlplane.errors import Conflict
from controlplane.planners.admission.forecaster import (
    HOLT,
    ForecasterChoice,
    forecasts,
    matrix_of,
    merged,
)
from controlplane.planners.admission.inputs import AdmissionInput, AdmittedStream
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSplitCount

NO_CAPACITY: Final = (
    "The capacity of the split nodes is neither declared nor measured: declare it, or wait until"
    " records arrive"
)


@dataclass(frozen=True)
class Outlook:
    """How rates are predicted.

    `horizon`: periods; `seconds`: of one period, a multiple of those of the input; `alpha`,
    `gamma`: of Holt's method for all streams, None: those of each stream.
    """

    horizon: int = 3
    seconds: float = 10.0
    alpha: float | None = None
    gamma: float | None = None


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """The problem of a cluster, and the split nodes and streams that its positions refer to.

    `splits`: the index of each open split node; `streams`: the id of each stream that may move;
    `held`: the indices with a stream that stays.
    """

    problem: AdmissionProblem
    splits: Sequence[int]
    streams: Sequence[int]
    held: frozenset[int]

    @property
    def is_overloaded(self) -> bool:
        """Return whether a split node is expected beyond its capacity, or a stream has none yet."""
        if (self.problem.owner == NEW).any():
            return True
        loads = self.problem.loads(self.problem.predictions.expected).max(axis=1)
        return bool((loads > self.problem.capacities).any())


def histories(given: AdmissionInput, outlook: Outlook) -> Floats:
    """Return the rates of the past periods, float64[s, t]. Raises `Conflict` bad_period."""
    periods = outlook.seconds / given.seconds
    if periods < 1 or not float(periods).is_integer():
        message = (
            f"An optimisation period is a multiple of {given.seconds} s, not {outlook.seconds:g} s"
        )
        raise Conflict("bad_period", message)
    return merged(matrix_of([stream.rates for stream in given.streams]), int(periods))


def predictions(given: AdmissionInput, outlook: Outlook) -> Predictions:
    """Return the predictions of all streams.

    A stream without a known rate has that of its characteristics, else the average of the others
    (paper 001, section 2.4).
    """
    history = histories(given, outlook)
    metadata = [_metadata(tuple(stream.characteristics.items())) for stream in given.streams]
    columns = MetadataColumns.of(metadata)
    choices = [_choice(stream, outlook) for stream in given.streams]
    forecast = forecasts(history, choices, outlook.horizon).rates
    last = history[:, -1] if history.shape[1] else np.full(len(history), np.nan)
    fresh = np.isnan(last)
    first = _first_rates(metadata, last)
    average = np.where(fresh, first, last)
    forecast[fresh] = first[fresh, None]
    expected, known = expectations(history, forecast, columns, outlook.seconds)
    cycle = expected_cycle(history, forecast, columns, outlook.seconds)
    return Predictions(average, forecast, expected, known, cycle)


# The loop of admission reads the same characteristics every ten seconds; checking them takes longer
# than the plan.
@lru_cache(maxsize=65_536)
def _metadata(characteristics: tuple[tuple[str, Any], ...]) -> StreamMetadata:
    return StreamMetadata.from_json(dict(characteristics))


def _choice(stream: AdmittedStream, outlook: Outlook) -> ForecasterChoice:
    choice = ForecasterChoice.from_json(stream.forecaster)
    if outlook.alpha is None and outlook.gamma is None:
        return choice
    alpha = choice.alpha if outlook.alpha is None else outlook.alpha
    gamma = choice.gamma if outlook.gamma is None else outlook.gamma
    return ForecasterChoice(HOLT, alpha, gamma)


def _first_rates(metadata: Sequence[StreamMetadata], last: Floats) -> Floats:
    """Return the first rate of each stream by its characteristics, or the mean of the others."""
    known = last[~np.isnan(last)]
    usual = averages(metadata).rate
    mean = float(known.mean()) if len(known) else usual or 0.0
    rates = np.full(len(metadata), mean)
    for place, row in enumerate(metadata):
        first = row.rate if row.rate is not None else row.average
        if first is None:
            first = mean if row.largest is None else min(mean, row.largest)
        rates[place] = first
    return rates


def split_problem(
    given: AdmissionInput,
    splits: Mapping[int, int],
    outlook: Outlook,
    *,
    fixed: Iterable[int] = (),
    cut: bool = False,
) -> SplitProblem:
    """Return the problem of one optimisation period.

    `splits`: the split node of each stream, `NEW` for none yet; `fixed`: ids of streams that stay,
    which take capacity of their split nodes. `cut`: predict at most the capacity of a split node
    instead of raising `StreamTooLarge`. Raises `Conflict` no_capacity.
    """
    if not given.capacity:
        raise Conflict("no_capacity", NO_CAPACITY)
    every = predictions(given, outlook)
    if cut:
        every = _cut(every, given.capacity)
    ids = [stream.id for stream in given.streams]
    staying = set(fixed)
    movable = np.array([stream not in staying for stream in ids], np.bool_)
    open_ = sorted({splits[stream] for stream in ids} - {NEW})
    place = {index: number for number, index in enumerate(open_)}
    owner = np.array([place.get(splits[stream], NEW) for stream in ids], np.int64)
    capacities = np.full(len(open_), given.capacity)
    np.subtract.at(capacities, owner[~movable], every.expected.max(axis=1)[~movable])
    problem = AdmissionProblem(
        given.capacity,
        np.maximum(capacities, 0.0),
        owner[movable],
        _rows(every, movable),
        latency=_latency(given, open_),
        stream_names=[s.name for s, moves in zip(given.streams, movable, strict=True) if moves],
        node_names=[str(index) for index in open_],
    )
    streams = [stream for stream, moves in zip(ids, movable.tolist(), strict=True) if moves]
    held = frozenset(splits[stream] for stream in ids if stream in staying)
    return SplitProblem(problem, open_, streams, held)


def plan_with_room(
    solve: Callable[[AdmissionProblem], AdmissionPlan],
    given: AdmissionInput,
    splits: Mapping[int, int],
    outlook: Outlook,
    *,
    fixed: Iterable[int] = (),
    cut: bool = False,
) -> tuple[SplitProblem, AdmissionPlan]:
    """Return the problem and its plan, after which split nodes have room for changing rates.

    Only an overload, or a split node less, is a reason for redirections. See `split_problem`.
    """
    fixed = list(fixed)
    split = split_problem(given, splits, outlook, fixed=fixed, cut=cut)
    plan = solve(split.problem)
    if not len(plan.redirected) or not given.room:
        return split, plan
    smaller = replace(given, capacity=(1 - given.room) * given.capacity)
    try:
        roomy = solve(split_problem(smaller, splits, outlook, fixed=fixed, cut=cut).problem)
    except StreamTooLarge:
        return split, plan
    if split.is_overloaded or roomy.nodes - len(roomy.closed) < len(split.splits):
        return split, roomy
    return split, AdmissionPlan.of(split.problem, split.problem.owner, len(split.splits))


def _latency(given: AdmissionInput, splits: Sequence[int]) -> Floats | None:
    """Return the latency of each split node in seconds, None if one is not measured."""
    measured = [given.latency.get(index) for index in splits]
    return None if None in measured or not measured else np.array(measured, np.float64)


def _rows(every: Predictions, wanted: Any) -> Predictions:
    return Predictions(
        every.average[wanted], every.forecast[wanted], every.expected[wanted],
        every.has_metadata[wanted], None if every.cycle is None else every.cycle[wanted],
    )  # fmt: skip


def _cut(every: Predictions, capacity: float) -> Predictions:
    return replace(
        every,
        average=np.minimum(every.average, capacity),
        forecast=np.minimum(every.forecast, capacity),
        expected=np.minimum(every.expected, capacity),
        cycle=None if every.cycle is None else np.minimum(every.cycle, capacity),
    )


def actions_of(split: SplitProblem, plan: AdmissionPlan, present: int) -> list[Action]:
    """Return the actions of a plan; `present`: the number of split nodes of the cluster.

    A new split node has the lowest free index. The number of split nodes grows before streams are
    redirected, and shrinks after it.
    """
    more = plan.nodes - len(split.splits)
    free = islice((index for index in count() if index not in split.splits), more)
    labels = [*split.splits, *free]
    targets: Ints = np.array(labels, np.int64)[plan.assignment]
    moves: list[Action] = [
        AssignStream(split.streams[stream], int(targets[stream]))
        for stream in plan.redirected.tolist()
    ]
    if not moves:
        return []
    needed = 1 + max({*targets.tolist(), *split.held}, default=0)
    if needed > present:
        return [SetSplitCount(needed), *moves]
    return [*moves, SetSplitCount(needed)] if needed < present else moves
