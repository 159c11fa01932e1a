"""How annealing cools."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Temperature and power fall from their first values as the share done grows.

    `hot`, `cold`: temperatures in units of the mean rate of what a piece reads. `power`: the first
    power of the annealed sum. `settling`: the last share of the steps, which take only
    improvements of the traffic itself.
    """

    hot: float
    cold: float
    power: float = 0.5
    settling: float = 0.05

    def temperature(self, done: float) -> float:
        """Return the temperature after a share of the steps; it falls by equal factors."""
        cooled = done / (1 - self.settling)
        return self.hot * (self.cold / self.hot) ** cooled if cooled < 1 else 0.0

    def exponent(self, done: float) -> float:
        """Return the power after a share of the steps; it falls by equal differences."""
        return max(0.0, self.power * (1 - done / (1 - self.settling)))


# The first does best where sources are spread at random over the queries, the second where
# queries fall into groups (map tiles along a trip) or few types are large.
SCHEDULES = (Schedule(hot=0.3, cold=0.05), Schedule(hot=0.1, cold=0.02))
