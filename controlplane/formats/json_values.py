"""Values that are stored as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class JsonValue:
    """A value whose fields are stored by their names."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the value that `to_json` wrote, with the defaults of fields that it left out."""
        return cls(**row)
