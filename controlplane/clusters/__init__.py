"""Clusters: lists, start and stop, partitions, and the URL of the log."""
