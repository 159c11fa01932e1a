"""What runs on its own: Celery tasks, the Spark application, the relay and the agent."""
