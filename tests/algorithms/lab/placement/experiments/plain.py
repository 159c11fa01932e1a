"""A history replayed with LeastCost, from the text of section 5 alone: slow, and easy to check."""

from fractions import Fraction
from itertools import pairwise

from algorithms.lab.placement.workloads.events import Happening, History


class PlainCluster:
    """Who lives where, as dictionaries; every figure is counted anew."""

    def __init__(self, history: History, nu: str, alpha: int) -> None:
        self.problem = history.problem
        self.nu, self.alpha = Fraction(nu), alpha
        self.hosted: dict[int, list[int]] = {at: [] for at in range(self.problem.servers)}
        self.moved = 0

    def happen(self, kind: int, subject: int) -> None:
        if kind == Happening.ARRIVAL:
            self.place(subject)
        elif kind == Happening.DEPARTURE:
            self.hosted[self.home(subject)].remove(subject)
        elif kind == Happening.SERVER_ADDED:
            self.hosted[subject] = []
        else:
            orphans = sorted(self.hosted.pop(subject))
            self.moved += len(orphans)
            for query in orphans:
                self.place(query)

    def place(self, query: int) -> None:
        """Equation 7, least added cost, least load, lowest number."""
        live = 1 + sum(map(len, self.hosted.values()))
        mean = Fraction(live, len(self.hosted))
        most = max(mean + self.alpha, (1 + self.nu) * mean)
        within = [at for at in self.hosted if len(self.hosted[at]) + 1 <= most]
        ranked = {at: (self.added(at, query), len(self.hosted[at]), at) for at in within}
        least_loaded = {at: (len(self.hosted[at]), at) for at in self.hosted}
        chosen = min(ranked, key=ranked.__getitem__) if within else None
        home = min(least_loaded, key=least_loaded.__getitem__) if chosen is None else chosen
        self.hosted[home].append(query)

    def added(self, server: int, query: int) -> int:
        there = self.read(self.hosted[server])
        return len(set(self.problem.sources_of(query).tolist()) - there)

    def home(self, query: int) -> int:
        return next(at for at, queries in self.hosted.items() if query in queries)

    def read(self, queries: list[int]) -> set[int]:
        return {source for query in queries for source in self.problem.sources_of(query).tolist()}

    def replication(self) -> float | None:
        """Deliveries over sources read: rates are 1."""
        deliveries = sum(len(self.read(queries)) for queries in self.hosted.values())
        live = self.read([query for queries in self.hosted.values() for query in queries])
        return deliveries / len(live) if live else None


def plain_course(
    history: History, nu: str, alpha: int, samples: int
) -> tuple[list[float | None], PlainCluster]:
    """Return the replication factor at each moment, and the cluster at the end."""
    cluster = PlainCluster(history, nu, alpha)
    kinds, subjects = history.events.kinds.tolist(), history.events.subjects.tolist()
    factors = []
    for begin, end in pairwise([0, *history.positions(samples).tolist()]):
        for event in range(begin, end):
            cluster.happen(kinds[event], subjects[event])
        factors.append(cluster.replication())
    return factors, cluster
