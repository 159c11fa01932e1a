"""The names of all keys of a cluster in Redis.

The braces around the cluster's slug are literal: on a Redis Cluster they keep all keys of one
Weir cluster on one node, which the atomic append of `controlplane.wire.log` needs.
"""

from collections.abc import Callable
from typing import Final

# The keys of the Spark application, as they are declared here.
_OF_DRIVER: Final[list[str]] = []


def cluster_prefix(cluster: str) -> str:
    """Return the prefix of all keys of `cluster`."""
    return f"weir:{{{cluster}}}:"


def driver_patterns(cluster: str) -> list[str]:
    """Return the patterns of the keys of `cluster` that its Spark application reads and writes."""
    return [cluster_prefix(cluster) + name.replace("{}", "*") for name in _OF_DRIVER]


def _key(name: str, *, is_of_driver: bool = True) -> Callable[[str], str]:
    """Return a function that returns the key `name` of a cluster.

    `is_of_driver`: whether the Spark application may use the key.
    """
    return _named(name, is_of_driver=is_of_driver)


def _key_of(name: str, *, is_of_driver: bool = True) -> Callable[[str, int | str], str]:
    """Return a function that returns the key of an object of a cluster, for which `name` has {}."""
    return _named(name, is_of_driver=is_of_driver)


def _named(name: str, *, is_of_driver: bool = True) -> Callable[..., str]:
    if is_of_driver:
        _OF_DRIVER.append(name)
    return lambda cluster, *of: cluster_prefix(cluster) + name.format(*of)


# The log's index: one entry per append, over all streams.
index_key = _key("index")
# The newest event time of each stream: hash of milliseconds by stream.
newest_key = _key("newest")
# The number of all records ever appended to each stream: hash by stream.
counts_key = _key("counts")
# The committed position and total of the pipeline: a hash.
committed_key = _key("committed")
# The newest published routing version (an integer).
route_latest_key = _key("route:latest")
# The streams' schemas, for producers: hash of JSON by stream.
schemas_key = _key("schemas", is_of_driver=False)
# The sorted set of versions that have a snapshot.
route_snapshots_key = _key("route:snapshots")
# How far each stream has been committed: hash of event times (ms).
watermarks_key = _key("watermarks")
# How far sources are read, for pages: hash of JSON by stream.
sources_key = _key("sources")
# The telemetry stream: one entry per micro-batch.
telemetry_key = _key("telemetry")
# The stream of Spark's own progress reports.
progress_key = _key("progress")
# What was skipped of the cluster's entries: hash of counts and last reasons, see `foreign.entries`.
skipped_key = _key("skipped")
# The driver's heartbeat hash.
driver_key = _key("driver")
# The attempts at the micro-batch in progress: hash, see `attempts`.
attempts_key = _key("attempts")
# The number of the micro-batch that reads no records.
skip_key = _key("skip")
# The injected faults of nodes: hash by node, see `node_faults`.
faults_key = _key("faults")
# The finished steps of micro-batches: hash of count and batches.
activity_key = _key("activity")
# The generation of the contents: a hash, see `generation`.
generation_key = _key("generation")
# The states of key groupings that split nodes reported after the newest batch: JSON.
groupings_key = _key("groupings")
# The set of batches with exported states.
transfer_batches_key = _key("transfers")
# The newest requested preview of a query by user: hash of tokens by user name.
previews_key = _key("previews", is_of_driver=False)
# Marks that a worker was requested to compute what placement reaches, and the trade of its plans.
reachable_key = _key("reachable", is_of_driver=False)
trade_request_key = _key("trade:request", is_of_driver=False)
# What plans reach by their moves: JSON.
trade_key = _key("trade", is_of_driver=False)
# The sorted set of dead letters: ids by number.
dead_order_key = _key("dead:order")
# The dead letters themselves: hash of bytes by id.
dead_data_key = _key("dead:data")
# The newest number and the bytes of the dead letters: a hash.
dead_state_key = _key("dead:state")
# The counts of all dead letters ever: hash by `stream:reason`, and `batch`.
dead_counts_key = _key("dead:counts")
# The prefix of the keys of the streams' logs; the stream's id follows.
log_prefix = _key("log:")

# One stream's durable log (a Redis Stream of Arrow blocks), by stream.
log_key = _key_of("log:{}")
# The immutable delta that leads to a routing version, and the whole table at it, by version.
route_delta_key = _key_of("route:{}")
route_snapshot_key = _key_of("route:{}:full")
# A node's measures of its tasks, a Redis Stream with an entry per batch, by node.
measures_key = _key_of("measures:{}")
# Samples of a query's keys, a Redis Stream with an entry per batch and split node, by query.
key_samples_key = _key_of("keys:{}")
# The queries that nodes must not evaluate in a batch (hash by node), by batch.
quarantine_key = _key_of("quarantine:{}")
# The set of tasks that were exported in a batch, by batch.
transfers_key = _key_of("transfers:{}")

# The response of a requested preview (a list of one text), by token.
preview_key = _key_of("preview:{}", is_of_driver=False)

# A producer's last sequences with their positions, and `high`: a hash, by producer.
producer_key = _key_of("producer:{}", is_of_driver=False)
# The derived state of a topic of Kafka at each position (hash of JSON by position), by topic.
kafka_prefixes_key = _key_of("kafka:{}:prefixes")
# The committed position and total of a topic of Kafka: a hash, by topic.
kafka_committed_key = _key_of("kafka:{}:committed")
# By query and node, and by batch, query and task.
_part_key = _named("parts:{}:{}")
_transfer_key = _named("transfer:{}:{}:{}")


def part_key(cluster: str, query: int, node: int) -> str:
    """Return the key of a node's partial results of a query, for its aggregator node.

    A Redis Stream with an entry per micro-batch, trimmed to the last few.
    """
    return _part_key(cluster, query, node)


def transfer_key(cluster: str, batch: int, query: int, task: int) -> str:
    """Return the key of a task's state that was exported in a batch: hash of bytes by form."""
    return _transfer_key(cluster, batch, query, task)
