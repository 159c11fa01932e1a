"""Measures of tasks by the data plane."""

import logging
from collections.abc import Mapping

from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.models import Cluster
from controlplane.wire.measures import TaskMeasure, read_tasks

logger = logging.getLogger(__name__)

# By query and task.
Measured = Mapping[tuple[int, int], TaskMeasure]


def measured_tasks(cluster: Cluster) -> Measured:
    """Return the last measures by query and task, none if Redis is unavailable."""
    nodes = list(cluster.nodes.values_list("index", flat=True))
    try:
        measures = read_tasks(redis_client(), cluster.slug, nodes)
    except (RedisError, OSError) as away:
        logger.warning("Reading measures of %s failed: %s", cluster.slug, away)
        return {}
    return {(measure.query, measure.task): measure for measure in measures}
