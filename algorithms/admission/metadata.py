"""Meta-data of streams: the ten characteristics of section 2.4, figure 4.

The text names rate, average, minimum, maximum, peak, period, transition and burstiness. The figure
itself is not legible in the stored paper; the others are completed from the sense of the text: how
long a period stays at its high rate, and burstiness as the mean lengths of bursts and of pauses.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Self

import numpy as np

from algorithms.errors import BadProblem
from algorithms.vocabulary import is_finite


class Transition(StrEnum):
    """How the rate changes between its minimum and its maximum."""

    JUMP = "jump"
    TREND = "trend"


# Records/s and seconds beyond these are errors of input.
MAX_RATE: Final = 1e12
MAX_SECONDS: Final = 10 * 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Characteristic:
    """The declaration of a characteristic: its name, its title for people, its unit and a hint.

    `limit`: the highest number; None: one of the values of `Transition`.
    """

    name: str
    title: str
    unit: str
    hint: str
    limit: float | None


def _rate(title: str, hint: str) -> Any:
    return field(default=None, metadata={"facts": (title, "records/s", hint, MAX_RATE)})


def _seconds(title: str, hint: str) -> Any:
    return field(default=None, metadata={"facts": (title, "s", hint, MAX_SECONDS)})


@dataclass(frozen=True, slots=True)
class StreamMetadata:
    """What is known of a stream from outside; None: unknown. `CHARACTERISTICS` describes them."""

    rate: float | None = _rate("Rate at the start", "until its own rate is measured")
    average: float | None = _rate("Average", "over a period")
    minimum: float | None = _rate("Minimum", "the lowest rate of a usual period")
    maximum: float | None = _rate("Maximum", "the highest rate of a usual period")
    peak: float | None = _rate("Peak", "the highest rate that is possible at all")
    period_s: float | None = _seconds("Period", "the time after which the rate repeats")
    high_s: float | None = _seconds(
        "High part of a period", "the time near the maximum; half of the period if unknown"
    )
    transition: Transition | None = field(
        default=None,
        metadata={
            "facts": ("Transition", "", "how the rate changes between minimum and maximum", None)
        },
    )
    burst_s: float | None = _seconds("Burst", "the mean length of a burst")
    pause_s: float | None = _seconds("Pause", "the mean time between two bursts")

    def __post_init__(self) -> None:
        fault = next(self.faults(), None)
        if fault is not None:
            raise BadProblem(*fault)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the reason of each invalid or contradictory characteristic."""
        values = self.numbers()
        for name, value in values.items():
            limit = MAX_SECONDS if name.endswith("_s") else MAX_RATE
            if not (is_finite(value) and 0 <= value <= limit):
                yield name, f"must be a number from 0 to {limit:g}, not {value!r}"
        for lower, upper in _ORDERED:
            low, high = values.get(lower), values.get(upper)
            if low is not None and high is not None and low > high:
                yield lower, f"must be at most {upper} ({high:g}), not {low:g}"

    def numbers(self) -> dict[str, float]:
        """Return the known characteristics that are numbers."""
        return {name: value for name in _NUMBERS if (value := getattr(self, name)) is not None}

    @property
    def largest(self) -> float | None:
        """Return the highest known records/s: the peak, else the maximum."""
        return self.peak if self.peak is not None else self.maximum

    def to_json(self) -> dict[str, Any]:
        """Return the known characteristics."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, row: object, where: str = "meta") -> Self:
        """Return the characteristics of a JSON object. Raises `BadProblem` with the place."""
        known = _NAMES
        if not isinstance(row, Mapping):
            raise BadProblem(where, f"must be an object with some of {', '.join(known)}")
        unknown = [str(name) for name in row if name not in known]
        if unknown:
            raise BadProblem(f"{where}.{unknown[0]}", f"is unknown; known: {', '.join(known)}")
        values = {name: _value(where, name, value) for name, value in row.items()}
        try:
            return cls(**values)
        except BadProblem as bad:
            raise BadProblem(f"{where}.{bad.where}", bad.why) from None

    def with_defaults(self, others: "StreamMetadata") -> "StreamMetadata":
        """Return the characteristics with those of `others` where they are unknown.

        A default that contradicts a known characteristic is left out.
        """
        result = self
        for item in fields(self):
            if getattr(self, item.name) is None and (value := getattr(others, item.name)):
                try:
                    result = replace(result, **{item.name: value})
                except BadProblem:
                    continue
        return result


CHARACTERISTICS: Final = tuple(
    Characteristic(item.name, *item.metadata["facts"]) for item in fields(StreamMetadata)
)
_NAMES: Final = tuple(item.name for item in CHARACTERISTICS)
_NUMBERS: Final = tuple(item.name for item in CHARACTERISTICS if item.limit is not None)
# The first of each pair is at most the second.
_ORDERED: Final = (
    ("minimum", "average"), ("average", "maximum"), ("minimum", "maximum"), ("maximum", "peak"),
    ("average", "peak"), ("rate", "peak"), ("high_s", "period_s"),
)  # fmt: skip


def _value(where: str, name: str, value: object) -> Any:
    if value is None:
        return None
    if name == "transition":
        if value not in tuple(Transition):
            names = ", ".join(Transition)
            raise BadProblem(f"{where}.{name}", f"must be one of {names}, not {value!r}")
        return Transition(str(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProblem(f"{where}.{name}", f"must be a number, not {value!r}")
    return float(value)


def averages(known: Sequence[StreamMetadata]) -> StreamMetadata:
    """Return the average of each rate over the streams that have it: the default of new streams.

    Section 2.4: "default values of these characteristics that are based on average observations
    among existing streams". Periods and transitions of other streams do not hold for a new one.
    """
    result = StreamMetadata()
    for name in ("rate", "average", "minimum", "maximum", "peak"):
        values = [value for stream in known if (value := getattr(stream, name)) is not None]
        if not values:
            continue
        row: dict[str, Any] = {name: float(np.mean(values))}
        try:
            result = replace(result, **row)
        except BadProblem:
            # Averages over different streams may contradict each other.
            continue
    return result
