"""The process that writes results to sinks."""
