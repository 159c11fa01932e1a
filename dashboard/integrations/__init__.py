"""Pages of webhooks and attached jobs."""
