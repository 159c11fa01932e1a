"""weir clusters start, stop, nodes and limit."""

from argparse import Namespace
from typing import Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.codes import Code, Refused
from controlplane.cli.output import print_answer

_LIMITS: Final = ("max_records", "max_batch_mb")


def set_desired_state(given: Namespace) -> None:
    """Start or stop a cluster's application."""
    path = f"{_path(given)}/{given.verb}"
    cluster = api_of(given).post(path, reason=given.reason)
    slug, desired, state = (cluster[name] for name in ("slug", "desired", "state"))
    text = f"{slug} is to be {desired}; it is {state}"
    print_answer(given, {"desired": desired, "state": state, "cluster": slug}, text)


def set_nodes(given: Namespace) -> None:
    """Change the number of nodes, while the cluster runs."""
    api, path = api_of(given), f"{_path(given)}/nodes"
    before = len(api.get(path))
    api.post(path, nodes=given.nodes, reason=given.reason)
    values = {"cluster": given.cluster, "before": before, "nodes": given.nodes}
    text = f"{given.cluster} has {given.nodes} nodes; it had {before}"
    print_answer(given, values, text)


def limit(given: Namespace) -> None:
    """Set the limits of a cluster's micro-batches."""
    wanted = {name: value for name in _LIMITS if (value := getattr(given, name)) is not None}
    if not wanted:
        where = ["limit: Give --max-records or --max-batch-mb, or both"]
        advice = "mend the values that are named"
        raise Refused(Code.WRONG, "Some values are not valid", where, advice)
    cluster = api_of(given).post(f"{_path(given)}/limits", reason=given.reason, **wanted)
    print_answer(given, {"cluster": cluster["slug"], **{name: cluster[name] for name in _LIMITS}})


def _path(given: Namespace) -> str:
    return path_of("/clusters/{cluster}", vars(given))
