"""The time strip of a cluster: records in, placements, plans and exceeded limits over hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from controlplane import numbers
from controlplane.catalog.routing_versions import placements_between, plans_between
from controlplane.clusters.scenarios import scenarios_between
from controlplane.models import AuditEntry, Cluster
from controlplane.svg import Scale, area, line
from controlplane.telemetry.measures import measured_for
from controlplane.telemetry.series import fitting_seconds, read
from dashboard.clusters.events import Excess, excesses_between, plan_text
from dashboard.explain.rows import explain_url
from dashboard.figures.parts import ms
from dashboard.time_range import TimeRange

# The widths of the strip; the narrowest that contains the range until now, and of a young cluster
# all data.
WIDTHS: Final = (
    timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1), timedelta(hours=2),
    timedelta(hours=3), timedelta(hours=6),
    timedelta(hours=24), timedelta(days=7), timedelta(days=31),
)  # fmt: skip
_USUAL: Final = timedelta(hours=6)
# The drawing's own units.
WIDTH, HEIGHT = 1000.0, 52.0
_POINTS: Final = 360
_DENSITY: Final = 96
_MINUTE_S: Final = 60
# Flags closer than this share of the width would overlap: their labels are joined.
_APART: Final = 0.05
# In %: labels of flags beyond it would leave the strip.
_NEAR_END: Final = 96.0
# The width of a letter of a label, in % of a strip of 1,100 pixels.
_LETTER: Final = 0.65
_TICKS: Final = 6


@dataclass(frozen=True)
class Flag:
    """An event on the strip: position in %, label, sentence, and the URL of its page."""

    x: float
    label: str
    title: str
    url: str
    grade: str = ""
    explain: str = ""

    @property
    def anchor(self) -> str:
        """Return where the label begins: labels beside an end stay on the strip."""
        if self.x > _NEAR_END:
            return "end"
        return "start" if self.x < 100 - _NEAR_END else "middle"

    @property
    def label_range(self) -> tuple[float, float]:
        """Return where the label starts and stops, in % of a wide strip."""
        width = _LETTER * len(self.label)
        start = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return start, start + width


@dataclass(frozen=True)
class Band:
    """A part of the strip from `x` on, both in %; `level`: 1 to 3 for densities."""

    x: float
    width: float
    level: int = 0


@dataclass(frozen=True)
class Strip:
    """The strip from `start` to `end`: line of records in, bands, flags, ticks, and the brush."""

    start: datetime
    end: datetime
    line: str
    area: str
    top: float
    exceeded: Sequence[Band]
    placements: Sequence[Band]
    flags: Sequence[Flag]
    ticks: Sequence[tuple[float, str]]
    brush: Band
    finding: str

    @property
    def brush_end(self) -> float:
        """Return the right end of the brush in %."""
        return round(self.brush.x + self.brush.width, 2)

    @property
    def milliseconds(self) -> tuple[int, int]:
        """Return both ends in ms since the epoch."""
        return ms(self.start), ms(self.end)


def strip_of(cluster: Cluster, time_range: TimeRange, now: datetime) -> Strip:
    """Return the strip of a cluster until now, as wide as the range needs."""
    needed = max(now - time_range.start, measured_for(cluster.pk, now, _USUAL))
    width = next((width for width in WIDTHS if width >= needed), WIDTHS[-1])
    start, end = now - width, max(now, time_range.end)
    scale = Scale(start, end)
    points = _points(cluster, start, end)
    top = 1.15 * max((value for _, value in points if value is not None), default=0.0)
    y = Scale(0.0, top or 1.0, HEIGHT, 8.0)
    places = [(WIDTH * scale(t), None if value is None else y(value)) for t, value in points]
    excesses = excesses_between(cluster, start, end)
    flags = [
        *_flags_of_plans(cluster, scale),
        *_flags_of_nodes(cluster, scale),
        *_flags_of_scenarios(cluster, scale),
        *(_flag_of_excess(cluster, scale, excess) for excess in excesses),
    ]
    return Strip(
        start=start,
        end=end,
        line=line(places),
        area=area(places, HEIGHT),
        top=top,
        exceeded=[_band(scale, e.since, e.until or end) for e in excesses],
        placements=_densities(cluster, scale),
        flags=join_flags(sorted(flags, key=lambda flag: flag.x)),
        ticks=_ticks(scale),
        brush=_band(scale, time_range.start, time_range.end),
        finding=_finding(points, len(excesses), width),
    )


def _x(scale: Scale[datetime], moment: datetime) -> float:
    """Return the position of a moment in %."""
    return round(100 * scale.share(moment), 2)


def _band(scale: Scale[datetime], since: datetime, until: datetime) -> Band:
    left, right = _x(scale, since), _x(scale, until)
    return Band(left, round(max(right - left, 0.1), 2))


def _points(
    cluster: Cluster, start: datetime, end: datetime
) -> list[tuple[datetime, float | None]]:
    """Return the records/s at equal distances, at most about 360."""
    step = max(_MINUTE_S, round((end - start).total_seconds() / _POINTS))
    seconds = fitting_seconds(start, end, least=_MINUTE_S)
    series = read(cluster, ("arrived",), start, end, seconds).every(step)
    points: list[tuple[datetime, float | None]] = []
    gap = timedelta(seconds=3 * max(step, seconds))
    for t, value in zip(series.starts, series["arrived"].tolist(), strict=True):
        if points and t - points[-1][0] > gap:
            points.append((t, None))
        points.append((t, None if isnan(value) else value))
    return points


def _densities(cluster: Cluster, scale: Scale[datetime]) -> list[Band]:
    """Return the placements of queries as bands in three levels."""
    length = (scale.high - scale.low) / _DENSITY
    counts: dict[int, int] = {}
    for minute, count in placements_between(cluster, scale.low, scale.high).items():
        place = min(_DENSITY - 1, max(0, int((minute - scale.low) / length)))
        counts[place] = counts.get(place, 0) + count
    most = max(counts.values(), default=0)
    width = 100 / _DENSITY
    return [
        Band(round(place * width, 2), round(0.8 * width, 2), -(-3 * count // most))
        for place, count in sorted(counts.items())
    ]


def _flags_of_plans(cluster: Cluster, scale: Scale[datetime]) -> list[Flag]:
    return [
        Flag(
            _x(scale, plan.time), f"◆ {plan.proposal}",
            f"{plan_text(plan)}, {_clock(plan.time)}",
            reverse("proposal", args=[cluster.slug, plan.proposal]),
        )
        for plan in plans_between(cluster, scale.low, scale.high)
    ]  # fmt: skip


def _flags_of_nodes(cluster: Cluster, scale: Scale[datetime]) -> list[Flag]:
    rows = AuditEntry.objects.filter(
        cluster=cluster, action="cluster.nodes", at__gte=scale.low, at__lt=scale.high
    )
    url = f"{reverse('audit')}?{urlencode({'cluster': cluster.slug, 'action': 'cluster.nodes'})}"
    return [
        Flag(_x(scale, row.at), "nodes", f"Number of nodes changed, {_clock(row.at)}", url)
        for row in rows.only("at")
    ]


def _flags_of_scenarios(cluster: Cluster, scale: Scale[datetime]) -> list[Flag]:
    url = f"{reverse('audit')}?{urlencode({'cluster': cluster.slug, 'action': 'scenario.start'})}"
    flags = []
    for row in scenarios_between(cluster, scale.low, scale.high):
        title = str(row.get_kind_display()).lower()
        until = f"until {_clock(row.ended_at or row.ends_at)}"
        about = f"Scenario {title}, {_clock(row.started_at)} {until}"
        flags.append(Flag(_x(scale, row.started_at), f"⚑ {title}", about, url))
    return flags


def _flag_of_excess(cluster: Cluster, scale: Scale[datetime], excess: Excess) -> Flag:
    url = explain_url(cluster, excess.subject)
    title = f"{excess.text}, {_clock(excess.since)}"
    return Flag(_x(scale, excess.since), f"! {excess.label}", title, url, "bad", excess.subject)


def join_flags(flags: Sequence[Flag]) -> list[Flag]:
    """Return the flags; those that would overlap are counted in one label."""
    groups: list[list[Flag]] = []
    for flag in flags:
        if groups and _are_near(_group(groups[-1]), flag):
            groups[-1].append(flag)
        else:
            groups.append([flag])
    return [_group(group) for group in groups]


def _are_near(left: Flag, right: Flag) -> bool:
    """Return whether the labels of two flags would overlap."""
    return right.x - left.x < 100 * _APART or right.label_range[0] < left.label_range[1]


def _group(flags: Sequence[Flag]) -> Flag:
    if len(flags) == 1:
        return flags[0]
    worst = next((flag for flag in flags if flag.grade), flags[-1])
    label = f"{worst.label.partition(' ')[0]} {len(flags)}"
    titles = "; ".join(flag.title for flag in flags)
    return Flag(worst.x, label, titles, worst.url, worst.grade, worst.explain)


def _ticks(scale: Scale[datetime]) -> list[tuple[float, str]]:
    """Return whole hours or days with their positions in %, and the end."""
    hours = (scale.high - scale.low) / timedelta(hours=1)
    step = next((s for s in (1, 2, 4, 6, 12, 24, 48, 120) if hours / s <= _TICKS), 168)
    length = timedelta(hours=step)
    epoch = datetime(2000, 1, 1, tzinfo=UTC)
    first = epoch + length * -(-(scale.low - epoch) // length)
    moments = [first + length * place for place in range(int(hours / step) + 1)]
    form = "%H:%M" if step < 24 else "%m-%d"  # noqa: PLR2004 - hours of a day
    inner = [moment for moment in moments if 0.03 < scale.share(moment) < 0.95]  # noqa: PLR2004
    return [(_x(scale, moment), f"{moment:{form}}") for moment in inner]


def _finding(
    points: Sequence[tuple[datetime, float | None]], exceeded: int, width: timedelta
) -> str:
    known = [value for _, value in points if value is not None]
    length = numbers.duration(width)
    if not known:
        return f"No figures are stored in the last {length}"
    least, most = numbers.compact(min(known)), numbers.compact(max(known))
    limits = f"; {exceeded} exceeded limits" if exceeded else "; no limit exceeded"
    return f"Records in over {length}: {least} to {most} records/s{limits}"


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
