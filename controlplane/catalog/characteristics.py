"""Pydantic fields of the characteristics of streams, and their checks."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from algorithms.admission.metadata import (
    CHARACTERISTICS,
    Characteristic,
    StreamMetadata,
    Transition,
)
from algorithms.errors import BadProblem
from controlplane.errors import Invalid

PREFIX: Final = "characteristics"
_TRANSITION: Any = Literal[tuple(str(value) for value in Transition)]


def characteristic_fields() -> dict[str, Any]:
    """Return the ten characteristics as fields for `pydantic.create_model`; null: not declared."""
    return {item.name: _field(item) for item in CHARACTERISTICS}


def _field(item: Characteristic) -> Any:
    text = f"{item.unit}: {item.hint}" if item.unit else item.hint
    if item.limit is None:
        return _TRANSITION | None, Field(None, title=item.title, description=text)
    return float | None, Field(None, title=item.title, description=text, ge=0, le=item.limit)


def checked(values: Mapping[str, Any], prefix: str = PREFIX) -> dict[str, Any]:
    """Return characteristics as stored: the known ones.

    Raises `Invalid` with the names of faulty ones behind `prefix` and a dot; for an empty prefix,
    by their names.
    """
    try:
        return StreamMetadata.from_json(values, prefix).to_json()
    except BadProblem as bad:
        message = bad.why[:1].upper() + bad.why[1:]
        raise Invalid({bad.where.removeprefix("."): [message]}) from None
