"""What the planner observes: how long queries have been running."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self


@dataclass(frozen=True)
class MixedInput:
    """The ages of the running queries in seconds, by id."""

    ages: Mapping[int, float]
    name: ClassVar[str] = "mixed"

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return {"ages": list(self.ages.items())}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""
        return cls(dict(row["ages"]))
