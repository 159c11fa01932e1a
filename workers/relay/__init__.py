"""The telemetry relay, from Redis streams of the data plane to samples, rates and browsers.

The relay sends samples to browsers first, and then stores them with their position in the Redis
stream in one transaction, so it continues correctly after a crash. The agent writes Cluster.state;
the relay writes measures.
"""
