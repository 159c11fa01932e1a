"""Online placement, section 5: each query is placed when it arrives and stays."""

from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.placement.online.rules import (
    LeastCost,
    LeastCostWithinLoads,
    LeastQueryTypes,
    LeastSource,
    LoadLimits,
    OnRand,
    Reservation,
)
from algorithms.placement.online.state import OnlineState
