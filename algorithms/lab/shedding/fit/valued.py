"""The part of a query network that yields results with a weight."""

from algorithms.shedding.network import Network, Operator, OperatorKind


def valued_network(network: Network) -> Network | None:
    """Return the network without what yields no weighted result; None if nothing does.

    A plan that drops all records before the removed operators loses nothing.
    """
    useful = _useful(network)
    operators = tuple(
        _with_useful_sources(operator, useful)
        for operator in network.operators
        if operator.name in useful
    )
    if not operators:
        return None
    read = {source for operator in operators for source in operator.sources}
    nodes = {operator.node for operator in operators}
    return Network(
        {name: capacity for name, capacity in network.nodes.items() if name in nodes},
        tuple(name for name in network.inputs if name in read),
        operators,
        {name: weight for name, weight in network.outputs.items() if name in useful},
    )


def _useful(network: Network) -> set[str]:
    """Return the operators and inputs whose records yield a weighted result."""
    reached = {*network.inputs}
    for operator in network.order:
        if any(gain > 0 and source in reached for source, gain in _gains(operator)):
            reached.add(operator.name)
    useful = {name for name, weight in network.outputs.items() if weight > 0 and name in reached}
    for operator in reversed(network.order):
        if operator.name in useful:
            useful.update(source for source, gain in _gains(operator)
                          if gain > 0 and source in reached)  # fmt: skip
    return useful


def _gains(operator: Operator) -> list[tuple[str, float]]:
    return [*zip(operator.sources, operator.gains, strict=True)]


def _with_useful_sources(operator: Operator, useful: set[str]) -> Operator:
    """Return an operator without the sources from whose records no result follows."""
    gains = dict(_gains(operator))
    kept = tuple(source for source in operator.sources if gains[source] > 0 and source in useful)
    if kept == operator.sources or not kept:
        return operator
    # A join with one source left multiplies the records, as a chain operator does.
    return Operator(operator.name, operator.node, operator.cost, gains[kept[0]], kept,
                    OperatorKind.UNION if len(kept) > 1 else OperatorKind.CHAIN)  # fmt: skip
