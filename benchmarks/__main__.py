"""Run every benchmark with its defaults, one after the other: `make bench`."""

import subprocess
import sys

NAMES = (
    "placement_speed",
    "online_speed",
    "placement_quality",
    "migration_speed",
    "migration_quality",
    "placing_speed",
    "execution_speed",
    "api_speed",
    "pipeline_speed",
    "data_plane",
    "native_compare",
    "live_speed",
)


def main() -> int:
    for name in NAMES:
        print(f"== python -m benchmarks.{name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
