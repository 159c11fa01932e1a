"""The partitioning planner: key groupings of split queries, samples and skew of their keys."""
