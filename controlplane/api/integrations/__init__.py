"""Endpoints for other systems: webhooks, attached jobs and Prometheus."""
