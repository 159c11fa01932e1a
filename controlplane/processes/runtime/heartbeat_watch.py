"""The runner's heartbeat and report, and the search for children that hang."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import redis

from controlplane.processes.runtime.beats import ChildReport, beat, last_beats, record_children
from controlplane.processes.runtime.children import ChildSpec
from controlplane.processes.runtime.process_kinds import SUPERVISOR
from controlplane.wire.redis_clients import connect

EVERY_S: Final = SUPERVISOR.period_s


class HeartbeatWatch:
    """Writes the supervisor's heartbeat and reads those of its children.

    A child hangs if its heartbeat did not change for `silent_s`, while Redis responded all the
    time. Changes are observed, not compared with a clock, which may be set.
    """

    def __init__(self, redis_url: str) -> None:
        # Short time-outs: the supervision of children waits meanwhile.
        self._client = connect(redis_url, connect_s=0.5, read_s=1.0)
        self._due_at = 0.0
        self._responds_since: float | None = None
        self._changed: dict[str, tuple[int, float]] = {}

    def step(self, children: Sequence[ChildReport]) -> None:
        """Write and read if it is time; a Redis that does not respond is not an error here."""
        now = time.monotonic()
        if now < self._due_at:
            return
        self._due_at = now + EVERY_S
        try:
            beat(self._client, SUPERVISOR.name)
            record_children(self._client, children)
            beats = last_beats(self._client)
        except redis.RedisError:
            self._responds_since = None
            return
        self.note(beats, now)

    def note(self, beats: Mapping[str, int], now: float) -> None:
        """Store the beats that were read at `now` (monotonic seconds)."""
        if self._responds_since is None:
            self._responds_since = now
        for field, at_ms in beats.items():
            before = self._changed.get(field)
            if before is None or before[0] != at_ms:
                self._changed[field] = at_ms, now

    def is_hung(self, spec: ChildSpec, uptime_s: float, now: float | None = None) -> bool:
        """Return whether a child that has run for `uptime_s` writes no heartbeat."""
        if spec.silent_s is None or self._responds_since is None:
            return False
        now = time.monotonic() if now is None else now
        changed_at = self._changed.get(f"{spec.kind}/{spec.name}", (0, 0.0))[1]
        # A start on a busy machine takes a while, too.
        return now - max(changed_at, self._responds_since, now - uptime_s) > spec.silent_s
