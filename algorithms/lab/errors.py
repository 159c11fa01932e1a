"""Errors of the Lab."""

from algorithms.errors import UnknownAlgorithm


class UnknownExperiment(UnknownAlgorithm):
    """No experiment of that name is known for the planner."""

    what = "experiment"
