"""The attempts at the micro-batch in progress, and the batches to skip.

A batch is planned by its offset and is the same in every attempt. How often it was begun is kept
beside it, in Redis: from the fourth attempt on the nodes look for queries that end their process,
and an administrator may skip the batch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# After so many failures of one batch something has to be done besides trying again.
FAILURES: Final = 3


@dataclass(frozen=True, slots=True)
class Attempt:
    """The newest batch that was started, and its number of attempts.

    It reads the log behind position `start` up to `end`, which are `records` records in all.
    `version` is its routing; `leaving` and `arriving` the versions from which tasks hand their
    state on in it, or did in the batch before; -1 where none do.
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
        """Return how many attempts have failed: all but the one in progress."""
        return self.count - 1

    @property
    def is_stuck(self) -> bool:
        """Return whether the batch has failed so often that only something else can help."""
        return self.failures >= FAILURES


def begin(client: "redis.Redis", cluster: str, plan: Attempt, driver: str) -> int:
    """Count an attempt of this driver at a batch; returns how many there were, with this one.

    A driver that begins a batch twice has begun it once. `plan.count` is not looked at.
    """
    key = keys.attempts_key(cluster)
    known = _row(client, cluster)
    count = 1
    if known.get("batch") == str(plan.batch):
        count = int(known["count"]) + (known.get("driver") != driver)
    row = asdict(plan) | {"count": count, "driver": driver}
    client.hset(key, mapping=cast("dict[Any, Any]", row))
    return count


def newest(client: "redis.Redis", cluster: str) -> Attempt | None:
    """Return the newest batch that was started, None before the first."""
    row = _row(client, cluster)
    if "batch" not in row:
        return None
    return Attempt(
        int(row["batch"]), int(row["count"]), row["start"], row["end"], int(row["records"]),
        int(row["version"]), int(row["leaving"]), int(row["arriving"]),
    )  # fmt: skip


def _row(client: "redis.Redis", cluster: str) -> Mapping[str, str]:
    result = cast("dict[bytes, bytes]", client.hgetall(keys.attempts_key(cluster)))
    return {name.decode(): value.decode() for name, value in result.items()}


def skip(client: "redis.Redis", cluster: str, batch: int) -> None:
    """Skip the records of a batch in its next attempt."""
    client.set(keys.skip_key(cluster), batch)


def is_skipped(client: "redis.Redis", cluster: str, batch: int) -> bool:
    """Return whether a batch reads no records."""
    result = cast("bytes | None", client.get(keys.skip_key(cluster)))
    return result is not None and int(result) == batch
