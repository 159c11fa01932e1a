"""A history replayed with LeastCost by looking at every server: slow, and easy to check."""

from fractions import Fraction
from itertools import pairwise

from algorithms.lab.placement.workloads.events import Happening, History
from tests.algorithms.placement.online.plain import PlainCluster, Query


class Replay:
    """Where the queries of a history live; rates and capacities are 1. `moved`: for servers."""

    def __init__(self, history: History, nu: str, alpha: int) -> None:
        self.problem = history.problem
        rates = [Fraction(1)] * len(self.problem.rates)
        servers = dict.fromkeys(range(self.problem.servers), Fraction(1))
        self.cluster = PlainCluster(rates, Fraction(nu), Fraction(alpha), servers)
        self.homes: dict[int, int] = {}
        self.moved = 0

    def happen(self, kind: int, subject: int) -> None:
        cluster = self.cluster
        if kind == Happening.ARRIVAL:
            self.homes[subject] = cluster.place("least_cost", self.sources(subject))
        elif kind == Happening.DEPARTURE:
            cluster.hosted[self.homes.pop(subject)].remove(self.sources(subject))
        elif kind == Happening.SERVER_ADDED:
            cluster.capacities[subject], cluster.hosted[subject] = Fraction(1), []
        else:
            del cluster.capacities[subject], cluster.hosted[subject]
            orphans = sorted(query for query, home in self.homes.items() if home == subject)
            self.moved += len(orphans)
            for query in orphans:
                self.happen(Happening.ARRIVAL, query)

    def sources(self, query: int) -> Query:
        return tuple(self.problem.sources_of(query).tolist())

    def replication(self) -> float | None:
        """Deliveries over sources read: rates are 1."""
        read = [self.cluster.read_by(server) for server in self.cluster.hosted]
        live = set[int]().union(*read)
        return sum(map(len, read)) / len(live) if live else None


def plain_course(
    history: History, nu: str, alpha: int, samples: int
) -> tuple[list[float | None], Replay]:
    """Return the replication factor at each moment, and the replay at its end."""
    replay = Replay(history, nu, alpha)
    kinds, subjects = history.events.kinds.tolist(), history.events.subjects.tolist()
    factors = []
    for begin, end in pairwise([0, *history.positions(samples).tolist()]):
        for event in range(begin, end):
            replay.happen(kinds[event], subjects[event])
        factors.append(replay.replication())
    return factors, replay
