"""Endpoints of policies, blackouts, exclusions and decisions of the watch loops."""
