"""Online placement, section 5: each query is placed when it arrives and stays."""

from algorithms.placement.online.load_limits import LeastCostWithinLoads, LoadLimits
from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.placement.online.reservation import Reservation
from algorithms.placement.online.rules import LeastCost, LeastQueryTypes, LeastSource, OnRand
from algorithms.placement.online.state import OnlineState
