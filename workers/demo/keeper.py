"""Reconciliation of the live queries in Weir with the wanted ones.

The wanted queries are a function of the replay's moment; the live ones are read from Weir once and
then remembered. So an outage, a kill or a lost answer needs no repair: the next step submits the
missing queries and ends the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import redis

from controlplane.wire.keys import cluster_prefix
from workers.demo.api import BULK, WeirApi
from workers.demo.program import Wanted

_DONE: Final = b"1"


@dataclass(frozen=True)
class Changes:
    """The queries to submit, and the names of the queries to end."""

    submit: tuple[Wanted, ...]
    end: tuple[str, ...]


def changes(live: set[str], wanted: Iterable[Wanted]) -> Changes:
    """Return the difference between the live queries and the wanted ones."""
    by_name = {query.name: query for query in wanted}
    missing = tuple(query for name, query in by_name.items() if name not in live)
    return Changes(missing, tuple(sorted(live - by_name.keys())))


class QueryKeeper:
    """Submits and ends the queries whose names begin with one of `prefixes`, in bulk."""

    def __init__(self, api: WeirApi, prefixes: Sequence[str]) -> None:
        self._api = api
        self._prefixes = tuple(prefixes)
        self._live: set[str] | None = None

    def step(self, wanted: Sequence[Wanted]) -> Changes:
        """Make the wanted queries live and end all others; return what was done.

        Raises `httpx.HTTPError` while Weir is unreachable, and `Refused` as on the first step after
        a user ended a query: call again later, the live queries are then read again.
        """
        try:
            return self._apply(wanted)
        except Exception:
            # The last request may have been applied: the next step reads the state first.
            self._live = None
            raise

    def _apply(self, wanted: Sequence[Wanted]) -> Changes:
        if self._live is None:
            self._live = {
                name for prefix in self._prefixes for name in self._api.live_names(prefix)
            }
        due = changes(self._live, wanted)
        # Departures first: they make room.
        for begin in range(0, len(due.end), BULK):
            names = due.end[begin : begin + BULK]
            self._api.end(names)
            self._live.difference_update(names)
        for begin in range(0, len(due.submit), BULK):
            queries = due.submit[begin : begin + BULK]
            self._api.submit(queries)
            self._live.update(query.name for query in queries)
        return due


class LateNodes:
    """Activates nodes once, when no query waits for its placement; survives the process.

    They have nothing to do then, so a placement plan has much to gain, and the gain lasts.
    """

    def __init__(
        self, api: WeirApi, client: "redis.Redis", cluster: str, nodes: Sequence[int]
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
