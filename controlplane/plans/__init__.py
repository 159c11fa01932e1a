"""Values of proposals: snapshots, plans, states. Nothing here imports Django."""
