"""Events of NEXMark that nobody sends: `latest` and `read` of a generator."""
