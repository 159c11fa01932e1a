"""The log of a cluster, in Redis or in Kafka: one partition of all streams."""
