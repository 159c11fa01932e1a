"""How long to wait before a dead driver is started again."""

import random
from dataclasses import dataclass, field
from typing import Final

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0
# After a minute of good work, the next death counts as the first.
HEALTHY_S: Final = 60.0


@dataclass(slots=True)
class BackOff:
    """Doubles from one second to a minute; jitter spreads the starts of several drivers."""

    chance: random.Random = field(default_factory=random.Random)
    deaths: int = 0

    def next_delay(self) -> float:
        """Count a death and return the seconds to wait: 75 to 125 % of the doubled delay."""
        delay = min(LONGEST_S, FIRST_S * 2.0 ** min(self.deaths, 10))
        self.deaths += 1
        return delay * self.chance.uniform(0.75, 1.25)

    def reset(self) -> None:
        """Forget the deaths."""
        self.deaths = 0
