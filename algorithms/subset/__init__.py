"""The best moves of a plan within a budget; beyond the papers."""

from algorithms.subset.choosing import Choice, choose
from algorithms.subset.problem import SubsetProblem, Value

__all__ = ["Choice", "SubsetProblem", "Value", "choose"]
