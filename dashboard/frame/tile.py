"""What pages show of a figure: a tile with its unit, trend, limit and definition, and a chip."""

from dataclasses import dataclass

from controlplane.explain.units import ValueUnit
from controlplane.numbers import with_unit


@dataclass(frozen=True)
class Chip:
    """A status in a few words with its level; `icon`: "" for that of the level."""

    text: str
    grade: str
    icon: str = ""


@dataclass(frozen=True)
class Tile:
    """A tile, as texts, with a bar of `value` up to its limit.

    `note` stands below the number, `below` below the bar. `bound`: the least value that a plan can
    reach. `top`: the value of the whole bar where no limit determines it. `grade`: warn, bad or "".
    `link`: what a click opens, "" for nothing. `term`: the label that the glossary explains, by
    default the title. `name`: the measure or figure.
    """

    title: str
    number: str
    unit: str = ""
    note: str = ""
    below: str = ""
    value: float | None = None
    limit: float | None = None
    bound: float | None = None
    top: float | None = None
    grade: str = ""
    link: str = ""
    term: str = ""
    name: str = ""

    @property
    def has_bar(self) -> bool:
        """Return True if the value has something to be compared with."""
        return self.value is not None and bool(self.limit or self.top)


def number_and_unit(value: float | None, unit: ValueUnit) -> tuple[str, str]:
    """Return the texts of a number and its unit."""
    if value is None:
        return "no data", ""
    return with_unit(value, unit)
