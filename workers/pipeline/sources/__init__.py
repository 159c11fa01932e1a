"""Sources besides the log of a cluster."""
