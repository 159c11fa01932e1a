"""An operator's script."""

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.callers import scripted


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token."""
    return scripted(operator)
