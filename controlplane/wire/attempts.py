"""Attempts at the micro-batch in progress, and skipped batches.

The offset determines a batch, so all its attempts are equal. Redis has the number of attempts: from
the fourth one on, nodes search for queries that end their process, and an administrator may skip
the batch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import EntryLocation, decoded, values_of, whole, write_hash

# Failures of a batch after which a retry alone is pointless.
FAILURES: Final = 3


@dataclass(frozen=True, slots=True)
class BatchAttempt:
    """The newest started batch, and its number of attempts.

    It reads `records` records of the log, after position `start` up to `end`. `version`: of its
    routing; `leaving`, `arriving`: the versions whose moves export state in it, or exported state
    in the previous batch; -1 for none.
    """

    batch: int
    count: int
    start: str
    end: str
    records: int
    version: int
    leaving: int = -1
    arriving: int = -1

    @property
    def failures(self) -> int:
        """Return the number of failed attempts: all except the one in progress."""
        return self.count - 1

    @property
    def is_stuck(self) -> bool:
        """Return whether the batch has failed too often for another retry."""
        return self.failures >= FAILURES


def begin(client: "redis.Redis", cluster: str, plan: BatchAttempt, driver: str) -> int:
    """Count an attempt of a driver at a batch; return the number of attempts with this one.

    A driver's repeated starts of a batch count once. `plan.count` is ignored.
    """
    key = keys.attempts_key(cluster)
    known = newest(client, cluster)
    count = 1
    if known is not None and known.batch == plan.batch:
        count = known.count + (client.hget(key, "driver") != driver.encode())
    write_hash(client, key, asdict(plan) | {"count": count, "driver": driver})
    return count


def newest(client: "redis.Redis", cluster: str) -> BatchAttempt | None:
    """Return the newest started batch, None before the first one."""
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(keys.attempts_key(cluster))
    (row,) = values_of(pipe)
    return decoded(client, cluster, EntryLocation.ATTEMPTS, _attempt_of, row)


def _attempt_of(row: Mapping[bytes, bytes]) -> BatchAttempt | None:
    if b"batch" not in row:
        return None
    numbers = (b"records", b"version", b"leaving", b"arriving")
    return BatchAttempt(
        whole(row[b"batch"]), whole(row[b"count"]), row[b"start"].decode(), row[b"end"].decode(),
        *(whole(row[name]) for name in numbers),
    )  # fmt: skip


def skip(client: "redis.Redis", cluster: str, batch: int) -> None:
    """Skip the records of a batch in its next attempt."""
    client.set(keys.skip_key(cluster), batch)


def is_skipped(client: "redis.Redis", cluster: str, batch: int) -> bool:
    """Return whether a batch is skipped, so that it reads no records."""
    result = cast("bytes | None", client.get(keys.skip_key(cluster)))
    return result == str(batch).encode()
