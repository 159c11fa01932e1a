"""The derived state of a topic at each position that may be read again.

A message in Kafka contains neither the watermark before it nor whether it repeats an earlier one,
as its producer does not know them; only a reader of all earlier messages does. So the driver, which
scans all messages to find the next position, stores this state for it, and readers start from the
stored state. Watermarks and repetitions are therefore functions of the log alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import redis

from controlplane.wire import keys
from controlplane.wire.log.kafka_message import Append
from controlplane.wire.log.values import (
    NO_TIME,
    START,
    WINDOW,
    IdempotencyToken,
    Watermark,
    position_key,
)

# Producers with remembered tokens: those that appended last.
_PRODUCERS: Final = 1000
_MASK: Final = 2**WINDOW - 1


@dataclass
class Prefix:
    """Records, bytes, watermark by stream, and what producers have appended.

    `seen`: by producer its highest sequence, and a mask of the sequences from there downwards, in
    the order of the last appends.
    """

    total: int = 0
    size: int = 0
    newest: dict[int, Watermark] = field(default_factory=dict)
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def take(self, append: Append) -> Mapping[int, tuple[int | None, int]] | None:
        """Apply an append; return `mark_ms` and `newest_ms` by stream, None for a repetition."""
        if append.token is not None and not self._is_new(append.token):
            return None
        times_ms: dict[int, tuple[int | None, int]] = {}
        for piece in append.pieces:
            before = self.newest.get(piece.stream, Watermark())
            after, newest_ms = before.after(piece.block, append.appended_ms)
            times_ms[piece.stream] = (None if before.ms == NO_TIME else before.ms), newest_ms
            self.newest[piece.stream] = after
        self.total += append.records
        self.size += len(append.data)
        return times_ms

    def _is_new(self, token: IdempotencyToken) -> bool:
        high, mask = self.seen.pop(token.producer, (token.sequence - 1, 0))
        behind = high - token.sequence
        new = behind < 0 or (behind < WINDOW and not mask >> behind & 1)
        if behind < 0:
            high, mask = token.sequence, (mask << min(-behind, WINDOW) | 1) & _MASK
        elif new:
            mask |= 1 << behind
        self.seen[token.producer] = high, mask
        return new

    def encode(self) -> str:
        """Return the prefix as text, with the producers that appended last."""
        seen = [[name, *known] for name, known in list(self.seen.items())[-_PRODUCERS:]]
        newest = [[stream, *watermark] for stream, watermark in self.newest.items()]
        row = [self.total, self.size, newest, seen]
        return json.dumps(row, separators=(",", ":"))

    @classmethod
    def decode(cls, text: bytes) -> "Prefix":
        """Return what `encode` wrote."""
        total, size, newest, seen = json.loads(text)
        watermarks = {stream: Watermark(*times) for stream, *times in newest}
        return cls(total, size, watermarks, {name: (high, mask) for name, high, mask in seen})


class PrefixStore:
    """The prefixes of one topic in the site's Redis, by position, and the last committed cut."""

    def __init__(self, client: "redis.Redis", cluster: str, topic: str) -> None:
        self.client = client
        self._prefixes = keys.kafka_prefixes_key(cluster, topic)
        self._committed = keys.kafka_committed_key(cluster, topic)

    def prefix_of(self, position: str) -> Prefix:
        """Return the state at a position, an empty one at the start of the log.

        Also empty after a loss of Redis: watermarks then start again.
        """
        result: Any = self.client.hget(self._prefixes, position)
        return Prefix() if result is None else Prefix.decode(result)

    def newest(self) -> tuple[str, Prefix]:
        """Return the newest indexed log position and the totals recorded at it."""
        names: Any = self.client.hkeys(self._prefixes)
        position = max((name.decode() for name in names), key=position_key, default=START)
        return position, self.prefix_of(position)

    def keep(self, start: str, end: str, prefix: Prefix) -> None:
        """Store the prefix at `end`, and that at `start` in case that Redis was emptied."""
        pipe = self.client.pipeline(transaction=True)
        pipe.hsetnx(self._prefixes, start, Prefix().encode())
        pipe.hset(self._prefixes, end, prefix.encode())
        pipe.execute()

    def committed(self) -> tuple[str, int] | None:
        """Return the position and the total of the last committed cut."""
        result: Any = self.client.hmget(self._committed, ["position", "total"])
        return None if None in result else (result[0].decode(), int(result[1]))

    def commit(self, position: str, total: int) -> bool:
        """Remember a committed cut and forget the prefixes before it; return whether it is new."""
        before = self.committed()
        if before is not None and position_key(position) <= position_key(before[0]):
            return False
        names: Any = self.client.hkeys(self._prefixes)
        old = [name for name in names if position_key(name.decode()) < position_key(position)]
        pipe = self.client.pipeline(transaction=True)
        pipe.hset(self._committed, mapping={"position": position, "total": total})
        if old:
            pipe.hdel(self._prefixes, *old)
        pipe.execute()
        return True
