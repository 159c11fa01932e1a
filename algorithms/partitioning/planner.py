"""The partitioning planner: it chooses the key groupings of queries."""

from dataclasses import dataclass
from typing import Final

from algorithms.partitioning.recommendation import Recommend
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import MAX_SEED, Parameters, parameter

PARTITIONING: Final = "partitioning"
RECOMMEND: Final = "recommend"


@dataclass(frozen=True)
class StreamSettings(Parameters):
    """How a generated stream is drawn."""

    seed: int = parameter(
        0, minimum=0, maximum=MAX_SEED,
        help="Seed of a generated stream and of the random choices of a grouping.",
    )  # fmt: skip


PLANNER: Final = Planner(
    name=PARTITIONING,
    title="Change key groupings",
    algorithms=(Algorithm(RECOMMEND, "Recommendation of a key grouping", "offline", Recommend),),
    problem=StreamSettings,
    order=3,
)
