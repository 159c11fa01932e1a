"""Pages of the fleet and of one cluster."""
