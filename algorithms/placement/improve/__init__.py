"""Improvement of a running placement within limits, by few moves: beyond the paper."""

from algorithms.placement.improve.problem import ImproveProblem, Measured, MeasureLimits, MoveBudget
from algorithms.placement.improve.search import Goal, Improve, Improvement
