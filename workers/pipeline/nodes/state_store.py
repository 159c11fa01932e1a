"""Spark's state of one node, with as few ways to the JVM as the batch allows.

Each access of Spark's state from Python is a round trip, which costs both sides more than the bytes
of a small value. So the small values of a node are stored together, as one value, which also lists
the names of all others. It is read first, nothing is read twice, and what has changed is written
once, at the end of the batch.
"""

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

# Under this name the state has the small values, and the names of the others.
NAMES: Final = "names"
# Of the small values of a node together: each batch writes them all.
SMALL_BYTES: Final = 256 << 10
# As text, Java would parse them in each task.
_KEY: Final = StructType().add("name", StringType())
_VALUE: Final = StructType().add("value", BinaryType())


def open_state(handle: StatefulProcessorHandle) -> MapState:
    """Return Spark's state of the nodes."""
    return handle.getMapState("values", _KEY, _VALUE)


def pack(small: Mapping[str, bytes], apart: set[str]) -> bytes:
    """Return small values and the names of values that are stored apart as one value."""
    head = [sorted(apart), {name: len(value) for name, value in small.items()}]
    return b"\n".join((json.dumps(head).encode(), b"".join(small.values())))


def unpack(value: bytes) -> tuple[dict[str, bytes], set[str]]:
    """Return the small values, and the names of values that are stored apart."""
    head, newline, data = value.partition(b"\n")
    names = json.loads(head)
    if not newline:
        # From before small values were stored together.
        return {}, set(names)
    small, start = dict[str, bytes](), 0
    for name, size in names[1].items():
        small[name] = data[start : start + size]
        start += size
    return small, set(names[0])


class NodeStore:
    """The state of a node during one batch; `save` writes what has changed."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        packed = state.getValue((NAMES,))
        self._packed = pack({}, set()) if packed is None else bytes(packed[0])
        self._small, self._apart = unpack(self._packed)
        self._read: dict[str, bytes | None] = {}
        self._written: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes | None:
        """Return what was put, None if nothing was."""
        if name in self._written:
            return self._written[name]
        if name not in self._apart:
            return self._small.get(name)
        if name not in self._read:
            result = self._state.getValue((name,))
            self._read[name] = None if result is None else bytes(result[0])
        return self._read[name]

    def items_by_name(self) -> dict[str, bytes]:
        """Return all values by name, read from the JVM now."""
        names = {*self._small, *self._apart, *self._written}
        result = {name: self.get(name) for name in names}
        return {name: data for name, data in result.items() if data is not None}

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""
        if name != NAMES:
            self._written[name] = value

    def remove(self, name: str) -> None:
        """Delete a value."""
        self._written[name] = None

    def save(self) -> None:
        """Write what has changed: small values together, the smallest first, the others apart."""
        if not self._written:
            return
        kept = {name: data for name, data in self._read.items() if data is not None}
        values = {
            name: data
            for name, data in {**kept, **self._small, **self._written}.items()
            if data is not None
        }
        small, size = dict[str, bytes](), 0
        for name, data in sorted(values.items(), key=lambda item: (len(item[1]), item[0])):
            size += len(data)
            if size > SMALL_BYTES:
                break
            small[name] = data
        for name in values.keys() - small.keys():
            if name not in self._apart or self._read.get(name) != values[name]:
                self._state.updateValue((name,), (values[name],))
        removed = {name for name, data in self._written.items() if data is None}
        for name in self._apart & (removed | small.keys()):
            self._state.removeKey((name,))
        packed = pack(small, (self._apart | values.keys()) - removed - small.keys())
        if packed != self._packed:
            self._state.updateValue((NAMES,), (packed,))
