"""Scripts on the database of a running Weir, and what they must find after deaths of processes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from tests.support.running_weir import RunningWeir

_PUBLISHED: Final = """
import json
from controlplane.models import AuditEntry, RoutingVersion
versions = RoutingVersion.objects.filter(proposal={pk}).order_by("version")
audit = AuditEntry.objects.filter(object="proposal {pk}").order_by("id")
print(json.dumps(dict(
    operations=[op for row in versions for op in row.ops],
    audit=list(audit.values_list("action", flat=True)))))
"""


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


def assert_applied_once(weir: RunningWeir, proposal: int, steps: Sequence[Any]) -> None:
    """Check routing versions and audit log: no action and no verb was applied twice, or lost."""
    published = json.loads(told(weir, _PUBLISHED.format(pk=proposal)))
    operations = [json.dumps(op, sort_keys=True) for op in published["operations"]]
    assert len(operations) == len(set(operations)) == sum(step["applied"] for step in steps)
    verbs = [action for action in published["audit"] if action != "proposal.request"]
    assert len(verbs) == len(set(verbs)), verbs
