"""Pages of streams: schemas, drop rules and dead letters."""
