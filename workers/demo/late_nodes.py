"""Nodes that join a demonstration after its first queries were placed, as when a cluster grows.

They have nothing to do then, so a placement plan has much to gain, and the gain lasts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from controlplane.wire.keys import cluster_prefix

if TYPE_CHECKING:
    import redis

    from workers.demo.api import WeirApi

_DONE: Final = b"1"


class LateNodes:
    """Activates nodes once, when no query waits for its placement; survives the process."""

    def __init__(
        self, api: "WeirApi", client: "redis.Redis", cluster: str, nodes: Sequence[int]
    ) -> None:
        """Activate the nodes with these indices."""
        self._api = api
        self._client = client
        self._key = f"{cluster_prefix(cluster)}replay-late-nodes"
        self._nodes = nodes
        self._is_done = False

    def step(self) -> None:
        """Activate the nodes if it is time. Raises `httpx.HTTPError` while Weir is away."""
        if self._is_done:
            return
        if self._client.get(self._key) is None:
            if self._api.pending():
                return
            for node in self._nodes:
                self._api.activate(node)
            self._client.set(self._key, _DONE)
        self._is_done = True
