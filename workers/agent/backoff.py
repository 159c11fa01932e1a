"""Exponential back-off of restarts of drivers."""

import random
from dataclasses import dataclass, field
from typing import Final

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0
# After a healthy minute, the next failure counts as the first.
HEALTHY_S: Final = 60.0


@dataclass(slots=True)
class BackOff:
    """A delay that doubles from a second to a minute, with jitter."""

    chance: random.Random = field(default_factory=random.Random)
    deaths: int = 0

    def next_delay(self) -> float:
        """Count a failure and return the seconds to wait: 75 to 125 % of the doubled delay."""
        delay = min(LONGEST_S, FIRST_S * 2.0 ** min(self.deaths, 10))
        self.deaths += 1
        return delay * self.chance.uniform(0.75, 1.25)

    def reset(self) -> None:
        """Reset the count of failures."""
        self.deaths = 0
