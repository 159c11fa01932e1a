"""The nodes: one stateful call per node and micro-batch."""
