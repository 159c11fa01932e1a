"""The generation, which identifies the contents of Redis: a hash per cluster.

`id` is a random value that Weir writes to a Redis without one: an emptied Redis has none, a
replaced one has another. `restored` changes after a loss of contents, after which nodes write all
open windows again. `floor` is the newest micro-batch that was ever written; batch numbers of a new
checkpoint start above it.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# The format of a checkpoint's states, which is part of its name: <cluster>-<format>. Others cannot
# be read.
STATE_FORMAT: Final = 4


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation of a cluster's data in Redis; `id` is empty without one."""

    id: str = ""
    restored: int = 0
    floor: int = 0


def read_generation(client: "redis.Redis", cluster: str) -> Generation:
    """Return the generation that Redis has. Raises `redis.RedisError`."""
    row = cast("list[bytes | None]", client.hmget(
        keys.generation_key(cluster), ["id", "restored", "floor"]))  # fmt: skip
    name, restored, floor = row
    return Generation((name or b"").decode(), int(restored or 0), int(floor or 0))


def write_generation(client: "redis.Redis", cluster: str, generation: Generation) -> None:
    """Write a generation. Raises `redis.RedisError`."""
    values: dict[Any, Any] = asdict(generation)
    client.hset(keys.generation_key(cluster), mapping=values)
