"""Laws of numbers: equal words have equal values wherever they are shown, and parts add up."""

import csv
import io
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.numbers import with_unit
from controlplane.wire.figures import FIGURES

Sample = dict[str, Any]
# The measures in the row of a cluster of the fleet.
_CELL: Final = re.compile(r'<td class="measure" data-label="([^"]*)"><span[^>]*>([^<]*)<')
_TILE: Final = r'data-measure="{}".*?<span class="value[^"]*">([^<]*)<small>([^<]*)</small>'


@dataclass(frozen=True)
class NumberLaws:
    """The laws of a cluster; `text`: returns what an address answers."""

    text: Callable[[str], str]
    slug: str = "sf"

    def json(self, path: str) -> Any:
        """Return what an address of the API answers."""
        return json.loads(self.text(f"/api/v1/{path}"))

    def samples(self, start: datetime, end: datetime) -> list[Sample]:
        """Return the samples of micro-batches in a time range."""
        times = [quote(moment.isoformat().replace("+00:00", "Z")) for moment in (start, end)]
        path = f"clusters/{self.slug}/samples?resolution=1&start={times[0]}&end={times[1]}"
        found: list[Sample] = self.json(path)
        return found

    def is_complete(self, start: datetime, end: datetime) -> bool:
        """Return whether all batches of a time range have the values that are compared."""
        names = ("arrived", "in", "read", "delivered", "dropped", "p95", "rf", "kept")
        found = self.samples(start, end)
        known = all(sample[name] is not None for sample in found for name in names)
        return bool(found) and known

    def complete_minutes(self) -> list[datetime]:
        """Return the ends of complete minutes in the last ten, at tens of seconds, newest first."""
        newest = datetime.fromtimestamp(int(time.time() - 20) // 10 * 10, UTC)
        ends = (newest - timedelta(seconds=10 * back) for back in range(54))
        return [end for end in ends if self.is_complete(end - timedelta(seconds=60), end)]

    def explained(self, subject: str, time_ms: int) -> Any:
        """Return the explanation of a subject at a time."""
        return self.json(f"clusters/{self.slug}/explanations/{subject}@{time_ms}")

    def assert_newest_sample_is_the_same(self) -> bool:
        """Compare it in the API, the fleet and the metrics; False if there is a newer one now."""
        path = f"clusters/{self.slug}/sample"
        before, metrics = self.json(path), _metrics(self.text("/metrics"), self.slug)
        fleet, after = self.json("fleet"), self.json(path)
        if before["t"] != after["t"]:
            return False
        assert next(row["sample"] for row in fleet if row["slug"] == self.slug) == before
        for figure in FIGURES:
            values = before[figure.name] if figure.per else [before[figure.name]]
            for index, value in enumerate(values):
                place = f"weir_{figure.metric}", str(index) if figure.per else ""
                if figure.metric and value is not None:
                    assert metrics[place] == near(value * figure.metric_factor), place
        return True

    def assert_window_has_one_value(self, start: datetime, end: datetime) -> None:
        """Compare a minute on pages of cluster and nodes, in the API and in files.

        Both ends are at ten seconds, and each batch has all values.
        """
        first, last = (round(1000 * moment.timestamp()) for moment in (start, end))
        samples, span = self.samples(start, end), f"?from={first}&to={last}"
        arrived, taken, delivered = (mean(samples, name) for name in ("arrived", "in", "delivered"))
        nodes = list(enumerate(samples[-1]["capacity"]))
        shares = [_mean_load(samples, index) * arrived / taken / each for index, each in nodes]
        expected = {
            "records_in": arrived,
            "replication_factor": delivered / mean(samples, "read"),
            "input_kept": 1 - mean(samples, "dropped") / taken,
            "latency_p95": mean(samples, "p95"),
            "imbalance": max(shares) - sum(shares) / len(shares),
            "node_load": max(shares),
        }
        page = self.text(f"/clusters/{self.slug}/{span}")
        for name, value in expected.items():
            assert _tile(page, name) == with_unit(value, KINDS[AlertMeasure(name)].unit), name
            assert self.explained(f"measure:{name}", last)["finding"]["value"] == near(value), name
        table = list(
            csv.DictReader(io.StringIO(self.text(f"/clusters/{self.slug}/nodes.csv{span}")))
        )
        loads = [float(row["load_deliveries_per_s"]) for row in table]
        assert sum(loads) == near(delivered * arrived / taken)
        for row, load in zip(table, loads, strict=True):
            facts = self.explained(f"node:{row['node']}", last)["facts"]
            assert next(fact["value"] for fact in facts if fact["name"] == "load") == near(load)
            node = self.text(f"/clusters/{self.slug}/nodes/{row['node']}/{span}")
            assert _tile(node, "load") == with_unit(load, "deliveries/s")

    def differences(self) -> set[str]:
        """Return the measures that the fleet and the page of the cluster show differently now."""
        fleet, page = self.text("/"), self.text(f"/clusters/{self.slug}/")
        cells = dict(_CELL.findall(fleet[fleet.index(f'id="row-{self.slug}"') :]))
        shown = {kind.measure: kind.title for kind in KINDS.values() if kind.title in cells}
        assert len(shown) > 1
        return {
            str(measure)
            for measure, title in shown.items()
            if cells[title].replace(" ", "") != "".join(_tile(page, measure)).replace(" ", "")
        }

    def assert_alerts_fire_beyond_their_limits(self) -> None:
        """Compare the value of each firing alert with its own limit."""
        for alert in self.json("alerts?state=firing")["alerts"]:
            if alert["subject"] in {str(measure) for measure in KINDS}:
                kind = KINDS[AlertMeasure(alert["subject"])]
                assert kind.exceeds(alert["value"], alert["limit"]), alert


def assert_parts_add_up(samples: Sequence[Sample]) -> None:
    """Compare the parts of each micro-batch with their whole."""
    for sample in samples:
        assert sample["delivered"] == near(sample["read"] * (sample["rf"] or 0.0))
        assert sum(sample["loads"]) == near(sample["delivered"])
        assert sum(sample["split_loads"]) == near(sample["in"])
        kept = 1.0 if sample["kept"] is None else sample["kept"]
        assert kept * sample["in"] + sample["dropped"] == near(sample["in"])


def near(value: float) -> Any:
    """Return what equals a number up to the errors of its arithmetic."""
    return pytest.approx(value, rel=1e-6, abs=1e-9)


def mean(samples: Sequence[Sample], name: str) -> float:
    """Return a series over the time of samples."""
    seconds = sum(sample["span_s"] for sample in samples)
    return float(sum(sample[name] * sample["span_s"] for sample in samples) / seconds)


def _mean_load(samples: Sequence[Sample], node: int) -> float:
    return mean([{**sample, "load": sample["loads"][node]} for sample in samples], "load")


def _metrics(text: str, slug: str) -> dict[tuple[str, str], float]:
    """Return the metrics of a cluster by name and node or split node."""
    return {
        (one.name, one.labels.get("node", one.labels.get("split_node", ""))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.labels.get("cluster") == slug
    }


def _tile(html: str, name: str) -> tuple[str, str]:
    """Return number and unit of a tile of a page."""
    found = re.search(_TILE.format(name), html, re.DOTALL)
    assert found is not None, name
    return found[1], found[2]
