"""Store the nodes of every cluster in its routing table, with a version of their own.

Earlier releases published only the number of nodes and the emulated capacities. The version is
published when Weir starts.
"""

from django.db import migrations


def actions_of(cluster, nodes):
    """Return the actions that give the table the nodes as their rows have them, as JSON values."""
    yield {"op": "set_node_count", "nodes": cluster.slots}
    yield {"op": "set_split_count", "splits": cluster.splits}
    for node in nodes.filter(cluster=cluster, index__lt=cluster.slots).order_by("index"):
        capacity = {"capacity": node.capacity, "emulated": node.emulated}
        yield {"op": "set_capacity", "node": node.index, **capacity}
        if not node.active:
            yield {"op": "set_node_active", "node": node.index, "active": False}


def store_nodes(apps, schema_editor):
    """Append the version to the history of every cluster that has one."""
    alias = schema_editor.connection.alias
    clusters = apps.get_model("controlplane", "Cluster").objects.using(alias)
    nodes = apps.get_model("controlplane", "Node").objects.using(alias)
    versions = apps.get_model("controlplane", "RoutingVersion").objects.using(alias)
    for cluster in clusters.filter(routing_version__gt=0):
        version = cluster.routing_version + 1
        clusters.filter(pk=cluster.pk).update(routing_version=version)
        versions.create(
            cluster=cluster,
            version=version,
            ops=list(actions_of(cluster, nodes)),
            reason="Nodes of the cluster (upgrade)",
        )


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0024_schemas_of_streams'),
    ]

    operations = [
        migrations.RunPython(store_nodes, migrations.RunPython.noop),
    ]
