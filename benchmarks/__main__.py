"""Run the benchmarks one after the other with their defaults: `make bench`.

    python -m benchmarks [--smallest] [--only NAME ...]

With --smallest each at a size at which it ends soon and its figures mean nothing: a check that all
of them still run.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

# Every benchmark with the options of its smallest size. `former_speed` needs another checkout.
SMALLEST: Final[Mapping[str, str]] = {
    "planners.placement_speed": "--repeats 1 --queries 500",
    "planners.online_speed": "--repeats 1 --queries 5000",
    "planners.placement_quality": "--seeds 1 --seconds 0.5 --queries 2000",
    "planners.improvement.quality": "--clusters 1 --seconds 0.1",
    "planners.improvement.speed": "--seconds 1",
    "planners.migration_speed": "--repeats 1 --tasks 64",
    "planners.migration_quality": "--histories 1 --taus 0.4 --migrations 2",
    "availability.estimates": "--queries 300 --planners shedding",
    "planners.admission_speed": "--repeats 1 --streams 80 --nodes 8",
    "planners.admission_period_speed": "--streams 100 --nodes 4 --repeats 1",
    "planners.admission_quality": "--seeds 1 --steps 300",
    "planners.split_node_growth": "--strategies drf_m --seconds 20 --streams 20 --highest 8",
    "planners.routing_speed": "--messages 20000 --repeats 1 --seeds 1 --seconds 70",
    "planners.partitioning_quality": "--seeds 1 --messages 20000",
    "planners.grouping_overhead": "--rounds 4 --warm 1 --records 5000",
    "planners.shedding_pipeline": "--policies coordinated --seconds 4",
    "planners.grouping_throughput": "--groupings key --slow 0 --seconds 4 --settle 1",
    "planners.shedding_speed": "--points 200 --valued 200 --inputs 8 --branches 16 --repeats 1 "
    "--cluster 60 8 4",
    "migration_gap": "--steps 10 --tasks 12",
    "planners.measuring_cost": "--batches 6",
    "placing_speed": "--live 100 --streams 50 --posts 3",
    "execution_speed": "--queries 500 --streams 50 --nodes 5 --approvals 2",
    "proposal_speed": "--queries 500 --streams 50 --nodes 5 --repeats 1",
    "api_speed": "--queries 300 --streams 40 --proposals 10 --pages 3 --bulk 100 --clients 4 "
    "--seconds 1",
    "records.topic_speed": "--records 60000 --runs 1 --warm 1 --max-records 10000",
    "records.topic_kill": "--partitions 4 --kills 1 --records 60000",
    "records.append_speed": "--rounds 3 --records 1 100",
    "pages.fleet_speed": "--clusters 3 --repeats 2",
    "pages.lists": "--queries 300 --streams 40 --entries 300 --decisions 100",
    "results.store_speed": "--windows 2000",
    "results.sink_delay": "--batches 5 --kills 1",
    "results.sink_speed": "--rows 2000",
    "pipeline_speed": "--queries 20 --seconds 5 --appends 6",
    "data_plane": "--appends 12 --seconds 5 --tours 2 --kills 1",
    "native_compare": "--queries 2 --runs 1 --records 60000 --max-records 10000 --warm 1 "
    "--seconds 300",
    "live_speed": "--watch 20",
    "pages.figures": "--seconds 5 --queries 300 --streams 40 --sockets 20 --samples 60",
    "planners.shedding_measured": "--seconds 6 --quiet 25",
    "at_rest": "--settle 1 --seconds 5",
    "availability.recovery": "--only lab",
    "availability.worker_deaths": "--only worker",
    "availability.takeover": "--rounds 1 --hosts 2 --cold",
    "availability.logins": "--clients 2 --pages 3",
    "availability.attacks": "--clients 2 --seconds 2 --pause 0 --queries 300",
}


def main() -> int:
    options = parse_options()
    for name in options.only:
        sizes = SMALLEST[name].split() if options.smallest else []
        print("==", "python -m", f"benchmarks.{name}", *sizes, flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *sizes]
        if code := subprocess.run(command, check=False).returncode:
            return code
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--smallest", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(SMALLEST), default=list(SMALLEST))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
