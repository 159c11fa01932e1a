"""The message of one append in Kafka: its blocks, and a header that describes them.

The description is a header of the message, so that readers need not parse the blocks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from confluent_kafka import Message

from controlplane.wire.errors import BadMessage
from controlplane.wire.foreign.entries import json_of, whole
from controlplane.wire.log.values import (
    DEFAULT_DELAY_MS,
    DEFAULT_MAX_FUTURE_MS,
    Block,
    IdempotencyToken,
)

HEADER: Final = "weir"


class MessageBlock(NamedTuple):
    """One block of an append: its stream, record count, newest event time (ms) and length.

    `newest_ms`, `max_future_ms`, `delay_ms`: as in `values.Block`.
    """

    stream: int
    records: int
    newest_ms: int | None
    length: int
    max_future_ms: int = DEFAULT_MAX_FUTURE_MS
    delay_ms: int = DEFAULT_DELAY_MS

    @property
    def block(self) -> Block:
        """Return the block without its bytes."""
        return Block(self.records, b"", self.newest_ms, self.max_future_ms, self.delay_ms)


@dataclass(frozen=True, slots=True)
class Append:
    """A message: offset and time, descriptions and bytes of its blocks, token.

    `fault`: why it is not an append, with no blocks then.
    """

    offset: int
    appended_ms: int
    pieces: tuple[MessageBlock, ...]
    data: bytes
    token: IdempotencyToken | None
    fault: BadMessage | None = None

    @property
    def position(self) -> str:
        """Return the position of the log after the message."""
        return position_behind(self.offset)

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(piece.records for piece in self.pieces)


def _piece(
    stream: int,
    records: int,
    newest_ms: int | None,
    length: int,
    *limits_ms: int,
) -> MessageBlock:
    newest = None if newest_ms is None else whole(newest_ms)
    sizes = whole(stream), whole(records), whole(length)
    if min(sizes) < 0:
        raise ValueError("has a negative number")
    return MessageBlock(*sizes[:2], newest, sizes[2], *map(whole, limits_ms))


def position_behind(offset: int) -> str:
    """Return the position after a message; the start of the log is `0-0`."""
    return f"{offset + 1}-0"


def offset_at(position: str) -> int:
    """Return the offset of the first message after a position."""
    return int(position.partition("-")[0])


def encode(blocks: Mapping[int, Block], token: IdempotencyToken | None) -> tuple[bytes, bytes]:
    """Return the head and the value of the message of an append."""
    pieces = [
        [stream, b.records, b.newest_ms, len(b.data), b.max_future_ms, b.delay_ms]
        for stream, b in blocks.items()
    ]
    head: dict[str, Any] = {"blocks": pieces}
    if token is not None:
        head |= {"producer": token.producer, "sequence": token.sequence}
    answer = json.dumps(head, separators=(",", ":"))
    return answer.encode(), b"".join(block.data for block in blocks.values())


def decode(message: "Message[Any, Any]") -> Append:
    """Return the append that a message is. Raises `BadMessage` for one that Weir did not write."""
    offset = message.offset() or 0
    head = dict(message.headers() or []).get(HEADER)
    if not isinstance(head, bytes):
        raise BadMessage(offset, f"it has no header {HEADER!r}")
    try:
        answer = json_of(head)
        pieces = tuple(_piece(*row) for row in answer["blocks"])
        token = (
            IdempotencyToken(str(answer["producer"]), whole(answer["sequence"]))
            if "producer" in answer
            else None
        )
        appended_ms = whole(message.timestamp()[1])
    except Exception as error:
        raise BadMessage(offset, f"its header {HEADER!r} is malformed") from error
    data = message.value() or b""
    if sum(piece.length for piece in pieces) != len(data):
        raise BadMessage(offset, "its blocks do not have the length in its header")
    return Append(offset, appended_ms, pieces, data, token)


def append_of(message: "Message[Any, Any]") -> Append:
    """Return the append that a message is, one without blocks if Weir did not write it."""
    try:
        return decode(message)
    except BadMessage as fault:
        return Append(message.offset() or 0, 0, (), b"", None, fault)
