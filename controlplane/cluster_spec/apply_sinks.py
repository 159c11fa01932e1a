"""Sinks of a described cluster: missing ones are added, the settings of others are changed."""

from collections.abc import Sequence

from controlplane.access.roles import Actor
from controlplane.catalog.queries import query_by_name
from controlplane.cluster_spec.connection_parts import SinkPart
from controlplane.cluster_spec.report import ApplyReport, apply_each, count_text
from controlplane.models import Cluster, Sink
from controlplane.models.query import LIVE_STATES
from controlplane.sinks import service
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.service import SinkSpec


def apply_sinks(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[SinkPart],
    before: Sequence[SinkPart],
    report: ApplyReport,
) -> None:
    """Add and change sinks as described; a new one starts with what changes from now on."""
    known = {(part.query, part.name): part for part in before}
    wanted = [(index, part) for index, part in enumerate(parts)
              if not _is_applied(part, known.get((part.query, part.name)))]  # fmt: skip

    def make(part: SinkPart) -> None:
        query = query_by_name(cluster, part.query)
        spec = SinkSpec(**part.model_dump(exclude={"query"}))
        if (part.query, part.name) not in known:
            service.add(actor, query, spec, is_checked=True)
        else:
            row = service.sink_of(query, part.name)
            sink = service.change(actor, row, spec, is_checked=True)
            service.set_paused(actor, sink, paused=part.paused)

    apply_each("sinks", wanted, make)
    unnamed = len(known.keys() - {(part.query, part.name) for part in parts})
    report.left += count_text(
        unnamed,
        "sink is not named by the description: it goes on",
        "sinks are not named by the description: they go on",
    )


def check_sinks(cluster: Cluster | None, parts: Sequence[SinkPart]) -> None:
    """Raise `BadDescription` for wrong settings of sinks, and destinations that are not listed.

    Before the transaction: resolving a name takes seconds, and others wait for its end.
    """
    rows = Sink.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES)
    known = {(query, name): settings for query, name, settings
             in rows.values_list("query__name", "name", "settings")}  # fmt: skip

    def check(part: SinkPart) -> None:
        spec = SinkSpec(**part.model_dump(exclude={"query"}))
        if part.settings != known.get((part.query, part.name)):
            service.check(spec)

    apply_each("sinks", enumerate(parts), check)


def _is_applied(part: SinkPart, known: SinkPart | None) -> bool:
    """Return whether a sink is as described, with the defaults of its settings."""
    if known is None or part.kind != known.kind:
        return False
    settings = KINDS[part.kind].checked(part.settings).model_dump(mode="json")
    return part.model_copy(update={"settings": settings}) == known
