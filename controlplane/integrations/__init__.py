"""Other systems: webhooks and attached Spark jobs."""
