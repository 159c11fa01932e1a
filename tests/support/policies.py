"""Policies of clusters, set without a person."""

from typing import Any

from controlplane.models import Cluster, Policy
from controlplane.policies.settings import settings_of


def set_policy(cluster: Cluster, **settings: Any) -> None:
    """Store these settings of a cluster's policy; those that were stored before stay."""
    settings_of(settings)
    row, _ = Policy.objects.get_or_create(cluster=cluster)
    row.settings |= settings
    row.save()
