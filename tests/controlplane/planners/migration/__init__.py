"""The adapter of the migration planner."""
