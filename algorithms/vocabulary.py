"""Words that all planners share: array types, progress, and self-describing parameters."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from algorithms.errors import BadParameters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Flags = NDArray[np.bool_]

Kind = Literal["offline", "online"]
# Called with the share done, 0 to 1 and never falling. What it raises stops the algorithm.
Progress = Callable[[float], None]

_METADATA: Final = "parameter"
_NUMBERS: Final[dict[type, str]] = {int: "a whole number", float: "a number"}


@dataclasses.dataclass(frozen=True, slots=True)
class ParameterField:
    """One parameter as a form, an API schema or a command line shows it."""

    name: str
    type: type[int] | type[float]
    default: float
    unit: str
    help: str
    minimum: float | None
    maximum: float | None

    def problem_with(self, value: object) -> str | None:
        """Say what is wrong with `value`, or return None when nothing is."""
        if not _is_number(value, self.type):
            return f"must be {_NUMBERS[self.type]}, not {value!r}"
        number = cast("float", value)
        if self.minimum is not None and number < self.minimum:
            return f"must be at least {self.minimum:g}, not {number:g}"
        if self.maximum is not None and number > self.maximum:
            return f"must be at most {self.maximum:g}, not {number:g}"
        return None


def parameter(
    default: float,
    *,
    unit: str,
    help: str,  # noqa: A002 - the word that forms and argparse use for it
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Declare a field of a `Parameters` class."""
    about = {"unit": unit, "help": help, "minimum": minimum, "maximum": maximum}
    return dataclasses.field(default=default, metadata={_METADATA: about})


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Base of every algorithm's parameters: frozen, documented field by field, self-validating.

    Raises `BadParameters` with all faulty fields when one is made with values out of range.
    """

    def __post_init__(self) -> None:
        faults = {
            field.name: [fault]
            for field in self.fields()
            if (fault := field.problem_with(getattr(self, field.name)))
        }
        if faults:
            raise BadParameters(faults)

    @classmethod
    def fields(cls) -> tuple[ParameterField, ...]:
        """Return the parameters in the order in which a form should show them."""
        return tuple(_described(field) for field in dataclasses.fields(cls))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build the parameters from JSON-like values; what is left out takes its default.

        Raises `BadParameters` on unknown names, wrong types and values out of range.
        """
        known = {field.name: field for field in cls.fields()}
        unknown = {name: ["is not a parameter"] for name in values if name not in known}
        if unknown:
            raise BadParameters(unknown)
        return cls(**{name: _cast(value, known[name].type) for name, value in values.items()})

    def to_mapping(self) -> dict[str, float]:
        """Return the values by name, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in self.fields()}


def _described(field: "dataclasses.Field[Any]") -> ParameterField:
    kind = float if field.type in (float, "float") else int
    default = cast("float", field.default)
    return ParameterField(field.name, kind, default, **field.metadata[_METADATA])


def _is_number(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return False
    allowed = int if kind is int else (int, float)
    return isinstance(value, allowed) and math.isfinite(value)


def _cast(value: Any, kind: type) -> Any:
    # JSON does not tell 10 from 10.0; a form's float field may well send the former.
    return float(value) if kind is float and _is_number(value, float) else value
