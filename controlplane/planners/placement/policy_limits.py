"""The limits of a cluster's policy, as a part of the snapshots of placements."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from controlplane.policies.settings import PolicySettings


@dataclass(frozen=True)
class PolicyLimits:
    """What the policy limits in placements.

    `replication`: times the lower bound of the replication factor; `imbalance`; `load`: of the
    fullest node, as a share of its capacity.
    """

    name: ClassVar[str] = "limits"
    replication: float
    imbalance: float
    load: float

    @classmethod
    def of(cls, policy: PolicySettings) -> Self:
        """Return the limits of a policy."""
        return cls(policy.watch_replication, policy.watch_imbalance, policy.watch_load)

    def to_json(self) -> dict[str, Any]:
        """Return the limits as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the limits that `to_json` wrote."""
        return cls(**row)
