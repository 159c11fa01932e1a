"""The limits of a cluster's policy, as a part of the snapshots of placements."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from controlplane.formats.json_values import JsonValue
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR
from controlplane.policies.settings import PolicySettings


@dataclass(frozen=True)
class PolicyLimits(JsonValue):
    """What the policy limits in placements.

    `replication`: of the replication factor, None without one; `imbalance`; `load`: of the fullest
    node, as a share of its capacity. `dead_band`: an alert ends only that share below its limit.
    """

    name: ClassVar[str] = "limits"
    replication: float | None
    imbalance: float
    load: float
    dead_band: float

    @classmethod
    def of(cls, limits: Mapping[str, float], dead_band: float) -> Self:
        """Return the limits of a policy, of its limits by measure."""
        return cls(
            limits.get(REPLICATION_FACTOR.name), limits[IMBALANCE.name], limits[FULLEST.name],
            dead_band,
        )  # fmt: skip

    @classmethod
    def by_default(cls) -> Self:
        """Return the limits of a policy without changes, in a process without a database."""
        policy = PolicySettings()
        return cls(None, policy.watch_imbalance, policy.watch_load, policy.dead_band)
