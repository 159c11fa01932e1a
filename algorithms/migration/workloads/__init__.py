"""Workloads for migrations: tasks with work and state, and the numbers of nodes over time."""

from algorithms.migration.workloads.demand import node_numbers
from algorithms.migration.workloads.tasks import frequent_patterns, word_count

__all__ = ["frequent_patterns", "node_numbers", "word_count"]
