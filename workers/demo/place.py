"""Where the replay stands, kept in Redis beside the log it feeds."""

from typing import cast

import redis

from controlplane.wire.keys import cluster_prefix


class StoredMoment:
    """The moment up to which reports are in the log; survives the process."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._key = f"{cluster_prefix(cluster)}replay"

    def read(self) -> int:
        """Return the moment; just before the first report when none was stored."""
        stored = cast("bytes | None", self._client.get(self._key))
        return -1 if stored is None else int(stored)

    def write(self, moment: int) -> None:
        """Remember the moment."""
        self._client.set(self._key, moment)
