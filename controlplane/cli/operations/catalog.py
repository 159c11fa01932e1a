"""All declared commands, and the groups that only they have."""

from typing import Final

from controlplane.cli.operations import access, alerts, clusters, lists, plans
from controlplane.cli.operations.declaration import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *access.OPERATIONS, *alerts.OPERATIONS, *clusters.OPERATIONS,
    *lists.OPERATIONS, *plans.OPERATIONS,
)  # fmt: skip
GROUPS: Final = {
    "nodes": "list and change nodes",
    "policy": "show and change the policy, blackouts and exclusions of a cluster",
    "compare": "compute and compare several plans for one state of a cluster",
    "ledger": "what executed proposals promised, and what was measured",
    "alerts": "list, acknowledge and silence exceeded limits",
    "views": "save filters and orders of lists under a name",
    "scenarios": "disturb demo clusters: rush hours, hot keys, slow, lost and added nodes",
    "audit": "read and verify the audit log",
    "grants": "list, grant and remove roles of users",
    "tokens": "list, create and revoke tokens of the API",
    "users": "end sessions of users, and remove second factors that they lost",
    "webhooks": "list, create, change and test webhooks",
    "attached": "jobs outside of Weir that report to it",
}
BY_COMMAND: Final = {operation.command: operation for operation in OPERATIONS}
