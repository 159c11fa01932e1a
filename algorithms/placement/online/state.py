"""The state of an online placement algorithm: the queries of each server."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from algorithms.checks import as_integers
from algorithms.errors import BadProblem
from algorithms.placement import checks
from algorithms.placement.balance import thresholds
from algorithms.placement.online import board as boards
from algorithms.placement.online.board import ACTIVE, ARRIVALS, CAP, LIVE, Board, leave
from algorithms.placement.online.incidence import has_room, new_incidence, with_room
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Floats, Ints, SmallInts

# Counts that a state has room for at first; it grows automatically.
_ROOM = 64
_MOST_CASES = 16


class OnlineState:
    """Live queries per server and source; a value that copies and pickles.

    Servers have numbers from 0; one that was removed keeps its number, which a new one may take.
    `with_kinds`: whether the query types of each server are counted, which LeastQT needs.
    """

    def __init__(
        self,
        servers: int,
        rates: Any,
        *,
        with_kinds: bool = False,
        capacities: Any = None,
        room: int = _ROOM,
    ) -> None:
        checks.check_servers(servers)
        checked = checks.checked_rates(rates)
        sizes = checks.checked_capacities(capacities, servers)
        self.with_kinds = with_kinds
        self.kind_numbers: dict[tuple[int, ...], int] = {}
        self._equal = bool((sizes == sizes[0]).all())
        self._room_for = 0
        self.board = Board(
            rates=checked,
            sources=new_incidence(len(checked), servers, room),
            kinds=new_incidence(1, servers, room if with_kinds else 0),
            kind_totals=np.zeros(servers, np.int64),
            readers=np.zeros(len(checked), np.int64),
            loads=np.zeros(servers, np.int64),
            traffic=np.zeros((2, servers)),
            active=np.ones(servers, np.bool_),
            capacities=np.ones(servers) if self._equal else sizes.copy(),
            open=np.zeros(-(-servers // 64), np.uint64),
            thresholds=np.zeros(0, np.int64),
            slack=np.full(2, -1.0),
            marks=np.array([0, 0, 0, servers]),
            scratch=np.zeros((2, _MOST_CASES)),
        )

    @classmethod
    def from_counts(
        cls,
        servers: int,
        rates: Any,
        loads: Ints,
        readers: Iterable[tuple[int, int, int]],
        capacities: Any = None,
    ) -> Self:
        """Return the state from sums alone, as a database returns them.

        `loads` int64[k]: queries per server. `readers`: (server, source, how many queries of the
        server read it). `capacities`: as for a problem. Query types are not known then.
        """
        rows = np.array(list(readers), np.int64).reshape(-1, 3)
        state = cls(servers, rates, capacities=capacities, room=max(_ROOM, len(rows)))
        boards.enter_counts(state.board, rows)
        state.board.loads[:] = loads
        state.board.marks[[LIVE, ARRIVALS]] = int(np.sum(loads))
        state.forget_slack()
        return state

    @property
    def rates(self) -> Floats:
        """Traffic of each source, float64[m]."""
        return self.board.rates

    @property
    def servers(self) -> int:
        """Number of active servers, k."""
        return int(self.board.marks[ACTIVE])

    @property
    def loads(self) -> Ints:
        """Live queries by server number, int64[S]."""
        return self.board.loads

    @property
    def traffic(self) -> Floats:
        """f(Q_j) by server number, float64[S]."""
        total: Floats = self.board.traffic.sum(axis=0)
        return total

    @property
    def live(self) -> int:
        """Number of live queries, n."""
        return int(self.board.marks[LIVE])

    @property
    def arrivals(self) -> int:
        """Number of queries ever placed."""
        return int(self.board.marks[ARRIVALS])

    def sources(self, sources: Iterable[int]) -> SmallInts:
        """Return a query's sources as a sorted vector without repetitions, int32.

        Raises `BadProblem` if there are none or one is unknown.
        """
        wanted = np.unique(as_integers("sources", list(sources)))
        if not len(wanted):
            raise BadProblem("sources", "reads no source")
        if wanted[0] < 0 or wanted[-1] >= len(self.rates):
            wrong = wanted[0] if wanted[0] < 0 else wanted[-1]
            raise BadProblem("sources", f"source {wrong} is unknown (0 to {len(self.rates) - 1})")
        return wanted.astype(np.int32)

    def kind_of(self, sources: SmallInts) -> int:
        """Return the number of a query type, -1 where types are not counted."""
        if not self.with_kinds:
            return -1
        number = self.kind_numbers.setdefault(tuple(sources.tolist()), len(self.kind_numbers))
        self._have_kinds(number + 1)
        return number

    def know_types(self, problem: PlacementProblem) -> None:
        """Number the query types as the problem does; the state must be empty."""
        if not self.with_kinds:
            return
        types = problem.types
        rows, indices = types.indptr.tolist(), types.indices.tolist()
        self.kind_numbers = {
            tuple(indices[rows[kind] : rows[kind + 1]]): kind for kind in range(len(types))
        }
        self._have_kinds(len(types))

    def remove(self, sources: Iterable[int], server: int) -> None:
        """Remove a live query of a server.

        Raises `BadProblem` when the server hosts no query that reads all these sources.
        """
        leaving = self.sources(sources)
        self.check_server(server)
        hosted = boards.least_count(self.board, leaving, server)
        if self.loads[server] == 0 or not hosted:
            raise BadProblem("server", f"{server} hosts no query on sources {leaving.tolist()}")
        self.remove_sorted(leaving, server)

    def remove_sorted(self, sources: SmallInts, server: int) -> None:
        """Remove a live query that the server hosts; `sources` as `sources` returns them."""
        leave(self.board, sources, self.kind_of(sources), server)

    def expect(self, nu: float, alpha: float, queries: int = 0) -> None:
        """Compute the balance constraint of equation 7 for at least so many queries."""
        slack = 1 + nu, alpha
        wanted = max(queries, self.live + 1)
        if tuple(self.board.slack.tolist()) == slack and wanted < self._room_for:
            return
        self._room_for = max(2 * wanted, 1024) if wanted >= self._room_for else self._room_for
        limits = np.zeros(0, np.int64)
        if self._equal:
            limits = thresholds(self.servers, nu, alpha, self._room_for)
        self.board = self.board._replace(thresholds=limits)
        self.board.slack[:] = slack
        # No cap is negative, so the next arrival finds the open servers again.
        self.board.marks[CAP] = -1

    def forget_slack(self) -> None:
        """Compute the balance constraint again at the next arrival."""
        sizes = self.board.capacities[self.board.active]
        self._equal = bool((sizes == sizes[0]).all())
        self.board.slack[:] = -1.0

    def have_room(self, entries: int) -> None:
        """Make room for so many more counts of sources, and of types."""
        board = self.board
        if len(board.sources.keys) and not has_room(board.sources, entries):
            self.board = board = board._replace(sources=with_room(board.sources, entries))
        if len(board.kinds.keys) and not has_room(board.kinds, entries):
            self.board = board._replace(kinds=with_room(board.kinds, entries))

    def check_server(self, server: int) -> None:
        """Raise `BadProblem` unless the server is active."""
        known = len(self.board.active)
        if not 0 <= server < known or not self.board.active[server]:
            raise BadProblem("server", f"{server} is unknown (0 to {known - 1})")

    def _have_kinds(self, rows: int) -> None:
        kinds = self.board.kinds
        if rows > len(kinds.holds):
            more = np.zeros((2 * rows, kinds.holds.shape[1]), np.uint64)
            more[: len(kinds.holds)] = kinds.holds
            self.board = self.board._replace(kinds=kinds._replace(holds=more))
