"""The split nodes: the Spark source that reads the log and dispatches its records to nodes."""
