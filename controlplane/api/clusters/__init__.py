"""Endpoints of clusters: nodes, samples, routing versions, health and stuck batches."""
