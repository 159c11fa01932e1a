"""The smoothing factors of Holt's method, fitted on history by statsmodels."""

import warnings
from typing import Final

import numpy as np

from algorithms.optional import optional_module
from algorithms.vocabulary import Floats

# The factors of streams whose history is too short to fit.
ALPHA: Final = 0.5
GAMMA: Final = 0.1
# Observations from which on a fit means something.
LEAST: Final = 10


def fitted_factors(history: Floats) -> tuple[Floats, Floats]:
    """Return alpha and gamma of each stream, float64[s] each, with the least squared errors.

    `history` float64[s, t]: rates, oldest first; NaN: no observation. The first observation is the
    first level, with no trend, as in section 2.3. A stream with fewer than `LEAST` observations, or
    with one rate only, has the default factors.
    """
    count = len(history)
    alpha, gamma = np.full(count, ALPHA), np.full(count, GAMMA)
    for stream, row in enumerate(history):
        rates = row[~np.isnan(row)]
        if len(rates) < LEAST or np.ptp(rates) == 0:
            continue
        # A scale of 1 for the optimiser, whatever the rates are.
        alpha[stream], gamma[stream] = _fit(rates / np.abs(rates).mean())
    return alpha, gamma


def _fit(rates: Floats) -> tuple[float, float]:
    # Its import takes a second, and most processes fit nothing.
    exceptions = optional_module("statsmodels.tools.sm_exceptions")
    smoothing = optional_module("statsmodels.tsa.holtwinters")
    model = smoothing.Holt(
        rates, initialization_method="known", initial_level=float(rates[0]), initial_trend=0.0
    )
    with warnings.catch_warnings():
        # The best factors that were found are good enough.
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        parameters = model.fit(optimized=True, use_brute=True).params
    return (
        float(np.clip(parameters["smoothing_level"], 0.0, 1.0)),
        float(np.clip(parameters["smoothing_trend"], 0.0, 1.0)),
    )
