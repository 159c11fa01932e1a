"""Which queries of a proposal hold state that a move would begin anew."""

from redis import RedisError

from controlplane.connections import redis_client
from controlplane.models import Proposal
from controlplane.wire.results import has_results


def stateful_moves(proposal: Proposal) -> int | None:
    """Return how many of the queries to move hold state; None while Redis cannot say."""
    ids = [move["query"] for move in proposal.moves]
    if not ids:
        return 0
    try:
        return len(has_results(redis_client(), proposal.cluster.slug, ids))
    except RedisError:
        return None
