"""The agent, which runs the desired Spark driver of each cluster."""
