"""What scenarios move and how many times as many records they need to exceed a limit.

Computed from the loads of the cluster, so that a scenario has the same effect on every machine and
at every hour of a demonstration.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np
from django.db.models import Min, Q
from django.utils import timezone

from algorithms.balance import imbalance
from algorithms.vocabulary import Ints
from controlplane.catalog.split_reading import reading_of
from controlplane.errors import Conflict
from controlplane.models import Cluster, Scenario, Stream, Task
from controlplane.planning.load_model import LoadModel
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.plan import TaskMove
from controlplane.policies.store import policy_of
from controlplane.telemetry.arrivals import rates_between
from controlplane.wire.routing.query_actions import MoveTasks

ALL_STREAMS: Final = "*"
# So many times its limit is what exceeds it clearly.
CLEARLY: Final = 1.8
# One of so many queries of the other nodes gathers on one node.
GATHERED: Final = 2
# The mean load of an overloaded cluster, as a share of its capacity: its fullest node, which may
# have twice as much, still works off what waits within minutes once a shedding plan is enabled.
OVERLOADED: Final = 1.25
# A split node with a growing stream: its capacity over the rates of its other streams, and the
# grown stream over that capacity. Another split node can read the stream alone, with room to catch
# up, and the open ones what they read.
ROOM: Final = 1.6
ROOM_OF_OTHERS: Final = 1.15
GROWN: Final = 0.7
_LEAST_RATE: Final = 0.01
# A hot stream has at least one of so many records: rarer ones come in bursts.
_SHARES: Final = 200
# Rates show a scenario for so long after its end, and are those of so long before its start.
_SETTLES: Final = timedelta(minutes=3)
_BEFORE: Final = timedelta(minutes=2)


@dataclass(frozen=True)
class DisturbedPlacement:
    """Moves of queries, the nodes that they leave, and factors of streams' records, by name."""

    moves: Sequence[MoveTasks]
    nodes: Sequence[int]
    factors: Mapping[str, float]


@dataclass(frozen=True)
class GrownStream:
    """A stream, how many times as many records it gets, and what each split node can read then.

    `capacity`: 0 for as before.
    """

    name: str
    factor: float
    capacity: float = 0.0


def uneven_moves(cluster: Cluster, node: int) -> DisturbedPlacement:
    """Return moves of every second query of one task to a node, and the factor for an alarm."""
    model = _model(cluster)
    target = int(np.flatnonzero(model.indices == node)[0])
    movable = np.flatnonzero(model.nodes[: len(model.ids)] != target)[::GATHERED]
    moves, after = _moved(model, movable, np.full(len(movable), target))
    factor = _factor(_imbalance(after), CLEARLY * policy_of(cluster).watch_imbalance)
    return DisturbedPlacement(moves, (), {ALL_STREAMS: factor})


def scattered_from(cluster: Cluster) -> DisturbedPlacement:
    """Return moves of all tasks from the second half of the active nodes to the first half.

    The streams that queries on the fewest nodes read get so many records that tasks which read them
    there make the nodes uneven once the others are back: moving these tasks moves the records, too.
    """
    model = _model(cluster)
    active = cluster.nodes.filter(active=True, index__lt=cluster.slots).order_by("index")
    places = np.searchsorted(model.indices, list(active.values_list("index", flat=True)))
    stay, leave = places[: -(-len(places) // 2)], places[-(-len(places) // 2) :]
    if not len(leave):
        raise Conflict("no_such_node", f"{cluster.name} has no second node that could leave")
    movable = np.flatnonzero(np.isin(model.nodes, leave))
    moves, after = _moved(model, movable, np.resize(stay, len(movable)))
    nodes = dict(zip(after.streams.tolist(), (after.readers > 0).sum(axis=0).tolist(), strict=True))
    rare = _rarely_read(cluster, nodes)
    excess = CLEARLY * policy_of(cluster).watch_imbalance - _imbalance(after)
    rate = excess * model.capacities[stay].mean() / (1 / len(stay) - 1 / len(places))
    factor = round(1 + max(0.0, float(rate)) / _weight(rare), 2)
    left = model.indices[leave].tolist()
    return DisturbedPlacement(moves, left, {stream.name: factor for stream in rare})


def overload_factor(cluster: Cluster) -> float:
    """Return how many times as many records overload all nodes together."""
    model = _model(cluster)
    return _factor(float((model.loads / model.capacities).mean()), OVERLOADED)


def grown_stream(cluster: Cluster) -> GrownStream:
    """Return the busiest stream that shares its split node, grown beyond what that can read."""
    by_split: dict[int, dict[str, float]] = {}
    shares = reading_of(cluster).shares()
    for stream in _streams(cluster):
        for split, part in shares[stream.pk].items():
            by_split.setdefault(split, {})[stream.name] = part * stream.weight
    shared = [loads for loads in by_split.values() if len(loads) > 1]
    if not shared:
        raise Conflict("no_stream", f"No two streams of {cluster.name} share a split node")
    loads = max(shared, key=lambda own: sum(own.values()))
    busiest = max(loads, key=lambda name: loads[name])
    rest = sum(loads.values()) - loads[busiest]
    others = [sum(own.values()) for own in by_split.values() if own is not loads]
    capacity = round(max(ROOM * rest, ROOM_OF_OTHERS * max(others, default=0.0), 1.0), 1)
    return GrownStream(busiest, _factor(loads[busiest], GROWN * capacity), capacity)


def _weight(streams: Sequence[Stream]) -> float:
    return sum(stream.weight for stream in streams)


def hot_stream(cluster: Cluster) -> GrownStream:
    """Return a stream whose further records, all of one key, make any node too full by their task.

    Few queries read it: their nodes get the records, too, wherever the task of the key is. Raises
    `Conflict` no_stream, no_such_node.
    """
    model = _model(cluster)
    active = cluster.nodes.filter(active=True).values_list("index", flat=True)
    places = np.flatnonzero(np.isin(model.indices, list(active)))
    if len(places) < 2:  # noqa: PLR2004 - between two nodes
        raise Conflict("no_such_node", f"{cluster.name} has no second node for records of the key")
    streams = _streams(cluster)
    least = _weight(streams) / _SHARES
    known = [stream for stream in streams if stream.weight > 0 and stream.weight >= least]
    if not known:
        raise Conflict("no_stream", f"No stream of {cluster.name} has records")
    readers = Task.objects.filter(query__cluster=cluster, query__task_count=1)
    pairs = readers.values_list("query__streams", "node").distinct()
    nodes = Counter(stream for stream, _ in pairs)
    chosen = min(known, key=lambda stream: (nodes[stream.pk], -stream.weight))
    shares = model.loads[places] / model.capacities[places]
    excess = CLEARLY * policy_of(cluster).watch_imbalance + shares.mean() - shares
    rate = (excess * model.capacities[places]).max() * len(places) / (len(places) - 1)
    return GrownStream(chosen.name, round(1 + float(rate) / chosen.weight, 2))


def _rarely_read(cluster: Cluster, nodes: Mapping[int, int]) -> list[Stream]:
    """Return the streams that the fewest nodes read and that have some records together.

    `nodes`: the number of nodes by stream. Raises `Conflict` no_stream.
    """
    streams = _streams(cluster)
    known = [stream for stream in streams if stream.weight > 0]
    for most in sorted({nodes.get(stream.pk, 0) for stream in known}):
        chosen = [stream for stream in known if nodes.get(stream.pk, 0) <= most]
        if _weight(chosen) >= _weight(streams) / _SHARES:
            return chosen
    raise Conflict("no_stream", f"No stream of {cluster.name} has records")


def _imbalance(model: LoadModel) -> float:
    return imbalance(model.loads / model.capacities)


def _streams(cluster: Cluster) -> list[Stream]:
    """Return the streams with their rates before the scenarios that their rates still show."""
    rows = Stream.objects.filter(cluster=cluster).only("name", "split", "rate", "declared_rate")
    streams, now = list(rows), timezone.now()
    own, first, shown_from = Scenario.objects.filter(cluster=cluster), now, now - _SETTLES
    # The rates before a scenario may still show an earlier one.
    while began := own.filter(
        Q(ended_at=None) | Q(ended_at__gt=shown_from), started_at__lt=first
    ).aggregate(first=Min("started_at"))["first"]:
        first, shown_from = began, began - _BEFORE - _SETTLES
    if first < now:
        known = rates_between(cluster, first - _BEFORE, first, [row.pk for row in streams]).means
        for stream in streams:
            stream.rate = known.get(stream.pk, stream.rate)
    return streams


def _model(cluster: Cluster) -> LoadModel:
    model = LoadModel.of(take_snapshot(cluster.pk, cluster.nu))
    weights = {stream.pk: stream.weight for stream in _streams(cluster)}
    offered = np.array([weights[stream] for stream in model.streams.tolist()], np.float64)
    return replace(model, offered=offered, rates=model.rates / model.offered * offered)


def _moved(model: LoadModel, units: Ints, targets: Ints) -> tuple[Sequence[MoveTasks], LoadModel]:
    """Return the moves of units, and the loads after them."""
    names = [(int(query), 0) for query in model.ids] + list(model.tasks)
    indices, moves = model.indices.tolist(), []
    for unit, place in zip(units.tolist(), targets.tolist(), strict=True):
        query, task = names[unit]
        moves.append(TaskMove(query, task, indices[int(model.nodes[unit])], indices[place]))
    return [move.action for move in moves], model.with_moves(moves)


def _factor(value: float, wanted: float) -> float:
    return round(max(1.0, wanted / max(value, _LEAST_RATE)), 2)
