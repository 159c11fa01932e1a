"""The shedding planner on clusters: its input, its network, its ladder."""
