"""The names of all keys of a cluster in Redis.

The braces around the cluster's slug are literal: on a Redis Cluster they keep all keys of one
Weir cluster on one node, which the atomic append of `controlplane.wire.log` needs.
"""

from collections.abc import Callable


def cluster_prefix(cluster: str) -> str:
    """Return the prefix of all keys of `cluster`."""
    return f"weir:{{{cluster}}}:"


def _key(name: str) -> Callable[[str], str]:
    """Return a function that returns the key `name` of a cluster."""
    return lambda cluster: f"{cluster_prefix(cluster)}{name}"


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
schemas_key = _key("schemas")
# The sorted set of versions that have a snapshot.
route_snapshots_key = _key("route:snapshots")
# How far each stream has been committed: hash of event times (ms).
watermarks_key = _key("watermarks")
# The set of queries that have windows in Redis.
stored_key = _key("stored")
# The followed queries: sorted set of ids by deadline (ms).
followers_key = _key("followers")
# The telemetry stream: one entry per micro-batch.
telemetry_key = _key("telemetry")
# The stream of Spark's own progress reports.
progress_key = _key("progress")
# The driver's heartbeat hash.
driver_key = _key("driver")
# The attempts at the micro-batch in progress: hash, see `attempts`.
attempts_key = _key("attempts")
# The number of the micro-batch that reads no records.
skip_key = _key("skip")
# The finished steps of micro-batches: hash of count and batches.
activity_key = _key("activity")
# The generation of the contents: a hash, see `generation`.
generation_key = _key("generation")
# The set of batches with exported states.
transfer_batches_key = _key("transfers")
# The sorted set of dead letters: ids by number.
dead_order_key = _key("dead:order")
# The dead letters themselves: hash of bytes by id.
dead_data_key = _key("dead:data")
# The newest number and the bytes of the dead letters: a hash.
dead_state_key = _key("dead:state")
# The counts of all dead letters ever: hash by `stream:reason`, and `batch`.
dead_counts_key = _key("dead:counts")


def log_key(cluster: str, stream: int) -> str:
    """Return the key of one stream's durable log (a Redis Stream of Arrow blocks)."""
    return f"{log_prefix(cluster)}{stream}"


def log_prefix(cluster: str) -> str:
    """Return the prefix of the keys of the streams' logs; the stream's id follows."""
    return f"{cluster_prefix(cluster)}log:"


def producer_key(cluster: str, producer: str) -> str:
    """Return the key of a producer's last sequences with their positions, and `high`: a hash."""
    return f"{cluster_prefix(cluster)}producer:{producer}"


def kafka_prefixes_key(cluster: str, topic: str) -> str:
    """Return the key of the derived state of a topic at each position: hash of JSON by position."""
    return f"{cluster_prefix(cluster)}kafka:{topic}:prefixes"


def kafka_committed_key(cluster: str, topic: str) -> str:
    """Return the key of the committed position and total of a topic: a hash."""
    return f"{cluster_prefix(cluster)}kafka:{topic}:committed"


def route_delta_key(cluster: str, version: int) -> str:
    """Return the key of the immutable delta that leads to `version`."""
    return f"{cluster_prefix(cluster)}route:{version}"


def route_snapshot_key(cluster: str, version: int) -> str:
    """Return the key of the whole routing table at `version`."""
    return f"{cluster_prefix(cluster)}route:{version}:full"


def windows_key(cluster: str, query: int) -> str:
    """Return the key of the order of one query's windows (a sorted set of members, all scores 0).

    A member is the window's start, its key and the part (`controlplane.wire.results.places`).
    """
    return f"{cluster_prefix(cluster)}windows:{query}"


def rows_key(cluster: str, query: int) -> str:
    """Return the key of the newest row of each part of one query's windows: hash by member.

    It also has data about the whole query: its newest batch, and its final windows.
    """
    return f"{cluster_prefix(cluster)}windows:{query}:rows"


def blocks_key(cluster: str, query: int) -> str:
    """Return the key of the blocks with windows of one query: hash of references by block."""
    return f"{cluster_prefix(cluster)}windows:{query}:blocks"


def page_keys(cluster: str, query: int) -> list[str]:
    """Return the keys of the order, the rows and the blocks of one query's windows."""
    return [windows_key(cluster, query), rows_key(cluster, query), blocks_key(cluster, query)]


def block_key(cluster: str, block: bytes) -> str:
    """Return the key of one block of windows: hash of its `data` and the number of its `refs`."""
    return f"{block_prefix(cluster)}{block.hex()}"


def block_prefix(cluster: str) -> str:
    """Return the prefix of the keys of blocks of windows; the block's name in hex follows."""
    return f"{cluster_prefix(cluster)}block:"


def part_key(cluster: str, query: int, node: int) -> str:
    """Return the key of a node's partial results of a query, for its aggregator node.

    A Redis Stream with an entry per micro-batch, trimmed to the last few.
    """
    return f"{cluster_prefix(cluster)}parts:{query}:{node}"


def feed_key(cluster: str, query: int) -> str:
    """Return the key of a query's change feed, a Redis Stream that exists while followed."""
    return f"{cluster_prefix(cluster)}windows:{query}:feed"


def measures_key(cluster: str, node: int) -> str:
    """Return the key of a node's measures of its tasks and operators, by batch."""
    return f"{cluster_prefix(cluster)}measures:{node}"


def quarantine_key(cluster: str, batch: int) -> str:
    """Return the key of the queries that nodes must not evaluate in a batch: hash by node."""
    return f"{cluster_prefix(cluster)}quarantine:{batch}"


def transfer_key(cluster: str, batch: int, query: int, task: int) -> str:
    """Return the key of a task's state that was exported in a batch: hash of bytes by form."""
    return f"{cluster_prefix(cluster)}transfer:{batch}:{query}:{task}"


def transfers_key(cluster: str, batch: int) -> str:
    """Return the key of the set of tasks that were exported in a batch."""
    return f"{cluster_prefix(cluster)}transfers:{batch}"
