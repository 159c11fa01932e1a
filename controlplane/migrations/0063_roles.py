"""Routine actions of users, of sessions, and of no cluster are counted; refusals with them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The rows of the last hour have no key: they are deleted."""

    dependencies = [("controlplane", "0062_keys")]

    operations = [
        migrations.RunSQL("DELETE FROM controlplane_routineactions", migrations.RunSQL.noop),
        migrations.RunSQL(
            "DELETE FROM controlplane_failedattempts WHERE kind = 'refusal'", migrations.RunSQL.noop
        ),
        migrations.AlterField(
            model_name="failedattempts",
            name="kind",
            field=models.CharField(
                choices=[("password", "Password"), ("code", "Code"), ("token", "Token")],
                max_length=10,
            ),
        ),
        migrations.RemoveConstraint(model_name="routineactions", name="routine_actions_once"),
        migrations.AddField(
            model_name="routineactions",
            name="key",
            field=models.CharField(max_length=64, default=""),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="routineactions",
            name="token",
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AlterField(
            model_name="routineactions",
            name="cluster",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="routine_actions",
                to="controlplane.cluster",
            ),
        ),
        migrations.AddConstraint(
            model_name="routineactions",
            constraint=models.UniqueConstraint(
                fields=("key", "period"), name="routine_actions_once"
            ),
        ),
    ]
