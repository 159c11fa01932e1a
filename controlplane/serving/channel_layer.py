"""The channel layer, on connections whose tasks can be cancelled."""

from channels_redis.core import RedisChannelLayer
from redis.asyncio import ConnectionPool

from controlplane.wire.cancellable import make_cancellable


class ChannelLayer(RedisChannelLayer):  # type: ignore[misc]
    """A layer of channels in Redis; a consumer that ends stops to receive."""

    def create_pool(self, index: int) -> ConnectionPool:
        """Return the pool of connections to a host."""
        return make_cancellable(super().create_pool(index))
