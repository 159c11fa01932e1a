"""Health of a cluster: incidents, losses of data, failed queries and batches."""
