"""The expected rates of streams as measures before and after a plan read them."""

from functools import lru_cache

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.problem import Outlook, predictions
from controlplane.wire.routing.split_assignment import SplitAssignment


def expected_rates(given: AdmissionInput) -> Floats:
    """Return the expected records/s of each stream in the next periods, float64[s, k].

    Before and after a plan they are the same.
    """
    return _cached(_Held(given)) if given.streams else np.zeros((0, 1))


def split_loads(
    given: AdmissionInput, assignment: SplitAssignment, expected: Floats
) -> dict[int, Floats]:
    """Return the records/s of each open split node in the next periods, float64[k].

    `expected` float64[s, k]: the rates of the streams.
    """
    loads: dict[int, Floats] = {}
    shares = given.reading(assignment).shares()
    for stream, rates in zip(given.streams, expected, strict=True):
        for index, part in shares[stream.id].items():
            loads[index] = loads.get(index, 0.0) + part * rates
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
