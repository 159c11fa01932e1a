"""Webhooks, in a worker of their own that imports no planner."""
