"""Other systems: webhooks, attached Spark jobs, and requests that are sent again."""
