"""The best moves of a plan within a budget; beyond the papers."""

from algorithms.subset.problem import SubsetProblem, Value
from algorithms.subset.selection import ChosenMoves, choose
