"""The JSON form of admission problems and plans."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final

import numpy as np

from algorithms.admission.forecasting.fit import ALPHA, GAMMA, fitted_factors
from algorithms.admission.forecasting.holt import HoltState, smoothed
from algorithms.admission.metadata import MAX_RATE, StreamMetadata, averages
from algorithms.admission.planner import Forecasting
from algorithms.admission.prediction import (
    MetadataColumns,
    Predictions,
    expectations,
    expected_cycle,
)
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem
from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.lab.admission.bounds import Bounds, bounds
from algorithms.lab.json_values import object_fields
from algorithms.vocabulary import Floats, is_finite

# Observations of one stream.
MAX_HISTORY: Final = 100_000


@dataclass(frozen=True)
class StreamRow:
    """A stream of the input: its past rates, oldest first, and its meta-data."""

    name: str
    history: Floats
    metadata: StreamMetadata


def problem_from_json(data: object, forecasting: Forecasting) -> AdmissionProblem:
    """Return the problem of a JSON object. Raises `BadProblem` with the place, `StreamTooLarge`."""
    row = object_fields(data, ("capacity", "nodes", "streams"), ("new",))
    capacity = _capacity(row["capacity"])
    streams = [_stream(name, value) for name, value in _mapping("streams", row["streams"]).items()]
    nodes = _mapping("nodes", row["nodes"])
    owner = _owners(streams, nodes, row.get("new", []))
    predictions = _predictions(streams, capacity, forecasting)
    return AdmissionProblem(
        capacity,
        np.full(len(nodes), capacity),
        owner,
        predictions,
        stream_names=[stream.name for stream in streams],
        node_names=list(nodes),
    )


def _capacity(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProblem("capacity", f"must be a number, not {value!r}")
    if not (is_finite(value) and 0 < value <= MAX_RATE):
        raise BadProblem("capacity", f"must be above 0 and at most {MAX_RATE:g}, not {value!r}")
    return float(value)


def _mapping(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadProblem(where, "must be an object")
    return value


def _stream(name: str, value: object) -> StreamRow:
    where = f"streams.{name}"
    row = _mapping(where, value)
    unknown = [key for key in row if key not in ("history", "meta")]
    if unknown:
        raise BadProblem(f"{where}.{unknown[0]}", "is unknown; known: history, meta")
    history = amounts(f"{where}.history", row.get("history", []))
    if len(history) > MAX_HISTORY:
        raise BadProblem(f"{where}.history", f"has more than {MAX_HISTORY:,} rates")
    metadata = StreamMetadata.from_json(row.get("meta", {}), f"{where}.meta")
    return StreamRow(name, history, metadata)


def _owners(streams: Sequence[StreamRow], nodes: Mapping[str, Any], new: object) -> Any:
    places = {stream.name: place for place, stream in enumerate(streams)}
    owner = np.full(len(streams), NEW, np.int64)
    given: dict[str, str] = {}
    for number, (node, names) in enumerate(nodes.items()):
        for name in _names(f"nodes.{node}", names, places):
            if name in given:
                raise BadProblem(f"nodes.{node}", f"stream {name} is on {given[name]} as well")
            given[name] = node
            owner[places[name]] = number
    for name in _names("new", new, places):
        if name in given:
            raise BadProblem("new", f"stream {name} is on {given[name]} already")
        given[name] = "new"
    missing = [stream.name for stream in streams if stream.name not in given]
    if missing:
        raise BadProblem(f"streams.{missing[0]}", "is neither on a node nor in new")
    return owner


def _names(where: str, value: object, known: Mapping[str, int]) -> Sequence[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadProblem(where, "must be a list of names of streams")
    for name in value:
        if name not in known:
            raise BadProblem(where, f"stream {name!r} is unknown")
    return value


def _predictions(
    streams: Sequence[StreamRow], capacity: float, forecasting: Forecasting
) -> Predictions:
    """Return the predictions; streams without history have the average rate of the others."""
    longest = max((len(stream.history) for stream in streams), default=0)
    history = np.full((len(streams), longest), np.nan)
    for place, stream in enumerate(streams):
        history[place, longest - len(stream.history) :] = stream.history
    seen = np.array([len(stream.history) > 0 for stream in streams], np.bool_)
    average, forecast = _first_rates(streams, seen, history, forecasting.horizon)
    if seen.any():
        average[seen] = history[seen, -1]
        forecast[seen] = _state(history[seen], forecasting).forecast(forecasting.horizon)
    columns = MetadataColumns.of([stream.metadata for stream in streams])
    expected, known = expectations(history, forecast, columns, forecasting.period_s)
    cycle = expected_cycle(history, forecast, columns, forecasting.period_s)
    return Predictions(average, forecast, expected, known, cycle)


def _state(history: Floats, forecasting: Forecasting) -> HoltState:
    fitted: tuple[Floats | float, Floats | float] = (ALPHA, GAMMA)
    if forecasting.alpha is None or forecasting.gamma is None:
        fitted = fitted_factors(history)
    alpha = fitted[0] if forecasting.alpha is None else forecasting.alpha
    gamma = fitted[1] if forecasting.gamma is None else forecasting.gamma
    return smoothed(history, alpha, gamma)


def _first_rates(
    streams: Sequence[StreamRow], seen: Any, history: Floats, horizon: int
) -> tuple[Floats, Floats]:
    """Return the average and the forecast of streams without history, by their meta-data.

    Unknown characteristics are averages over the other streams (section 2.4).
    """
    others = [
        StreamMetadata(rate=float(history[place, -1]), average=float(history[place, -1]))
        for place in np.flatnonzero(seen).tolist()
    ]
    usual = averages(others)
    rates = np.zeros(len(streams))
    for place, stream in enumerate(streams):
        known = stream.metadata
        first = known.rate if known.rate is not None else known.average
        if first is None:
            limit = known.largest
            usual_rate = usual.average or 0.0
            first = usual_rate if limit is None else min(limit, usual_rate)
        rates[place] = first
    return rates, np.repeat(rates[:, None], horizon, axis=1)


def plan_to_json(problem: AdmissionProblem, plan: AdmissionPlan) -> dict[str, Any]:
    """Return moves, opened and closed nodes, the assignment, and the forecast of each stream."""
    names = [*problem.node_names, *_new_names(problem.node_names, plan.nodes - problem.nodes)]
    streams = list(problem.stream_names)
    return {
        "moves": [
            [streams[s], names[problem.owner[s]], names[plan.assignment[s]]]
            for s in plan.redirected.tolist()
        ],
        "opened": names[problem.nodes :],
        "closed": [names[node] for node in plan.closed],
        "assignment": {
            name: names[node] for name, node in zip(streams, plan.assignment.tolist(), strict=True)
        },
        "forecast": dict(zip(streams, problem.predictions.forecast.tolist(), strict=True)),
    }


def _new_names(taken: Sequence[str], wanted: int) -> list[str]:
    """Return names n<number> that no node has, the smallest numbers above the number of nodes."""
    used = set(taken)
    names: list[str] = []
    for number in count(len(taken) + 1):
        if len(names) == wanted:
            break
        if f"n{number}" not in used:
            names.append(f"n{number}")
    return names


@dataclass(frozen=True, eq=False)
class BinProblem:
    """Items that are packed into bins of one capacity."""

    capacity: float
    items: Floats

    def bounds(self) -> Bounds:
        """Return lower bounds of the number of bins, and the optimum where the search finds it."""
        return bounds(self.capacity, self.items)


def bins_from_json(data: object) -> BinProblem:
    """Return the bin packing problem of a JSON object. Raises `BadProblem`."""
    row = object_fields(data, ("capacity", "items"))
    return BinProblem(_capacity(row["capacity"]), amounts("items", row["items"]))


def bounds_to_json(values: Bounds) -> dict[str, Any]:
    """Return the bounds; `optimum` only where the search finds it."""
    return {name: value for name, value in asdict(values).items() if value is not None}
