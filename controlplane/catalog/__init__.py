"""Streams and queries of a cluster: lists, definitions, names, and checks of query text."""
