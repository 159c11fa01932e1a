"""Endpoints of the Lab."""
