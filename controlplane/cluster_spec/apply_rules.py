"""Drop rules, blackouts and exclusions of a described cluster.

Missing rows are created; exclusions and dropped shares of edges are set as described.
What is over by now is not made: an export leaves it out as well.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from controlplane.access.roles import Actor
from controlplane.cluster_spec.document import BlackoutPart, DropPart, ExclusionPart
from controlplane.cluster_spec.report import ImportReport, apply_each, count_text, noted
from controlplane.models import Cluster
from controlplane.policies.blackouts import add_blackout
from controlplane.policies.exclusions import add_exclusion
from controlplane.topology import drop_rules
from controlplane.topology.drop_rules import DropSpec


def apply_drop_rules(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[DropPart],
    before: Sequence[DropPart],
    report: ImportReport,
) -> None:
    """Apply the described drop rules; a rule of a query that is not live is rejected."""
    known = {part.edge: part for part in before}
    wanted = [
        (index, part)
        for index, part in enumerate(parts)
        if not _is_applied(part, known.get(part.edge))
    ]
    rows = {stream.name: stream for stream in cluster.streams.all()} if wanted else {}

    def make(part: DropPart) -> None:
        spec = DropSpec(part.share, part.window_s, part.slide_s, part.batch)
        drop_rules.set_drop(actor, rows[part.stream], spec, part.query, part.reason)

    apply_each("drops", wanted, make)
    noted(
        report.created, "drops", [_share_text(part) for _, part in wanted if part.edge not in known]
    )
    noted(report.changed, "drops", [_share_text(part) for _, part in wanted if part.edge in known])
    report.left += _unnamed("drop", len(known.keys() - {part.edge for part in parts}))


def _is_applied(part: DropPart, known: DropPart | None) -> bool:
    """Return True if a drop rule is as described, whatever its reason."""
    if known is None or (part.share, part.batch) != (known.share, known.batch):
        return False
    if _ms(part.window_s) != _ms(known.window_s):
        return False
    # Left out, the windows of a split edge are those of its query, the others do not overlap.
    default = known if part.query else part
    return _ms(part.slide_s or default.slide_s or part.window_s) == _ms(
        known.slide_s or known.window_s
    )


def _ms(seconds: float | None) -> int:
    return round((seconds or 0) * 1000)


def _share_text(part: DropPart) -> str:
    return f"{part.stream} to {part.query}" if part.query else part.stream


def apply_blackouts(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[BlackoutPart],
    before: Sequence[BlackoutPart],
    report: ImportReport,
    now: datetime,
) -> None:
    """Add the blackouts whose time range does not exist yet."""
    present = Counter(part.period for part in before)
    reasons = {(part.period, part.reason) for part in before}
    missing: list[tuple[int, BlackoutPart]] = []
    over = otherwise = 0
    for index, part in enumerate(parts):
        if not part.cron and part.ends_at is not None and part.ends_at <= now:
            over += 1
        elif present[part.period]:
            present[part.period] -= 1
            otherwise += (part.period, part.reason.strip()) not in reasons
        else:
            missing.append((index, part))

    def make(part: BlackoutPart) -> None:
        add_blackout(actor, cluster, **part.model_dump())

    apply_each("blackouts", missing, make)
    noted(report.created, "blackouts", [part.reason.strip() for _, part in missing])
    anew = "has another reason than described: remove it to create it again"
    several = "have other reasons than described: remove them to create them again"
    report.left += _over("blackout", over)
    report.left += count_text(otherwise, f"blackout {anew}", f"blackouts {several}")
    report.left += _unnamed("blackout", present.total())


def apply_exclusions(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[ExclusionPart],
    before: Sequence[ExclusionPart],
    report: ImportReport,
    now: datetime,
) -> None:
    """Add or change the described exclusions; the importing user becomes their owner."""
    known = {part.about: part for part in before}
    live = [(index, part) for index, part in enumerate(parts) if part.until > now]
    wanted = [(index, part) for index, part in live if _differs(part, known.get(part.about))]

    def make(part: ExclusionPart) -> None:
        add_exclusion(actor, cluster, part.kind, part.subject, part.reason, part.until)

    apply_each("exclusions", wanted, make)
    names = [(" ".join(part.about), part.about in known) for _, part in wanted]
    noted(report.created, "exclusions", [name for name, subject_name in names if not subject_name])
    noted(report.changed, "exclusions", [name for name, subject_name in names if subject_name])
    report.left += _over("exclusion", len(parts) - len(live))
    report.left += _unnamed("exclusion", len(known.keys() - {part.about for part in parts}))


def _differs(part: ExclusionPart, known: ExclusionPart | None) -> bool:
    if known is None:
        return True
    return (part.until, part.reason.strip()) != (known.until, known.reason)


def _over(what: str, count: int) -> list[str]:
    return count_text(
        count, f"{what} is over: it is not made", f"{what}s are over: they are not made"
    )


def _unnamed(what: str, count: int) -> list[str]:
    reason = f"{what} is not named by the description: it stays"
    return count_text(count, reason, f"{what}s are not named by the description: they stay")
