"""Events of NEXMark that nobody sends: `latest`, `read` and `browse` of a generator."""
