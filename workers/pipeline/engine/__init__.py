"""The engine: what queries compute, batch-wise on Arrow columns; it knows nothing of Spark."""
