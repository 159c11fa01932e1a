"""Clusters: lists, start and stop, partitions and the address of the log."""
