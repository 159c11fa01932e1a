"""Sinks: results of queries leave Weir for other systems, exactly once where these allow it."""
