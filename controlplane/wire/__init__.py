"""The words both planes speak: log, routing deltas, results and telemetry, free of frameworks."""
