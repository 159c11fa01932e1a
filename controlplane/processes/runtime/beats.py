"""Heartbeats of processes in Redis: the milliseconds since 1970 of each process's last beat.

A hash without expiry, so that a reader can report since when a process is silent. Fields are
`<kind>` or `<kind>/<instance>`; kinds are declared in `process_kinds`. The runner restarts children
whose heartbeats stop.
"""

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import redis

from controlplane.processes.runtime.children import ChildSpec
from controlplane.processes.runtime.process_kinds import PROCESSES, SUPERVISOR
from controlplane.wire.foreign.entries import (
    SITE,
    EntryLocation,
    decoded_items,
    hash_items,
    json_of,
    whole,
    write_hash,
)
from controlplane.wire.redis_clients import connect

EXPIRES_S: Final = 60
BEATS: Final = "weir:beats"
AGENT_CLUSTERS: Final = "weir:agent:clusters"
# Recorded of a cluster that runs and has no records, so that no batch shows it.
IDLE: Final = "idle"
CHILDREN: Final = "weir:supervisor:children"
# Set by the runner: the name of this process among its children.
CHILD: Final = "WEIR_CHILD"
# Instances that have been silent for a day are forgotten.
FORGOTTEN_MS: Final = 24 * 3600 * 1000

_KINDS: Final = frozenset(kind.name for kind in PROCESSES)


@dataclass(frozen=True, slots=True)
class ChildReport:
    """The supervisor's report about a child.

    `failures`: ends in a row; `ended`: how it ended last, "" before; `restart_ms`: when it starts
    again, 0 while it runs.
    """

    name: str
    failures: int
    ended: str
    restart_ms: int

    @property
    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self.restart_ms == 0


def now_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def beat_field(kind: str, instance: str = "") -> str:
    """Return the field of a process: of the runner's child if it is one, else of `instance`.

    Raises `ValueError` for a kind that is not declared.
    """
    if kind not in _KINDS:
        raise ValueError(f"{kind} is not declared in process_kinds")
    name = os.environ.get(CHILD, "") or instance
    return f"{kind}/{name}" if name else kind


def beat(client: "redis.Redis", kind: str, instance: str = "") -> None:
    """Record that a process runs. Raises `redis.RedisError`."""
    write_hash(client, BEATS, {beat_field(kind, instance): now_ms()})


def last_beats(client: "redis.Redis") -> dict[str, int]:
    """Return the time of the last beat of every process (ms) by field. Raises RedisError."""
    return dict(hash_items(client, SITE, EntryLocation.BEATS, BEATS, _beat_of))


def beats_of(client: "redis.Redis", rows: Any) -> dict[str, int]:
    """Return the times of beats by field, without those that cannot be read."""
    return dict(decoded_items(client, SITE, EntryLocation.BEATS, rows, _beat_of))


def _beat_of(field: str, value: bytes) -> tuple[str, int]:
    return field, whole(value)


def newest_by_kind(beats: Mapping[str, int]) -> dict[str, int]:
    """Return the newest beat of each kind (ms)."""
    newest: dict[str, int] = {}
    for field, at_ms in beats.items():
        kind = field.partition("/")[0]
        newest[kind] = max(at_ms, newest.get(kind, 0))
    return newest


def last_beat_ms(client: "redis.Redis", kind: str) -> int | None:
    """Return the time of the newest heartbeat of a kind, None if it never beat."""
    return newest_by_kind(last_beats(client)).get(kind)


def forget_instances(client: "redis.Redis", at_ms: int) -> None:
    """Delete the beats of instances that have been silent for a day, unless nothing is newer."""
    beats = last_beats(client)
    newest = newest_by_kind(beats)
    old = [
        field
        for field, beat_ms in beats.items()
        if at_ms - beat_ms > FORGOTTEN_MS and beat_ms < newest[field.partition("/")[0]]
    ]
    if old:
        client.hdel(BEATS, *old)


def record_children(client: "redis.Redis", children: Sequence[ChildReport]) -> None:
    """Replace the supervisor's report; it expires with the supervisor. Raises RedisError."""
    client.set(CHILDREN, json.dumps([asdict(child) for child in children]), ex=EXPIRES_S)


def children_of(value: bytes | None) -> list[ChildReport]:
    """Return the supervisor's report from its stored value. Raises `ValueError`, `TypeError`."""
    return [
        ChildReport(str(row["name"]), whole(row["failures"]), str(row["ended"]),
                    whole(row["restart_ms"]))
        for row in json_of(value or b"[]")
    ]  # fmt: skip


def record_clusters(
    client: "redis.Redis", states: Mapping[str, str], known: Collection[str]
) -> dict[str, str]:
    """Record the states of an agent's clusters; forget clusters that are not `known`.

    Returns the states of the clusters of all agents.
    """
    recorded = cluster_states(client)
    pipe = client.pipeline()
    if forgotten := recorded.keys() - set(known):
        pipe.hdel(AGENT_CLUSTERS, *forgotten)
    if states:
        pipe.hset(AGENT_CLUSTERS, mapping={str(slug): str(s) for slug, s in states.items()})
        pipe.expire(AGENT_CLUSTERS, EXPIRES_S)
    pipe.execute()
    return {slug: state for slug, state in recorded.items() if slug not in forgotten} | dict(states)


def cluster_states(client: "redis.Redis") -> dict[str, str]:
    """Return the state of every cluster by slug, as the agents have recorded it."""
    return dict(
        hash_items(
            client,
            SITE,
            EntryLocation.BEATS,
            AGENT_CLUSTERS,
            lambda slug, state: (slug, state.decode()),
        )
    )


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
