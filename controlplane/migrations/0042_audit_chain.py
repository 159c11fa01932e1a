"""Audit entries get a place in a hash chain; triggers refuse to change or delete them.

Existing entries are sealed in the order of their ids.
"""

from django.db import migrations, models

from controlplane.access import audit_triggers
from controlplane.access.audit_chain import seal_batch


def seal_entries(apps, editor):
    entries = apps.get_model("controlplane", "AuditEntry")
    chains = apps.get_model("controlplane", "AuditChain")
    while seal_batch(entries, chains, 1000):
        pass


def install_triggers(apps, editor):
    audit_triggers.install(editor.connection)


def remove_triggers(apps, editor):
    audit_triggers.remove(editor.connection)


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0041_audit_of_deleted_clusters")]

    operations = [
        migrations.CreateModel(
            "AuditChain",
            [
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("sequence", models.BigIntegerField(default=0)),
                ("hash", models.CharField(blank=True, max_length=64)),
                ("start_sequence", models.BigIntegerField(default=0)),
                ("start_hash", models.CharField(blank=True, max_length=64)),
                ("verified_at", models.DateTimeField(blank=True, null=True)),
                ("verified_sequence", models.BigIntegerField(default=0)),
                ("fault", models.CharField(blank=True, max_length=20)),
                ("fault_sequence", models.BigIntegerField(blank=True, null=True)),
                ("fault_entry", models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(id=1), name="audit_chain_of_one_row"
                    )
                ],
            },
        ),
        migrations.AddField(
            "auditentry",
            "hash",
            models.CharField(blank=True, default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            "auditentry",
            "sequence",
            models.BigIntegerField(blank=True, editable=False, null=True, unique=True),
        ),
        migrations.AddIndex(
            "auditentry",
            models.Index(
                fields=["id"], condition=models.Q(sequence=None), name="audit_unsealed"
            ),
        ),
        migrations.RunPython(seal_entries, migrations.RunPython.noop),
        migrations.RunPython(install_triggers, remove_triggers),
    ]
