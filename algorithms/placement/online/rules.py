"""The algorithms of section 5.1 and the random baseline of section 6.1."""

from dataclasses import dataclass
from typing import ClassVar, Final

from algorithms.placement.online import server_choice
from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.vocabulary import parameter

_LARGEST_SEED: Final = 2**63 - 1


@dataclass(frozen=True)
class LeastCost(OnlinePlacement):
    """Least incremental cost first, section 5.1: the server to which the query adds least."""

    prefer: str = parameter(
        "load",
        title="Among equals",
        help="Among servers of equal incremental cost: the least loaded, as in the paper; or one "
        "that has the sources with fewer readers, and of those the least loaded.",
        choices={"load": "Least loaded", "rare": "Fewer readers of its sources"},
    )

    @property
    def rule(self) -> int:
        """Least incremental cost."""
        return server_choice.LEAST_COST_RARE if self.prefer == "rare" else self.metric


@dataclass(frozen=True)
class LeastSource(OnlinePlacement):
    """Least source cost per server first, section 5.1: the server with least traffic then."""

    metric: ClassVar[int] = server_choice.LEAST_SOURCE


@dataclass(frozen=True)
class LeastQueryTypes(OnlinePlacement):
    """Least number of query types first (LeastQT), section 5.1."""

    needs_kinds: ClassVar[bool] = True
    metric: ClassVar[int] = server_choice.LEAST_QT


@dataclass(frozen=True)
class OnRand(OnlinePlacement):
    """Random baseline, section 6.1: any server that keeps the balance constraint."""

    metric: ClassVar[int] = server_choice.ON_RAND

    seed: int = parameter(
        0, help="Same seed, same arrivals, same servers.", minimum=0, maximum=_LARGEST_SEED
    )
