"""How soon Weir is live, and how soon a chart follows a telemetry row.

    python -m benchmarks.live_speed [--watch 60]

Starts the whole of Weir twice on a fresh data directory, as `make run` does after its install;
then a real Chromium watches the cluster page. The delay of a row runs from the moment its batch
was committed in the Spark driver to the end of the drawing in the browser (one machine, one clock).
"""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.support.chromium import running_chromium
from tests.support.running_weir import RunningWeir


def main() -> None:
    options = parse_options()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        weir = RunningWeir(Path(folder) / "data")
        try:
            first = weir.start()
            weir.interrupt()
            later = weir.start()
            delays = chart_delays(weir, options.watch)
        finally:
            weir.end()
        report = {
            "first_start_s": round(first, 1),
            "later_start_s": round(later, 1),
            "chart_delay_ms_p50": round(median(delays)),
            "chart_delay_ms_p95": round(quantiles(delays, n=20)[-1]),
            "rows": len(delays),
            **batches(weir.data, options.watch),
        }
        print(json.dumps(report, indent=2))


def chart_delays(weir: RunningWeir, seconds: int) -> list[float]:
    with running_chromium() as browser:
        page = browser.new_page(base_url=weir.url, viewport={"width": 1280, "height": 900})
        page.goto("/login/")
        name, password = weir.login()
        page.fill("#id_username", name)
        page.fill("#id_password", password)
        page.click("button:has-text('Log in')")
        page.wait_for_url(f"{weir.url}/")
        page.goto("/clusters/sf/?range=5m")
        time.sleep(15)
        page.evaluate("window.weirChartDelays = []")
        time.sleep(seconds)
        delays: list[float] = page.evaluate("window.weirChartDelays")
        return delays


def batches(data: Path, seconds: int) -> dict[str, Any]:
    """Return medians over the samples of the watched time."""
    connection = sqlite3.connect(data / "db.sqlite3")
    rows = connection.execute(
        'select "values" from controlplane_metricsample where resolution = 1 '
        "order by t desc limit ?",
        (seconds,),
    ).fetchall()
    connection.close()
    samples = [json.loads(text) for (text,) in rows]
    figures = {
        "micro_batch_ms_p50": [s["batch_ms"] for s in samples if s["batch_ms"] is not None],
        "latency_p95_ms_p50": [s["p95"] for s in samples if s["p95"] is not None],
        "records_read_per_s_p50": [s["in"] for s in samples],
        "live_queries_p50": [sum(s["tasks"]) for s in samples],
    }
    return {name: round(median(values)) for name, values in figures.items() if values}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watch", type=int, default=60, help="seconds")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
