"""The kinds of sinks: one module each, with the interface of `destination.py`."""
