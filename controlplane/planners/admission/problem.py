"""The admission problem of a snapshot, and the actions of its plans."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, islice
from statistics import mode
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
from controlplane.wire.routing.cluster_actions import AssignPartition, AssignStream, SetSplitCount
from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment

NO_CAPACITY: Final = (
    "The capacity of the split nodes is neither declared nor measured: a busy minute shows"
    " it, or declare it under Split nodes"
)

# Partitions of a stream that plans redirect one by one: those of a stream with more stay in
# the round-robin.
MOST_PARTITIONS: Final = 256


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
    """The problem of a cluster, and the split nodes and partitions that its positions refer to.

    `splits`: the index of each open split node; `partitions`: each one that may move, of which a
    stream of the log has one; `held`: the indices with one that stays. `kept`: the split node of
    partitions that stay. `assignment`: the present one.
    """

    problem: AdmissionProblem
    splits: Sequence[int]
    partitions: Sequence[SourcePartition]
    held: frozenset[int]
    kept: Mapping[SourcePartition, int]
    assignment: SplitAssignment

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
    assignment: SplitAssignment,
    outlook: Outlook,
    *,
    fixed: Iterable[int] = (),
    cut: bool = False,
) -> SplitProblem:
    """Return the problem of one optimisation period, whose streams are partitions of sources.

    `assignment`: a stream without a split node has `NEW`; `fixed`: ids of streams that stay, which
    take capacity of their split nodes. `cut`: predict at most the capacity of a split node instead
    of raising `StreamTooLarge`. Raises `Conflict` no_capacity.
    """
    if not given.capacity:
        raise Conflict("no_capacity", NO_CAPACITY)
    reading = given.reading(assignment)
    known = [reading.partitions(stream.id) for stream in given.streams]
    every = _divided(predictions(given, outlook), [list(parts.values()) for parts in known])
    every = _cut(every, given.capacity) if cut else every
    ids = [place for parts in known for place in parts]
    splits = {place: assignment.of(*place) for place in ids}
    large = {stream.id for stream in given.streams if len(stream.parts) > MOST_PARTITIONS}
    staying = large.union(fixed)
    movable = np.array([place.stream not in staying for place in ids], np.bool_)
    moving = [place for place in ids if place.stream not in staying]
    open_ = sorted(set(splits.values()) - {NEW})
    place_of = {index: number for number, index in enumerate(open_)}
    owner = np.array([place_of.get(splits[place], NEW) for place in ids], np.int64)
    capacities = np.full(len(open_), given.capacity)
    np.subtract.at(capacities, owner[~movable], every.expected.max(axis=1)[~movable])
    problem = AdmissionProblem(
        given.capacity, np.maximum(capacities, 0.0), owner[movable], _rows(every, movable),
        latency=_latency(given, open_), stream_names=_names(given, moving),
        node_names=[str(index) for index in open_],
    )  # fmt: skip
    kept = {place: split for place, split in splits.items() if place.stream in staying}
    held = frozenset({*kept.values(), *(assignment.splits[stream] for stream, _ in kept)})
    kept = {place: split for place, split in kept.items() if place.stream not in large}
    return SplitProblem(problem, open_, moving, held, kept, assignment)


def _names(given: AdmissionInput, partitions: Sequence[SourcePartition]) -> list[str]:
    names = {stream.id: stream.name for stream in given.streams}
    return [names[place.stream] if place.partition is None
            else f"{place.text} of {names[place.stream]}" for place in partitions]  # fmt: skip


def _divided(every: Predictions, parts: Sequence[Sequence[float]]) -> Predictions:
    """Return the predictions of partitions; `parts`: of each stream's rate."""
    rows = np.repeat(np.arange(len(parts)), [len(own) for own in parts])
    factors = np.array([part for own in parts for part in own])
    result = _rows(every, rows)
    return replace(
        result,
        average=result.average * factors,
        forecast=result.forecast * factors[:, None],
        expected=result.expected * factors[:, None],
        cycle=None if result.cycle is None else result.cycle * factors[:, None],
    )


def plan_with_room(
    solve: Callable[[AdmissionProblem], AdmissionPlan],
    given: AdmissionInput,
    assignment: SplitAssignment,
    outlook: Outlook,
    *,
    fixed: Iterable[int] = (),
    cut: bool = False,
) -> tuple[SplitProblem, AdmissionPlan]:
    """Return the problem and its plan, after which split nodes have room for changing rates.

    Only an overload, or a split node less, is a reason for redirections. See `split_problem`.
    """
    fixed = list(fixed)
    split = split_problem(given, assignment, outlook, fixed=fixed, cut=cut)
    plan = solve(split.problem)
    if not len(plan.redirected) or not given.room:
        return split, plan
    smaller = replace(given, capacity=(1 - given.room) * given.capacity)
    try:
        roomy = solve(split_problem(smaller, assignment, outlook, fixed=fixed, cut=cut).problem)
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


def moves_of(split: SplitProblem, plan: AdmissionPlan) -> dict[SourcePartition, int]:
    """Return the split node of each redirected partition; a new one has the lowest free index."""
    targets = _targets(split, plan)
    return {split.partitions[place]: targets[place] for place in plan.redirected.tolist()}


def _targets(split: SplitProblem, plan: AdmissionPlan) -> list[int]:
    more = plan.nodes - len(split.splits)
    free = islice((index for index in count() if index not in split.splits), more)
    labels: Ints = np.array([*split.splits, *free], np.int64)
    result: list[int] = labels[plan.assignment].tolist()
    return result


def actions_of(split: SplitProblem, plan: AdmissionPlan, present: int) -> list[Action]:
    """Return the actions of a plan; `present`: the number of split nodes of the cluster.

    The number of split nodes grows before partitions are redirected, and shrinks after it.
    """
    if not len(plan.redirected):
        return []
    targets = dict(zip(split.partitions, _targets(split, plan), strict=True))
    assigned = split.assignment.partitions
    unknown = {node for place, node in assigned.items() if place not in targets}
    used = {*targets.values(), *split.held, *unknown}
    needed = 1 + max(used)
    after = _streams_after(split.assignment.splits, targets, used)
    moves: list[Action] = [
        AssignStream(stream, target)
        for stream, target in after.items()
        if split.assignment.splits[stream] != target
    ]
    # The round-robin of the others changes with the number of split nodes, too.
    default = SplitAssignment({**split.assignment.splits, **after}, assigned, needed)
    assignments = [
        AssignPartition(place.stream, place.partition, target)
        for place, target in {**split.kept, **targets}.items()
        if place.partition is not None and default.of(*place) != target
    ]
    # What is to stay where it is does so before the number changes.
    staying = [item for item in assignments if split.assignment.of(*item.place) == item.split]
    moves += [item for item in assignments if item not in staying]
    if needed > present:
        return [*staying, SetSplitCount(needed), *moves]
    count = [SetSplitCount(needed)] if needed < present else []
    return [*staying, *moves, *count]


def _streams_after(
    splits: Mapping[int, int], targets: Mapping[SourcePartition, int], used: Collection[int]
) -> dict[int, int]:
    """Return the split nodes of streams.

    That of one with several partitions stays if it is open, else it is one that reads the most.
    """
    of_stream: dict[int, list[int]] = {}
    for place, target in targets.items():
        of_stream.setdefault(place.stream, []).append(target)
    several = {place.stream for place in targets if place.partition is not None}
    return {
        stream: splits[stream] if stream in several and splits[stream] in used else mode(own)
        for stream, own in of_stream.items()
    }
