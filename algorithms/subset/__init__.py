"""Which moves of a plan to make when not all can be afforded; what Weir adds to the papers."""

from algorithms.subset.choosing import Choice, choose
from algorithms.subset.problem import SubsetProblem, Value

__all__ = ["Choice", "SubsetProblem", "Value", "choose"]
