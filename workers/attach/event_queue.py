"""The bounded queue of events in memory, shared by several threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

# With 2 KB an event about 2 MB of the job's memory while Weir is unreachable.
MOST_EVENTS: Final = 1000


class EventQueue:
    """A queue of JSON texts that drops the oldest one when it is full, and counts."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._lock = threading.Lock()
        # (text, whether it is dropped first): a gap in a chart is better than a lost start or end
        # of a query.
        self._events: deque[tuple[str, bool]] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._events)

    def put(self, text: str, *, passing: bool) -> None:
        """Add an event; a full queue drops its oldest passing one, else its oldest."""
        with self._lock:
            if len(self._events) >= self._most:
                self._drop()
            self._events.append((text, passing))

    def take(self, most: int, most_chars: int) -> list[str]:
        """Remove and return the oldest events, at least one if there is any."""
        taken: list[str] = []
        size = 0
        with self._lock:
            while self._events and len(taken) < most:
                size += len(self._events[0][0])
                if taken and size > most_chars:
                    break
                taken.append(self._events.popleft()[0])
        return taken

    def give_up(self, count: int) -> None:
        """Count removed events that could not be delivered."""
        with self._lock:
            self.dropped += count

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self.dropped += len(self._events)
            self._events.clear()

    def _drop(self) -> None:
        index = next((i for i, (_, passing) in enumerate(self._events) if passing), 0)
        del self._events[index]
        self.dropped += 1
