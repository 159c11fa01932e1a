"""The order of a plan's moves, in which no node gets worse on the way.

An addition of Weir to the papers, which treat the beginning and the end of a plan only. An operator
can stop after each move.
"""

from algorithms.ordering.greedy import order_moves
from algorithms.ordering.problem import SLACK, MoveSet, Order, WorkUnits
