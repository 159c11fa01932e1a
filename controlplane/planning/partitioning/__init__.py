"""The input and the problems of the partitioning planner."""
