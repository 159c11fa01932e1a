"""The telemetry relay: Redis streams of the data plane to samples, rates and browsers.

A sample goes to the browsers first and to the database then; its place in the Redis stream is
stored in the same transaction, so a relay that is killed at any point continues with the next one.
Cluster.state is written by the agent, which owns the processes; the relay writes what they measure.
"""
