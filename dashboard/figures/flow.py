"""The drawing of a cluster's flow: streams, split nodes, nodes and aggregator nodes as a Sankey.

Widths of bars and links are rates. x is in thousandths of the width, y in pixels, so that words
are never stretched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from controlplane import numbers
from controlplane.clusters.flow import ClusterFlow, FlowUnit, Link

WIDTH: Final = 1000
BAR: Final = 8.0
_LEAST_HEIGHT: Final = 380.0
# A line of text.
_ROW: Final = 15.0
_GAP: Final = 5.0
# The left sides of the columns, with and without aggregator nodes.
_COLUMNS: Final = (180.0, 410.0, 650.0, 840.0)
_WIDER: Final = (180.0, 490.0, 830.0, 0.0)
# Partial results are not records: their links have a scale of their own, this part of the height.
_PARTIALS: Final = 0.2
_THINNEST: Final = 0.75


@dataclass(frozen=True)
class FlowBar:
    """A stream, split node, node or aggregator node; `kind`: stream, split, node or aggregator.

    `key`: the id of a stream or the index of a node, None for the other streams together. `rate`:
    what its height stands for; `value`: in words.
    """

    kind: str
    key: int | None
    name: str
    rate: float
    value: str
    note: str = ""
    is_bad: bool = False
    x: float = 0.0
    y: float = 0.0
    height: float = 0.0
    url: str = ""

    @property
    def middle(self) -> float:
        """Return the vertical middle."""
        return round(self.y + self.height / 2, 1)

    @property
    def label_x(self) -> str:
        """Return where the label begins in % of the width, or ends for a stream."""
        edge = self.x - 6 if self.kind == "stream" else self.x + BAR + 6
        return f"{edge / WIDTH * 100:.1f}%"


@dataclass(frozen=True)
class Ribbon:
    """A link: its outline, what it is in words, and its ends and rate for a table."""

    path: str
    source: str
    target: str
    value: str
    is_bad: bool = False
    is_partial: bool = False


@dataclass(frozen=True)
class FlowDrawing:
    """The drawing with its height in pixels; `finding`: the largest flows in words."""

    height: float
    bars: Sequence[FlowBar]
    ribbons: Sequence[Ribbon]
    finding: str


def flow_drawing(flow: ClusterFlow, load_limit: float | None) -> FlowDrawing:
    """Return the drawing of a flow; nodes beyond the limit of load over capacity stand out."""
    columns = _bars(flow, load_limit)
    height = max(_LEAST_HEIGHT, _ROW * max(map(len, columns)))
    scale = _scale(columns[:3], height)
    partials = sum(bar.rate for bar in columns[3])
    scales = (scale, scale, scale, _PARTIALS * height / partials if partials else 0.0)
    places = _COLUMNS if flow.aggregators else _WIDER
    placed = [
        _stacked(bars, x, own, height) for bars, x, own in zip(columns, places, scales, strict=True)
    ]
    links = (flow.split_links, flow.node_links, flow.aggregator_links)
    ribbons = [
        ribbon
        for i, own in enumerate(links)
        for ribbon in _ribbons(own, placed[i], placed[i + 1], scales[i + 1], flow.unit)
    ]
    return FlowDrawing(height, [bar for bars in placed for bar in bars], ribbons, _finding(flow))


def _bars(flow: ClusterFlow, load_limit: float | None) -> list[list[FlowBar]]:
    """Return the bars of each column, without places."""
    unit = flow.unit
    streams = [
        FlowBar("stream", own.id, own.name, own.rate, rate_text(own.rate, unit))
        for own in flow.streams
    ]
    splits = [
        FlowBar(
            "split", own.index, f"split {own.index}", max(own.read, own.sent),
            f"{rate_text(own.read, unit)} read", f"{rate_text(own.sent, unit)} sent",
        )
        for own in flow.splits
    ]  # fmt: skip
    nodes = [
        FlowBar(
            "node", own.index, own.name, own.rate, rate_text(own.rate, unit),
            numbers.percent(own.share),
            is_bad=load_limit is not None and own.share > load_limit,
        )
        for own in flow.nodes
    ]  # fmt: skip
    aggregators = [
        FlowBar(
            "aggregator", own.index, f"aggregator {own.index}", own.rate,
            f"{numbers.compact(round(own.rate))}/s",
        )
        for own in flow.aggregators
    ]  # fmt: skip
    return [streams, splits, nodes, aggregators]


def rate_text(rate: float, unit: FlowUnit) -> str:
    """Return a rate with its unit: 616/s, 12.3 kB/s."""
    if unit is FlowUnit.BYTES:
        return f"{numbers.size(round(rate))}/s"
    return f"{numbers.compact(round(rate) if rate >= 10 else rate)}/s"  # noqa: PLR2004


def _scale(columns: Sequence[Sequence[FlowBar]], height: float) -> float:
    """Return the pixels per unit with which the fullest column fits."""
    scales = [
        (height - _GAP * (len(bars) + 1)) / total
        for bars in columns
        if (total := sum(bar.rate for bar in bars)) > 0
    ]
    return max(min(scales, default=0.0), 0.0)


def _stacked(bars: Sequence[FlowBar], x: float, scale: float, height: float) -> list[FlowBar]:
    """Return the bars of a column one below the other, spread over the height."""
    heights = [max(1.0, bar.rate * scale) for bar in bars]
    gap = max(1.0, (height - sum(heights)) / (len(bars) + 1)) if bars else 0.0
    y, placed = gap, []
    for bar, own in zip(bars, heights, strict=True):
        placed.append(replace(bar, x=x, y=round(y, 1), height=round(own, 1)))
        y += own + gap
    return placed


def _ribbons(
    links: Sequence[Link],
    sources: Sequence[FlowBar],
    targets: Sequence[FlowBar],
    scale: float,
    unit: FlowUnit,
) -> list[Ribbon]:
    """Return the links of two columns, stacked in their order on both sides."""
    left = [bar.y for bar in sources]
    right = [bar.y for bar in targets]
    ribbons = []
    for link in sorted(links, key=lambda link: (link.source, link.target)):
        source, target = sources[link.source], targets[link.target]
        width = max(_THINNEST, link.rate * scale)
        is_partial = target.kind == "aggregator"
        # Partial results leave a node in its middle: its bar stands for records.
        start = source.middle - width / 2 if is_partial else left[link.source]
        path = _outline(source.x + BAR, start, target.x, right[link.target], width)
        left[link.source] += width
        right[link.target] += width
        value = (
            f"{numbers.compact(round(link.rate))}/s" if is_partial else rate_text(link.rate, unit)
        )
        is_bad = target.is_bad and not is_partial
        ribbons.append(Ribbon(path, source.name, target.name, value, is_bad, is_partial))
    return ribbons


def _outline(x0: float, y0: float, x1: float, y1: float, width: float) -> str:
    middle = (x0 + x1) / 2
    return (
        f"M{x0:g} {y0:.1f}C{middle:g} {y0:.1f} {middle:g} {y1:.1f} {x1:g} {y1:.1f}"
        f"V{y1 + width:.1f}C{middle:g} {y1 + width:.1f} {middle:g} {y0 + width:.1f}"
        f" {x0:g} {y0 + width:.1f}Z"
    )


def _finding(flow: ClusterFlow) -> str:
    """Return the largest stream and the fullest node in words."""
    known = [stream for stream in flow.streams if stream.id is not None and stream.rate > 0]
    if not known or not flow.nodes:
        return "No records flowed in this time range"
    largest = max(known, key=lambda stream: stream.rate)
    fullest = max(flow.nodes, key=lambda node: node.share)
    return (
        f"Flow: the largest stream is {largest.name} with {rate_text(largest.rate, flow.unit)}; "
        f"{fullest.name} is the fullest node, at {numbers.percent(fullest.share)} of its capacity"
    )
