"""Endpoints of streams: schemas, records and dead letters."""
