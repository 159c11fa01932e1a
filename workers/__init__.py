"""What runs by itself: Celery tasks, the Spark application, the relay and the agent."""
