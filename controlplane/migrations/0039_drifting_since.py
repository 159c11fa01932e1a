"""Since when a proposal drifts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the columns of drift that holds."""

    dependencies = [("controlplane", "0038_logins")]

    operations = [
        migrations.AddField(
            model_name="proposal",
            name="drifting_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="proposal",
            name="drift_seen_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
