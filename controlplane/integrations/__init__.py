"""Other systems: webhooks, attached Spark jobs, and idempotency keys of requests."""
