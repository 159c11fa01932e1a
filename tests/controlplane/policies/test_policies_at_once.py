"""Concurrent changes of a policy are serialized by the cluster's row."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.policies.store import policy_of, update_policy
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)


def change(admin: Actor, cluster: Cluster) -> None:
    """Change the policy; raise `OperationalError` if another transaction has the lock."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '20ms'")
        update_policy(admin, cluster, {"cooldown_s": 60})
    finally:
        connection.close()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True, scope="session")
def test_a_change_waits_for_the_transaction_that_has_the_cluster(sf: Cluster) -> None:
    """Without the lock, two changes would each keep the former settings of the other one."""
    admin = actor("admin")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # Weaker than the lock of a change; rows that refer to the cluster do not wait for it.
            Cluster.objects.select_for_update(no_key=True).get(pk=sf.pk)
            with pytest.raises(OperationalError):
                pool.submit(change, admin, sf).result(30)
        assert policy_of(sf).cooldown_s == 600
        pool.submit(change, admin, sf).result(30)
    assert policy_of(sf).cooldown_s == 60
