"""Words and chips of proposals: states, obstacles, kinds of actions."""

from collections.abc import Mapping
from typing import Final

from controlplane.topology.applicability import Obstacle

_OBSTACLES: Final[Mapping[str, str]] = {
    Obstacle.ENDED: "query ended",
    Obstacle.CHANGED: "object changed",
    Obstacle.NO_NODE: "node removed",
}
# By kind of action: the short name in the diff, and the title of its group.
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "move_tasks": ("move", "Query moves"),
    "assign_stream": ("redirect", "Stream redirects"),
    "assign_partition": ("redirect", "Partition redirects"),
    "set_drop_rule": ("drop", "Drop rules"),
    "set_ladder": ("ladder", "Shedding plan"),
    "set_key_grouping": ("group", "Key grouping"),
    "set_aggregator": ("aggregate", "Aggregator nodes"),
    "set_aggregators": ("aggregate", "Aggregator nodes"),
    "set_task_count": ("tasks", "Numbers of tasks"),
    "set_capacity": ("capacity", "Capacities"),
    "set_node_active": ("node", "Active nodes"),
    "set_node_count": ("nodes", "Numbers of nodes"),
    "set_split_count": ("splits", "Numbers of split nodes"),
    "set_split_capacity": ("capacity", "Capacities of split nodes"),
}


def obstacle_words(code: str) -> str:
    """Return why an action is skipped, in two words."""
    return _OBSTACLES.get(code, code)


def kind_words(kind: str) -> tuple[str, str]:
    """Return the short name of a kind of action, and the title of its group."""
    return KINDS.get(kind, (kind.replace("_", " "), kind.replace("_", " ").capitalize()))
