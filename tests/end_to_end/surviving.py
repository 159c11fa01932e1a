"""Scripts on the database of a running Weir."""

import os
import subprocess
import sys

from tests.support.running_weir import RunningWeir


def told(weir: RunningWeir, script: str) -> str:
    """Return what a script prints that runs on the database of a Weir."""
    lines = f"import django\ndjango.setup()\n{script}"
    environment = {
        **os.environ,
        "WEIR_DATA": str(weir.data),
        "REDIS_URL": weir.redis_url(),
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", lines], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()
