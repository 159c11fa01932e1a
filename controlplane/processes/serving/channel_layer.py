"""The channel layer, on connections whose tasks can be cancelled."""

import re
from typing import Any, Final

from channels_redis.core import RedisChannelLayer
from redis.asyncio import ConnectionPool

from controlplane.connections import redis_client
from controlplane.wire.cancellable import make_cancellable
from controlplane.wire.foreign.entries import SITE, EntryLocation, decoded

# The types that Weir sends; those of a server, such as websocket.disconnect, are not among them.
_TYPES: Final = re.compile(r"(access|cluster|fleet)\.\w+")


class ChannelLayer(RedisChannelLayer):  # type: ignore[misc]
    """A layer of channels in Redis; a consumer that ends stops to receive."""

    def create_pool(self, index: int) -> ConnectionPool:
        """Return the pool of connections to a host."""
        return make_cancellable(super().create_pool(index))

    def deserialize(self, message: bytes) -> dict[str, Any]:
        """Return a message; what Weir did not send is skipped, and reaches no consumer."""
        content = decoded(
            redis_client(), SITE, EntryLocation.BROWSERS, self._message_of, message, object()
        )
        return {"type": "skipped"} if content is None else content

    def _message_of(self, data: bytes) -> dict[str, Any]:
        message: dict[str, Any] = super().deserialize(data)
        if not _TYPES.fullmatch(message["type"]):
            raise ValueError("has a type that Weir does not send")
        to = message.get("__asgi_channel__", "")
        names = to if isinstance(to, list) else [to]
        if not all(isinstance(name, str) for name in names):
            raise TypeError("names no channels")
        return message
