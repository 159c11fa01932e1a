"""The forecaster of each stream: its choice as stored with the stream, and the forecasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.admission.forecasting.fit import ALPHA, GAMMA
from algorithms.admission.forecasting.holt import smoothed
from algorithms.admission.forecasting.selection import Forecaster, naive, seasonal
from algorithms.vocabulary import Floats
from controlplane.formats.json_values import JsonValue

HOLT: Final = "holt"
NAIVE: Final = "naive"
SEASONAL: Final = "seasonal"


@dataclass(frozen=True, slots=True)
class ForecasterChoice(JsonValue):
    """The method of a stream: holt, naive or seasonal.

    `alpha`, `gamma`: the smoothing factors of Holt's method; `season`: periods of a season.
    `error`: the mean absolute error of the back-test in records/s, None: not tested.
    """

    method: str = HOLT
    alpha: float = ALPHA
    gamma: float = GAMMA
    season: int = 0
    error: float | None = None


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of s streams in the next k periods: records/s and standard deviations.

    `rates`, `deviations` float64[s, k].
    """

    rates: Floats
    deviations: Floats


def forecasts(history: Floats, choices: Sequence[ForecasterChoice], horizon: int) -> Forecasts:
    """Return the forecasts of streams with a history float64[s, t], oldest first.

    NaN: no rate is known. A stream without any known rate has the forecast 0.
    """
    result = Forecasts(np.zeros((len(history), horizon)), np.zeros((len(history), horizon)))
    known = np.flatnonzero(~np.isnan(history).all(axis=1)) if history.size else np.zeros(0, int)
    groups: dict[tuple[str, int], list[int]] = {}
    for place in known.tolist():
        groups.setdefault(_group(choices[place], history[place]), []).append(place)
    for (method, season), listed in groups.items():
        places = np.array(listed, np.int64)
        state = _state(method, season, history[places], [choices[place] for place in listed])
        result.rates[places] = state.forecast(horizon)
        result.deviations[places] = state.deviation(horizon)
    return result


def _group(choice: ForecasterChoice, history: Floats) -> tuple[str, int]:
    """Return method and season; Holt's method where the history is too short for the choice."""
    if choice.method == HOLT or np.isnan(history).any():
        return HOLT, 0
    if choice.method == SEASONAL and not 0 < choice.season < len(history):
        return HOLT, 0
    return choice.method, choice.season if choice.method == SEASONAL else 0


def _state(
    method: str, season: int, history: Floats, choices: Sequence[ForecasterChoice]
) -> Forecaster:
    if method == NAIVE:
        return naive(history)
    if method == SEASONAL:
        return seasonal(season)(history)
    alpha = np.array([choice.alpha for choice in choices])
    gamma = np.array([choice.gamma for choice in choices])
    return smoothed(history, alpha, gamma)


def merged(history: Floats, periods: int) -> Floats:
    """Return the means of `periods` consecutive rates each, the newest ones complete.

    A mean with an unknown rate is unknown.
    """
    count = history.shape[1] // periods
    newest = history[:, history.shape[1] - count * periods :]
    means: Floats = newest.reshape(len(history), count, periods).mean(axis=2)
    return means


def matrix_of(rates: Sequence[Sequence[float | None]]) -> Floats:
    """Return rates as float64[s, t], right-aligned; None and missing ones are NaN."""
    longest = max(map(len, rates), default=0)
    matrix = np.full((len(rates), longest), np.nan)
    for place, row in enumerate(rates):
        if row:
            matrix[place, longest - len(row) :] = np.array(row, np.float64)
    return matrix
