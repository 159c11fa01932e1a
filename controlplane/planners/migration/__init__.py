"""The migration planner: moves of the tasks of split queries with their state."""
