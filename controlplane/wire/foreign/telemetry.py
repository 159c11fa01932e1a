"""The form of telemetry rows and progress reports, which all their readers check.

Figures have finite numbers, and indexes and texts have bounds: a value of a row that is stored
appears in samples, on pages and in the decisions of planners.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Final, Required, cast

import redis
from pydantic import BeforeValidator, Field, FiniteFloat, TypeAdapter
from typing_extensions import TypedDict

from controlplane.wire import keys
from controlplane.wire.figures import FIGURES, Figure, Source, Unit
from controlplane.wire.foreign.entries import MAX_WHOLE, is_other_type, json_of, readable

# Entries that are read besides, in place of unreadable ones.
_SPARE_ROWS: Final = 4
# More nodes than any cluster has: samples have a value for each index.
MAX_INDEX: Final = 10_000
Whole = Annotated[int, Field(ge=-MAX_WHOLE, le=MAX_WHOLE)]
Index = Annotated[int, Field(ge=0, le=MAX_INDEX)]
Number = Whole | FiniteFloat
# Up to the last day that a database has (ms since 1970).
Moment = Annotated[int, Field(ge=0, le=253_402_300_799_000)]
Name = Annotated[str, Field(pattern=r"^\d{1,15}$")]
Edge = Annotated[str, Field(pattern=r"^\d{1,15}(>-?\d{1,15})?$")]
Position = Annotated[str, Field(pattern=r"^\d{1,19}-\d{1,19}$")]
Counts = dict[Name, Whole]


def _storable(text: Any) -> Any:
    """Return a text without NUL and halves of surrogate pairs, which databases do not store."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


# The reason of a fault may quote a record.
Text = Annotated[str, BeforeValidator(_storable)]


def _type_of(figure: Figure) -> Any:
    if figure.source is Source.PER_SECOND:
        return Number | dict[Edge, Number] | None
    return (Position if figure.unit is Unit.POSITION else Number) | None


def _figures(per: str) -> dict[str, Any]:
    """Return the types of the figures of a row, or of its part about a node or split node."""
    return {
        figure.row_key: _type_of(figure)
        for figure in FIGURES
        if figure.per == per and figure.source in (Source.VALUE, Source.PER_SECOND)
    }


def _form(name: str, types: Mapping[str, Any]) -> Any:
    """Return the type of an object with these fields, of which only `Required` ones must be."""
    return cast("Any", TypedDict)(name, types, total=False)


Latency = dict[Annotated[str, Field(max_length=10)], Number | None]
_NODE: Final = _form("Node", {
    **_figures("node"), "node": Required[Index], "latency": Latency | None,
    "utilisation": Number | None, "emitted": Whole,
})  # fmt: skip
_SPLIT: Final = _form("Split", {"split": Required[Index], **_figures("split")})
_FAULT: Final = _form("Fault", {
    "query": Required[Whole], "run": Required[Whole], "why": Required[Text], "node": Index,
    "stage": Text, "sample": Text,
})  # fmt: skip
_MOVE: Final = _form("Move", {"bytes": Required[Whole], "waited": Required[Whole]})
_ARRIVAL: Final = _form("Arrival", {"gap_ms": Required[Number | None]})
_ROW: Final[TypeAdapter[dict[str, Any]]] = TypeAdapter(_form("Row", {
    **_figures(""),
    "batch": Required[Whole], "version": Required[Whole], "emitted_ms": Required[Moment],
    "read": Required[Whole], "delivered": Required[Whole], "streams": Required[Counts],
    "nodes": Required[Annotated[list[_NODE], Field(max_length=MAX_INDEX)]],
    "start": Position | None, "end": Position | None, "delayed": dict[Name, Position],
    "newest": dict[Name, Whole], "splits": list[_SPLIT], "read_ms": Moment | None,
    "latency": Latency | None,
    "behind": dict[Name, tuple[Whole, Whole]], "late_streams": Counts, "late_queries": Counts,
    "skipped": bool, "faults": list[_FAULT], "moves": list[_MOVE], "came": list[_ARRIVAL],
    "drop_counts": list[tuple[Whole, Whole, Whole, Whole, Whole, Whole, Whole]],
}))  # fmt: skip
_BATCH_MS: Final = TypeAdapter[float | None](FiniteFloat | None)


def row_from(text: bytes) -> dict[str, Any]:
    """Return a telemetry row, without fields that it does not declare. Raises `ValueError`."""
    return _ROW.validate_python(json_of(text))


def newest_rows(client: "redis.Redis", cluster: str, count: int) -> list[dict[str, Any]]:
    """Return the newest telemetry rows, newest first. Raises `redis.RedisError`.

    Without those that cannot be read, which the relay counts: no result depends on a row.
    """
    key = keys.telemetry_key(cluster)
    try:
        entries = cast("list[Any]", client.xrevrange(key, count=count + _SPARE_ROWS))
    except redis.ResponseError as error:
        if is_other_type(error):
            return []
        raise
    return list(islice(readable(row_from, (fields.get(b"t") for _, fields in entries)), count))


def batch_ms_from(text: bytes) -> float | None:
    """Return the duration in a progress report, None without one (ms).

    Raises `ValueError`, `TypeError` and `AttributeError` for other entries.
    """
    durations = json_of(text).get("durations_ms", {})
    return _BATCH_MS.validate_python(durations.get("triggerExecution"))
