"""The form of telemetry rows and progress reports, which all their readers check.

Figures have finite numbers, and indexes and texts have bounds: a value of a row that is stored
appears in samples, on pages and in the decisions of planners.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Required, cast

import redis
from pydantic import BeforeValidator, Field, FiniteFloat, TypeAdapter
from typing_extensions import TypedDict

from controlplane.wire import keys
from controlplane.wire.figures import FIGURES, Figure, Source
from controlplane.wire.foreign.entries import MAX_WHOLE, is_other_type, json_of, readable

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
        return Number
    return Number | None


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


def _list_of(kind: Any) -> Any:
    return list.__class_getitem__(kind)


Latency = dict[Annotated[str, Field(max_length=10)], Number | None]
_NODES: Final = _list_of(_form("Node", {
    **_figures("node"), "node": Required[Index], "latency": Latency | None,
    "utilisation": Number | None, "emitted": Whole,
}))  # fmt: skip
_SPLITS: Final = _list_of(_form("Split", {"split": Required[Index], **_figures("split")}))
_FAULTS: Final = _list_of(_form("Fault", {
    "query": Required[Whole], "run": Required[Whole], "why": Required[Text],
    "node": Required[Index], "stage": Required[Text], "sample": Required[Text],
}))  # fmt: skip
_MOVES: Final = _list_of(_form("Move", {"bytes": Required[Whole], "waited": Required[Whole]}))
_ARRIVALS: Final = _list_of(_form("Arrival", {"gap_ms": Required[Number | None]}))
_SOURCE: Final = _form("Source", {
    "identity": Required[Text], "mark_ms": Required[Whole | None], "size": Required[Whole],
    "is_active": Required[bool], "topics": list[Text],
    # Those of before 2026-12 have no time at which the partition was added.
    "partitions": Required[dict[Name, (
        tuple[Whole, Whole | None, Whole | None, Whole, Whole, Whole, Whole]
        | tuple[Whole, Whole | None, Whole | None, Whole, Whole, Whole]
    )]],
})  # fmt: skip
_SOURCES: Final = dict.__class_getitem__((Name, _SOURCE))
_ROW: Final[TypeAdapter[dict[str, Any]]] = TypeAdapter(_form("Row", {
    **_figures(""),
    "batch": Whole, "version": Whole, "emitted_ms": Moment, "read": Whole, "delivered": Whole,
    "streams": Counts, "nodes": _NODES, "splits": _SPLITS, "start": Position | None,
    "end": Position | None, "read_position": Position | None, "delayed": dict[Name, Position],
    "sources": _SOURCES,
    "newest": Counts,
    "read_ms": Moment | None, "latency": Latency | None, "behind": dict[Name, tuple[Whole, Whole]],
    "late_streams": Counts, "late_queries": Counts, "skipped": bool, "faults": _FAULTS,
    "moves": _MOVES, "arrived_tasks": _ARRIVALS, "dropped": dict[Edge, Number],
    "ladder_dropped": dict[Edge, Number],
    "drop_counts": list[tuple[Whole, Whole, Whole, Whole, Whole, Whole, Whole]],
}))  # fmt: skip
# Without one of these a row is of no use for samples.
_NEEDED: Final = {"batch", "version", "emitted_ms", "read", "delivered", "streams", "nodes"}
_BATCH_MS: Final = TypeAdapter[float | None](FiniteFloat | None)


def row_from(text: bytes) -> dict[str, Any]:
    """Return a telemetry row, without fields that it does not declare. Raises `ValueError`."""
    row = _part_from(text)
    if missing := _NEEDED - row.keys():
        raise ValueError(f"has no {', '.join(sorted(missing))}")
    return row


def _part_from(text: bytes) -> dict[str, Any]:
    return _ROW.validate_python(json_of(text))


def newest_rows(client: "redis.Redis", cluster: str, count: int) -> list[dict[str, Any]]:
    """Return the newest telemetry rows, newest first, maybe without some of their fields.

    Without those that cannot be read, which the relay counts. Raises `redis.RedisError`.
    """
    key, stop, rows = keys.telemetry_key(cluster), "+", list[dict[str, Any]]()
    try:
        while len(rows) < count:
            # An older row stands for an unreadable one: its batch shows what Redis has.
            page = cast("list[Any]", client.xrevrange(key, stop, count=count))
            if not page:
                break
            rows += readable(_part_from, (fields.get(b"t") for _, fields in page))
            stop = f"({page[-1][0].decode()}"
    except redis.ResponseError as error:
        if not is_other_type(error):
            raise
    return rows[:count]


def batch_ms_from(text: bytes) -> float | None:
    """Return the duration in a progress report, None without one (ms).

    Raises `ValueError`, `TypeError` and `AttributeError` for other entries.
    """
    durations = json_of(text).get("durations_ms", {})
    return _BATCH_MS.validate_python(durations.get("triggerExecution"))
