"""Records sent over HTTP, and dead letters."""
