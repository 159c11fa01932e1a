"""A producer's schemas of streams: arguments, or published in the site's Redis.

The control plane writes each stream's schema to one hash per cluster when it publishes the routing
version with the schema.
"""

from collections.abc import Mapping
from typing import cast

import redis

from controlplane.wire import keys
from controlplane.wire.errors import LogUnavailable, UnknownSchema
from controlplane.wire.schema import StreamSchema


class SchemaRegistry:
    """The schemas of one cluster's streams, each read once and again on `refresh`."""

    def __init__(
        self,
        client: "redis.Redis | None",
        cluster: str,
        given: Mapping[int, StreamSchema] | None = None,
    ) -> None:
        """Read from the hash of `client` (None: nowhere); `given` schemas take precedence."""
        self._client = client
        self._cluster = cluster
        self._given = dict(given or {})
        self._known: dict[int, StreamSchema] = {}

    def of(self, stream: int) -> StreamSchema:
        """Return the schema of a stream. Raises `UnknownSchema` or `LogUnavailable`."""
        result = self._given.get(stream) or self._known.get(stream)
        return result or self.refresh(stream)

    def refresh(self, stream: int) -> StreamSchema:
        """Return the schema as it is published now; raises as `of`."""
        if stream in self._given:
            return self._given[stream]
        text = self._published(stream)
        if text is None:
            raise UnknownSchema(self._cluster, stream)
        result = self._known[stream] = StreamSchema.from_text(text)
        return result

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def _published(self, stream: int) -> bytes | None:
        if self._client is None:
            return None
        try:
            result = self._client.hget(keys.schemas_key(self._cluster), str(stream))
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        return cast("bytes | None", result)
