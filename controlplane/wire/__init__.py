"""The interface of both planes: log, routing deltas, results and telemetry, without frameworks."""
