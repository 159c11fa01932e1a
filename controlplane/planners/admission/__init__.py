"""The admission planner: forecasts and redirections of streams, split nodes, what-if."""
