"""Results of queries: their windows, which of them are final, their changes and retention."""
