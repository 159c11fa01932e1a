"""Changes of the policy of the demo cluster."""

import subprocess
import sys
from pathlib import Path

from tests.support.running_weir import RunningWeir

ROOT = Path(__file__).parents[2]
# A plan of every action may raise what is limited.
WIDE_LIMITS = {
    "watch_imbalance": 1.0, "watch_skew": 1.0, "watch_replication": 100.0, "watch_load": 100.0,
}  # fmt: skip
# Policies are changed by admins; the demo's user is none.
_CHANGE = """
from controlplane.models import Policy
row = Policy.objects.get(cluster__slug="sf")
row.settings = {{**row.settings, **{changed!r}}}
row.save()
"""


def change_policy(weir: RunningWeir, **changed: float) -> None:
    """Change settings of the policy of the demo cluster."""
    code = _CHANGE.format(changed=changed)
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT, env=weir.environment, check=True,
    )  # fmt: skip
