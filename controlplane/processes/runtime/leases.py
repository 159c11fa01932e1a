"""Leases in Redis: which of several processes does what only one of them may do.

A lease has a holder, the end of its term and an epoch, which is another one for each holder;
who checks it recognizes an earlier holder (fencing). The clock is that of Redis. A holder counts
its own time from before each renewal, and ends its work `MARGIN_S` before another can be holder.
"""

import logging
import socket
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

import redis

from controlplane.wire.redis_clients import connect

logger = logging.getLogger(__name__)

TERM_S: Final = 12.0
# Without another process nobody takes over, and an outage of Redis of a minute ends no work.
ALONE_S: Final = 75.0
MARGIN_S: Final = 5.0
RENEW_S: Final = 2.0
# The group of the agents, whose leases are clusters.
AGENTS: Final = "agent"
# Of a command: several attempts fit into a term.
ANSWER_S: Final = 1.0
# Of a lease in Redis: holder, epoch and end.
_WORDS: Final = 3
# Members of the group by the end of their term, and leases by name: "<holder> <epoch> <ms>".
# Arguments: member, terms (ms), then each name with the epoch that the caller believes to
# hold, or 0. Leases that a Redis without its data lacks are those of their last holder again.
# Free ones go to a holder of less than its share. The caller at another place is an earlier
# process, whose epochs end. Returns the members, the term and epochs.
_STEP: Final = """
for index, kind in ipairs({'zset', 'hash'}) do
  local there = redis.call('TYPE', KEYS[index]).ok
  if there ~= kind and there ~= 'none' then redis.call('DEL', KEYS[index]) end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holder, place = string.match(ARGV[1], '^(%S+) (%S+)$')
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local members, moved = 1, false
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if member ~= ARGV[1] and string.match(member, '^%S+') == holder then
    redis.call('ZREM', KEYS[1], member)
    moved = true
  elseif member ~= ARGV[1] then
    if string.match(member, '%S+$') ~= place then return {0, 0} end
    members = members + 1
  end
end
local term = tonumber(members == 1 and ARGV[3] or ARGV[2])
local result, free, held = {members, term}, {}, 0
redis.call('ZADD', KEYS[1], now + term, ARGV[1])
local function write(slot, name, epoch)
  local row = string.format('%s %.0f %.0f', holder, epoch, now + term)
  redis.call('HSET', KEYS[2], name, row)
  result[slot] = epoch
  held = held + 1
end
for index = 4, #ARGV, 2 do
  local slot, name, believed = index / 2 + 1, ARGV[index], tonumber(ARGV[index + 1])
  local row = redis.call('HGET', KEYS[2], name) or ''
  local by, epoch, stop = string.match(row, '^(%S+) (%d+) (%d+)$')
  result[slot] = 0
  if by == holder and not moved then
    write(slot, name, tonumber(epoch))
  elseif not by and believed > 0 then
    write(slot, name, believed)
  elseif not by or by == holder or tonumber(stop) <= now then
    free[#free + 1] = {slot, name, math.max(now, (tonumber(epoch) or 0) + 1)}
  end
end
local share = math.ceil((#ARGV - 3) / 2 / members)
for _, lease in ipairs(free) do
  if held < share then write(unpack(lease)) end
end
return result
"""
_RELEASE: Final = """
for index = 2, #ARGV do
  local row = redis.call('HGET', KEYS[1], ARGV[index])
  if row and string.match(row, '^%S+') == ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[index]) end
end
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of this process: its epoch, and the monotonic time at which its work ends."""

    epoch: int
    until: float


def holder_of(data: Path) -> str:
    """Return the name of this host and data directory, the same after a restart."""
    return f"{socket.gethostname()}:{identity_of(data)}"


def identity_of(folder: Path) -> str:
    """Return the random id of a folder, which all its users read. Raises `OSError`."""
    path = folder / "identity"
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"identity.{uuid4().hex}"
    if not path.exists():
        draft.write_text(uuid4().hex)
        try:
            # Unlike a replacement, a link of two processes keeps the first.
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


def key_of(group: str) -> str:
    """Return where in Redis the leases of a group are."""
    return f"weir:leases:{group}"


def hosts_of(rows: Mapping[bytes, bytes], at_ms: int) -> dict[str, str]:
    """Return the host that holds each lease at a time, by the name of the lease.

    `rows`: those of `key_of`; ended leases and rows of another form are left out.
    """
    words = {name.decode("utf-8", "replace"): row.split() for name, row in rows.items()}
    return {
        name: row[0].decode("utf-8", "replace").partition(":")[0]
        for name, row in words.items()
        if len(row) == _WORDS and row[2].isdigit() and int(row[2]) > at_ms
    }


class Leases:
    """The leases of a process in a group of processes.

    `place`: what all processes of the group must share; one with another place holds nothing.
    `alone_s`: the term while no other process is in the group.
    """

    def __init__(
        self,
        url: str,
        group: str,
        holder: str,
        *,
        place: str = "-",
        term_s: float = TERM_S,
        alone_s: float = TERM_S,
    ) -> None:
        self.key = key_of(group)
        self.holder = holder
        self._members_key = f"weir:members:{group}"
        self._member = f"{holder} {place}"
        self._terms_ms = round(term_s * 1000), round(alone_s * 1000)
        self._client = connect(url, read_s=ANSWER_S, connect_s=ANSWER_S)
        self._step: Any = self._client.register_script(_STEP)
        self._release: Any = self._client.register_script(_RELEASE)
        self._lock = Lock()
        self._names: list[str] = []
        self._held: dict[str, Lease] = {}
        self._members = 1
        self._is_away = False
        self._sent_at = float("-inf")

    def held(self) -> dict[str, int]:
        """Return the epoch of each lease that this process holds, by name."""
        now = time.monotonic()
        return {name: lease.epoch for name, lease in self._held.items() if now < lease.until}

    def step(self, names: Collection[str], idle: Iterable[str] = ()) -> dict[str, int]:
        """Renew leases, take over free ones among `names`, release others; return those held.

        `idle`: names that this process gives up where it holds more than its share. A Redis that
        is away changes nothing until the leases end.
        """
        with self._lock:
            surplus = max(0, len(self._held) - ceil(len(names) / max(1, self._members)))
            dropped = [name for name in idle if name in self._held][:surplus]
            self._names = sorted(set(names).difference(dropped))
            self._give_up(self._held.keys() - set(self._names))
            self._renew()
        return self.held()

    def renew(self) -> None:
        """Renew the leases, unless that was done lately or is being done. Never raises."""
        if time.monotonic() - self._sent_at < RENEW_S or not self._lock.acquire(blocking=False):
            return
        try:
            self._renew()
        finally:
            self._lock.release()

    def leave(self) -> None:
        """Release all leases, so that others take over at once. Never raises."""
        with self._lock, suppress(redis.RedisError):
            self._names = []
            self._give_up(list(self._held))
            self._client.zrem(self._members_key, self._member)

    def is_current(self, pipe: Any, name: str) -> bool:
        """Return whether Redis has this process as holder; `pipe`: a pipeline that watches."""
        pipe.watch(self.key)
        row = (pipe.hget(self.key, name) or b"").decode("utf-8", "replace").split()
        return row[:2] == [self.holder, str(self.held().get(name))]

    def _renew(self) -> None:
        """Call the script; without an answer of Redis nothing changes."""
        self._sent_at = time.monotonic()
        believed = self.held()
        words = [word for name in self._names for word in (name, believed.get(name, 0))]
        try:
            answer = self._step(
                keys=[self._members_key, self.key], args=[self._member, *self._terms_ms, *words]
            )
        except redis.RedisError as error:
            if not self._is_away:
                logger.warning("leases cannot be renewed: %s", error)
            self._is_away = True
            return
        self._is_away = False
        self._take(*map(int, answer))

    def _take(self, members: int, term_ms: int, *epochs: int) -> None:
        """Keep what the script returned."""
        if not members:
            if self._members:
                logger.error(
                    "%s holds nothing: another process of the group uses other checkpoints; give "
                    "WEIR_CHECKPOINTS the same shared folder on every host",
                    self.holder,
                )
            self._members, self._held = 0, {}
            return
        until = self._sent_at + term_ms / 1000 - MARGIN_S
        held = {
            name: Lease(epoch, until)
            for name, epoch in zip(self._names, epochs, strict=True)
            if epoch
        }
        self._log_changes(held)
        self._members, self._held = members, held

    def _log_changes(self, held: dict[str, Lease]) -> None:
        for name in held.keys() - self._held.keys():
            logger.info("%s holds %s, epoch %d", self.holder, name, held[name].epoch)
        for name in self._held.keys() - held.keys():
            logger.warning("%s has lost %s to another process", self.holder, name)

    def _give_up(self, names: Collection[str]) -> None:
        if not names:
            return
        self._held = {name: row for name, row in self._held.items() if name not in names}
        # Otherwise they end with their terms.
        with suppress(redis.RedisError):
            self._release(keys=[self.key], args=[self.holder, *names])
