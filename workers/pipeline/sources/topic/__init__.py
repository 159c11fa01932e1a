"""Topics that are read in place: `latest`, `read` and `browse` of a topic."""
