"""The planners of sources in this process, whose threads outlive a pipeline."""

from workers.pipeline.sources.planner import planner_of

_CLUSTERS = ("c", "d")


def forget_planners() -> None:
    """Close the watchers of all sources, as the end of a driver does, and forget the planners."""
    for cluster in _CLUSTERS:
        for _, watcher in planner_of(cluster)._watchers.values():
            watcher.close()
    planner_of.cache_clear()
