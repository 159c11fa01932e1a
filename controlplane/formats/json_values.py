"""Values that are stored as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Self


@dataclass(frozen=True)
class JsonValue:
    """A value whose fields are stored by their names; nested values follow from their types."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the value that `to_json` wrote, with the defaults of fields that it left out."""
        kind: Any = cls
        value: Self = _adapter(kind).validate_python(row)
        return value

    @classmethod
    def stored(cls, row: Mapping[str, Any]) -> Self | None:
        """Return the value of a column, None if it is empty."""
        return cls.from_json(row) if row else None


@cache
def _adapter(kind: Any) -> Any:
    # The data plane writes such values, and has no other use for it.
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(kind)
