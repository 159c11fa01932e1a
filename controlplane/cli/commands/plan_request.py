"""weir plan, weir proposals show: a proposal for a cluster that Weir runs, or a described one."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from controlplane.cli.client.api import Api, path_of
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.proposal_output import path_of_proposal, print_proposal, proposal_values
from controlplane.cli.settings import value_of
from controlplane.cli.waiting import Wait, follow

ACTIONS_SHOWN: Final = 20
_WAIT: Final = Wait(
    "/clusters/{cluster}/proposals/{id}", lambda row: row["state"] != "computing",
    lambda row: float(row["progress"]), later="weir proposals show {id}",
)  # fmt: skip


def plan(given: Namespace) -> int:
    """Print a plan for a described cluster, or request a proposal."""
    if (given.input is None) == (given.cluster is None):
        message = "name a cluster that Weir runs, or give --input FILE"
        raise CliError(ExitCode.WRONG, message, advice="weir plan --help")
    if given.url and (given.here or given.input is not None):
        message = "--here and --input compute in this process: omit --url and unset WEIR_URL"
        raise CliError(ExitCode.WRONG, message, advice="weir plan --help")
    if given.input is not None:
        return int(import_module("controlplane.cli.commands.planning").described(given))
    return _request(given)


def _request(given: Namespace) -> int:
    api, path = api_of(given), path_of("/clusters/{cluster}", vars(given))
    parameters = _parameters(given.param, _types(api, path, given))
    body = api.post(f"{path}/proposals", planner=given.planner, algorithm=given.algorithm,
                    parameters=parameters)  # fmt: skip
    own = f"{path}/proposals/{body['id']}"
    if given.here:
        import_module("controlplane.proposals.computation").compute(body["id"])
    if given.wait or given.here:
        follow(api, _WAIT, {"cluster": given.cluster, "id": body["id"]}, given.timeout)
    row = proposal_values(api, given.cluster, api.get(own))
    print_proposal(given, api, row, ACTIONS_SHOWN)
    return ExitCode.REFUSED if row["state"] in ("failed", "no better plan") else ExitCode.DONE


def _types(api: Api, path: str, given: Namespace) -> dict[str, str]:
    """Return the types of the algorithm's parameters by name; those that are unknown are absent."""
    if not given.param:
        return {}
    planners = {row["name"]: row for row in api.get(f"{path}/planners")}
    algorithms = planners.get(given.planner, {}).get("algorithms", ())
    return {
        parameter["name"]: parameter["type"]
        for algorithm in algorithms
        if algorithm["name"] == given.algorithm or (algorithm["default"] and not given.algorithm)
        for parameter in algorithm["parameters"]
    }


def _parameters(given: Sequence[str], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters as values of their types; Weir checks them. Raises `CliError`."""
    parameters: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals:
            raise CliError(ExitCode.WRONG, f"--param {pair}: write NAME=VALUE")
        parameters[name] = text if types.get(name) == "str" else value_of(text)
    return parameters


def show_proposal(given: Namespace) -> None:
    """Print one proposal."""
    api = api_of(given)
    cluster, path = path_of_proposal(api, given.id)
    print_proposal(given, api, proposal_values(api, cluster, api.get(path)), given.actions)
