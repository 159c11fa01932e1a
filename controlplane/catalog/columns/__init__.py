"""The columns of the lists of queries and of streams, each declared once."""

from controlplane.catalog.columns import queries, streams
