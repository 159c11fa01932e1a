"""The engine: evaluation of queries on Arrow columns, independent of Spark."""
