"""The expected rates of streams as measures before and after a plan read them."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.problem import Outlook, predictions


def expected_rates(given: AdmissionInput) -> Floats:
    """Return the expected records/s of each stream in the next periods, float64[s, k].

    Before and after a plan they are the same.
    """
    return _cached(_Held(given)) if given.streams else np.zeros((0, 1))


def split_loads(
    given: AdmissionInput, splits: Mapping[int, int], expected: Floats
) -> dict[int, Floats]:
    """Return the records/s of each open split node in the next periods, float64[k].

    `splits`: the split node of each stream; `expected` float64[s, k]: the rates of the streams.
    """
    loads: dict[int, Floats] = {}
    for stream, rates in zip(given.streams, expected, strict=True):
        index = splits[stream.id]
        loads[index] = loads[index] + rates if index in loads else rates
    return loads


class _Held:
    """An input as an argument of a cache, compared by identity."""

    def __init__(self, given: AdmissionInput) -> None:
        self.given = given

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.given is self.given


@lru_cache(maxsize=2)
def _cached(held: _Held) -> Floats:
    rates: Floats = np.asarray(predictions(held.given, Outlook()).expected)
    return rates
