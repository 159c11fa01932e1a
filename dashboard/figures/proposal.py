"""Before and after a proposal, node by node."""

from collections.abc import Sequence
from typing import Any

from dashboard.figures.parts import Figure, Trace, category_axis, figure, value_axis


def before_after(
    names: Sequence[str], before: Sequence[float], after: Sequence[float], unit: str
) -> Figure:
    """Draw two bars per node; the pale one is before."""
    return figure(
        [
            _bars("before", names, before, "--before", unit),
            _bars("after", names, after, "--chart-1", unit),
        ],
        barmode="group",
        bargap=0.35,
        bargroupgap=0.08,
        xaxis=category_axis(),
        yaxis=value_axis(unit),
        margin={"l": 52, "r": 12, "t": 26, "b": 28},
    )


def proposal_figures(
    names: Sequence[str], before: dict[str, Any], after: dict[str, Any]
) -> dict[str, Figure]:
    """Return the charts of a proposal by name: measured records/s and hosted queries per node."""
    return {
        "rates": before_after(names, before.get("rates", []), after.get("rates", []), "records/s"),
        "loads": before_after(names, before.get("loads", []), after.get("loads", []), "queries"),
    }


def _bars(name: str, names: Sequence[str], values: Sequence[float], color: str, unit: str) -> Trace:
    return {
        "type": "bar",
        "name": name,
        "x": list(names),
        "y": list(values),
        "marker": {"color": color},
        "hovertemplate": f"%{{y:,.3~r}} {unit}",
    }
