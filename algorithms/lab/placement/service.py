"""Placement as a service: named queries arrive and depart, servers are added and removed."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from algorithms.errors import BadProblem
from algorithms.lab.placement.arrivals import place_sorted
from algorithms.lab.placement.servers import add_server, check_removable, remove_server
from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.placement.online.state import OnlineState
from algorithms.vocabulary import SmallInts


class _Home(NamedTuple):
    server: int
    sources: SmallInts
    arrival: int


class PlacementService:
    """The server of each query, updated event by event.

    Every change is checked first and either made whole or refused with `BadProblem`.
    """

    def __init__(
        self, algorithm: OnlinePlacement, servers: int, rates: Any, capacities: Any = None
    ) -> None:
        self.algorithm = algorithm
        self.state = OnlineState(
            servers, rates, with_kinds=algorithm.needs_kinds, capacities=capacities
        )
        self._homes: dict[Hashable, _Home] = {}

    def __len__(self) -> int:
        return len(self._homes)

    def server_of(self, query: Hashable) -> int:
        """Return the server of a query. Raises `BadProblem` for an unknown one."""
        return self._home(query).server

    def place(self, query: Hashable, sources: Iterable[int]) -> int:
        """Place an arriving query and return its server."""
        if query in self._homes:
            raise BadProblem(f"query {query!r}", "is placed already")
        wanted = self.state.sources(sources)
        arrival = self.state.arrivals
        server = place_sorted(self.algorithm, self.state, wanted)
        self._homes[query] = _Home(server, wanted, arrival)
        return server

    def remove(self, query: Hashable) -> None:
        """Remove a departing query."""
        home = self._home(query)
        self.state.remove_sorted(home.sources, home.server)
        del self._homes[query]

    def add_server(self, capacity: float = 1.0) -> int:
        """Add a server and return its number; nothing moves."""
        return add_server(self.state, capacity)

    def remove_server(self, server: int) -> dict[Hashable, int]:
        """Remove a server, failed or not, and place its queries again in order of arrival.

        Returns the new server of each.
        """
        check_removable(self.state, server)
        homes = self._homes.items()
        orphans = [(home.arrival, query) for query, home in homes if home.server == server]
        orphans.sort(key=lambda orphan: orphan[0])
        remove_server(self.state, server)
        moved = {}
        for arrival, query in orphans:
            sources = self._homes[query].sources
            moved[query] = place_sorted(self.algorithm, self.state, sources)
            self._homes[query] = _Home(moved[query], sources, arrival)
        return moved

    def _home(self, query: Hashable) -> _Home:
        if query not in self._homes:
            raise BadProblem(f"query {query!r}", "is not placed")
        return self._homes[query]
