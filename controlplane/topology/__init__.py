"""The topology of a cluster: its nodes, streams, queries and edges; `apply` is its only writer."""
