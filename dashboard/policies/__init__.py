"""Pages of policies and of the decisions of watch loops."""
