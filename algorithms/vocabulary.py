"""Words that all planners share: array types, progress, and self-describing parameters."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate, ProblemSize

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Flags = NDArray[np.bool_]

# A number, or a number with the numbers of random streams: (seed, 1) and (seed, 2) are independent
# of each other and of seed.
Seed = int | tuple[int, ...]

Kind = Literal["offline", "online"]
# Called with the share done, ascending from 0 to 1. Its exceptions stop the algorithm.
Progress = Callable[[float], None]


def silent(share: float) -> None:
    """Ignore the progress: the default of every algorithm."""


def portion(progress: Progress, first: float, share: float) -> Progress:
    """Return a progress from 0 to 1 that is `share` of another one, from `first` on."""
    return lambda done: progress(min(1.0, first + share * done))


# Seeds that every generator of random numbers takes, and every database stores.
MAX_SEED: Final = 2**32 - 1
# With a slack of 1 a node may have twice its share; more than ten times is not a balance at all.
MAX_SLACK: Final = 10.0

Value = bool | int | float | str | None

_WORDS: Final[dict[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}
_TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclasses.dataclass(frozen=True, slots=True)
class ParameterField:
    """One parameter as a form, an API schema or a command line shows it.

    `title`: its label, by default the words of its name. `letter`: its letter in the paper.
    `optional`: None is a value too, and the help explains it. `choices`: the values of a text;
    `choice_titles`: their titles in the same order, by default their words.
    Raises `TypeError` for a number without bounds and for a text without choices: the declaration
    bounds what a request may cost.
    """

    name: str
    type: type[bool] | type[int] | type[float] | type[str]
    default: Value
    unit: str
    help: str
    title: str = ""
    letter: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    choice_titles: tuple[str, ...] = ()
    optional: bool = False

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", title_of_name(self.name))
        if not self.choice_titles:
            object.__setattr__(self, "choice_titles", tuple(map(title_of_name, self.choices)))
        if self.type in (int, float) and None in (self.minimum, self.maximum):
            raise TypeError(f"{self.name}: a number needs a minimum and a maximum")
        if self.type is str and not self.choices:
            raise TypeError(f"{self.name}: a text needs choices")

    @property
    def titled_choices(self) -> tuple[tuple[str, str], ...]:
        """Return the values of a text with their titles."""
        return tuple(zip(self.choices, self.choice_titles, strict=True))

    def problem_with(self, value: object) -> str | None:
        """Return the reason why `value` is invalid, None if it is valid."""
        if value is None and self.optional:
            return None
        if not _is_of(value, self.type):
            return f"must be {_WORDS[self.type]}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r}"
        if self.minimum is not None and cast("float", value) < self.minimum:
            return f"must be at least {self.minimum:g}, not {value:g}"
        if self.maximum is not None and cast("float", value) > self.maximum:
            return f"must be at most {self.maximum:g}, not {value:g}"
        return None

    def parsed(self, text: str) -> Value:
        """Return the value of a text. Raises `ValueError` on other texts."""
        plain = text.strip()
        if self.optional and plain.lower() in ("", "none", "null"):
            return None
        try:
            return _TRUTHS[plain.lower()] if self.type is bool else self.type(plain)
        except (KeyError, ValueError):
            raise ValueError(f"must be {_WORDS[self.type]}, not {plain!r}") from None


def title_of_name(name: str) -> str:
    """Return the title of what is declared without one: the words of its name."""
    return name.replace("_", " ").capitalize()


def parameter(
    default: Value,
    *,
    title: str = "",
    letter: str = "",
    unit: str = "",
    help: str,  # noqa: A002 - the word that forms and argparse use for it
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | Mapping[str, str] = (),
) -> Any:
    """Declare a field of a `Parameters` class; its annotation is the type.

    `float | None` and the like make it optional. `title`: its label, needed where the words of its
    name are not plain. `letter`: its letter in the paper. `choices`: the values of a text, with
    their titles where the words of a value are not plain.
    """
    texts = {"title": title, "letter": letter, "unit": unit, "help": help}
    titles = tuple(choices.values()) if isinstance(choices, Mapping) else ()
    named = {"choices": tuple(choices), "choice_titles": titles}
    bounds = {"minimum": minimum, "maximum": maximum, **named}
    return dataclasses.field(default=default, metadata={**texts, **bounds})


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
        return tuple(_describe_field(field) for field in dataclasses.fields(cls))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build the parameters from JSON-like values; missing ones take their defaults.

        Raises `BadParameters` on unknown names, wrong types and values out of range.
        """
        known = {field.name: field for field in cls.fields()}
        unknown = {name: ["is not a parameter"] for name in values if name not in known}
        if unknown:
            raise BadParameters(unknown)
        return cls(**{name: _cast(value, known[name].type) for name, value in values.items()})

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate of the algorithm with these parameters on a cluster of this size.

        For most algorithms it follows from the size; those with rounds or a time limit override it.
        """
        entries = size.queries + size.readings + size.streams
        return Estimate(8_000.0 * entries + 8.0 * size.nodes**2, 2e-4 * entries)

    def to_mapping(self) -> dict[str, Any]:
        """Return the values by name, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in self.fields()}


def _describe_field(field: "dataclasses.Field[Any]") -> ParameterField:
    # A union such as `float | None` has no name of its own but prints as it is written.
    written = field.type.__name__ if isinstance(field.type, type) else str(field.type)
    kind, _, rest = written.partition(" | ")
    return ParameterField(
        name=field.name,
        type=_KINDS[kind],
        default=cast("Value", field.default),
        optional=rest == "None",
        **field.metadata,
    )


_KINDS: Final[dict[str, Any]] = {kind.__name__: kind for kind in (bool, int, float, str)}


def _is_of(value: object, kind: type) -> bool:
    if kind in (bool, str):
        return isinstance(value, kind)
    if isinstance(value, bool):
        return False
    allowed = int if kind is int else (int, float)
    return isinstance(value, allowed) and is_finite(value)


def is_finite(number: float) -> bool:
    """Return whether a number is finite and not too large for a float."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _cast(value: Any, kind: type) -> Any:
    # In JSON 10 and 10.0 are equal; a form's float field may send the former.
    return float(value) if kind is float and _is_of(value, float) else value
