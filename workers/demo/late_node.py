"""A node that joins a demonstration after its first queries were placed, as when a cluster grows.

It has nothing to do then, so a placement plan has much to gain, and the gain lasts.
"""

from typing import TYPE_CHECKING, Final

from controlplane.wire.keys import cluster_prefix

if TYPE_CHECKING:
    import redis

    from workers.demo.api import WeirApi

_DONE: Final = b"1"


class LateNode:
    """Activates a node once, when no query waits for its placement; survives the process."""

    def __init__(self, api: "WeirApi", client: "redis.Redis", cluster: str, node: int) -> None:
        """Activate the node with this index."""
        self._api = api
        self._client = client
        self._key = f"{cluster_prefix(cluster)}replay-late-node"
        self._node = node
        self._is_done = False

    def step(self) -> None:
        """Activate the node if it is time. Raises `httpx.HTTPError` while Weir is away."""
        if self._is_done:
            return
        if self._client.get(self._key) is None:
            if self._api.pending():
                return
            self._api.activate(self._node)
            self._client.set(self._key, _DONE)
        self._is_done = True
