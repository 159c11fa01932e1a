"""The order of a plan's moves, in which no node gets worse on the way.

What Weir adds to the papers, which look at the beginning and the end of a plan only. A prefix of
the order is what has been done when an operator stops.
"""

from algorithms.ordering.loads import Loads, Move, Unit
from algorithms.ordering.ordering import order_moves
from algorithms.ordering.problem import SLACK, MoveSet, Order, Units

__all__ = ["SLACK", "Loads", "Move", "MoveSet", "Order", "Unit", "Units", "order_moves"]
