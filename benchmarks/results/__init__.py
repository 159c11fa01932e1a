"""The speed of results: the store that the pipeline writes, and sinks."""
