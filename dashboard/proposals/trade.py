"""The trade of gain against moves before a request: a drawing, and a choice for each plan."""

from typing import Any, Final

from django.http import HttpResponse

from controlplane.access.roles import require_operator
from controlplane.models import Cluster
from controlplane.numbers import percent, ratio, seconds, size, value_text
from controlplane.planners.placement.trade import Trade, TradePoint, trade_of
from controlplane.svg import Scale, line, round_values
from controlplane.svg import percent as part
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import render_page

WIDTH: Final = 1000
HEIGHT: Final = 200
_TICKS: Final = 4
# Space above and below the values, as a part of their range.
_ROOM: Final = 0.1


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return what plans reach, or that it is being computed."""
    require_operator(request.actor, cluster)
    trade = trade_of(cluster)
    context: dict[str, Any] = {"trade": trade}
    if trade is not None and not trade.refusal:
        across, up = _scales(trade)
        context |= {
            "plot": _plot(trade, across, up),
            "choices": [_choice(trade, point, across, up) for point in _distinct(trade)],
            "took": seconds(trade.took_s),
        }
    return render_page(request, "_trade.html", context)


def _distinct(trade: Trade) -> list[TradePoint]:
    """Return the points without those that reach nothing more than one with less slack."""
    first = {(point.moves, point.replication_factor): point for point in reversed(trade.points)}
    return [point for point in trade.points if point in first.values()]


def _scales(trade: Trade) -> tuple[Scale[float], Scale[float]]:
    moves = max([point.moves for point in trade.points] + [moves for moves, _ in trade.curve])
    values = [point.replication_factor for point in trade.points]
    values += [value for _, value in trade.curve] + ([trade.limit] if trade.limit else [])
    room = _ROOM * (max(values) - min(values) or 1.0)
    return (
        Scale(0.0, 1.05 * max(1, moves), 0, WIDTH),
        Scale(max(0.0, min(values) - room), max(values) + room, HEIGHT, 0),
    )


def _plot(trade: Trade, across: Scale[float], up: Scale[float]) -> dict[str, Any]:
    """Return the drawing: a path in units of WIDTH x HEIGHT, ticks, and the height of the limit.

    Its points stand in the choices.
    """
    now, limit = trade.curve[0][1], trade.limit
    return {
        "label": f"Replication factor by queries moved, from {ratio(now)} without a move",
        "path": line([(across(moves), up(value)) for moves, value in trade.curve]),
        "xs": [
            (across.percent(value), f"{value:,.0f}")
            for value in round_values(across.low, across.high, _TICKS)
        ],
        "ys": [
            (_height(up, value), ratio(value)) for value in round_values(up.low, up.high, _TICKS)
        ],
        "limit": (_height(up, limit), f"limit {ratio(limit)}") if limit else None,
    }


def _choice(
    trade: Trade, point: TradePoint, across: Scale[float], up: Scale[float]
) -> dict[str, Any]:
    """Return a plan that a request can have, with its place in the drawing, in per cent."""
    is_chosen = point == trade.recommended
    chip, grade = _remark(trade, point)
    return {
        "point": point,
        "title": f"{value_text(point.moves, 'moves')}: {ratio(point.replication_factor)}",
        "about": f"imbalance {percent(point.imbalance)} (at most {percent(point.slack)}), "
        f"fullest node {percent(point.fullest)}",
        "cost": f"{size(point.bytes)} of state, about {seconds(point.seconds)}",
        "chip": "recommended" if is_chosen else chip,
        "grade": "good" if is_chosen else grade,
        "is_chosen": is_chosen,
        "x": across.percent(point.moves),
        "y": _height(up, point.replication_factor),
    }


def _remark(trade: Trade, point: TradePoint) -> tuple[str, str]:
    """Return a remark about a plan that is not recommended, with its level."""
    if not point.is_allowed:
        return "above the policy's limit", "warn"
    if not point.moves:
        return "nothing to move", ""
    if trade.limit is not None and point.replication_factor > trade.limit:
        return "replication above its limit", "warn"
    return ("", "") if point.is_kept else ("a limit stays exceeded", "warn")


def _height(up: Scale[float], value: float) -> str:
    return part(up(value), HEIGHT)
