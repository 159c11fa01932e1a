"""The messages between split nodes, nodes and the sink."""
