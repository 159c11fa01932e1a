"""The columns of a stream that are its coordinates, as declared in its meta-data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controlplane.catalog.computations import schema_of
from controlplane.errors import Fields
from controlplane.models import Stream
from controlplane.wire.language.tree import NUMBERS

# The label of a stream's meta-data with the columns: {"east": …, "north": …}.
LABEL: Final = "coordinates"


@dataclass(frozen=True)
class Coordinates:
    """The columns with the place of a record: `east` grows to the east, `north` to the north."""

    east: str
    north: str

    def to_json(self) -> dict[str, str]:
        """Return the columns as JSON values."""
        return {"east": self.east, "north": self.north}


def coordinates_of(stream: Stream) -> Coordinates | None:
    """Return the declared coordinates of a stream, None without correct ones."""
    declared = stream.meta.get(LABEL)
    if not isinstance(declared, Mapping):
        return None
    coordinates = Coordinates(str(declared.get("east", "")), str(declared.get("north", "")))
    return None if faults(stream, coordinates) else coordinates


def faults(stream: Stream, coordinates: Coordinates) -> Fields:
    """Return what is wrong with coordinates by field: both are different columns of numbers."""
    schema = schema_of(stream.schema)
    kinds: Mapping[str, Any] = {} if schema is None else schema.kinds
    wrong: Fields = {
        name: [f"The stream has no column of numbers {column[:100]}"]
        for name, column in coordinates.to_json().items()
        if kinds.get(column) not in NUMBERS
    }
    if not wrong and coordinates.east == coordinates.north:
        wrong["north"] = ["Name another column than for the east"]
    return wrong
