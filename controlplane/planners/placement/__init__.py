"""The placement planner: the node of each query of one task."""
