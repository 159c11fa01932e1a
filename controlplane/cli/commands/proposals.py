"""weir proposals show."""

from argparse import Namespace

from controlplane.cli.client.connection import api_of
from controlplane.cli.proposal_output import path_of_proposal, print_proposal, proposal_values


def show_proposal(given: Namespace) -> None:
    """Print one proposal."""
    api = api_of(given)
    cluster, path = path_of_proposal(api, given.id)
    print_proposal(given, api, proposal_values(api, cluster, api.get(path)), given.actions)
