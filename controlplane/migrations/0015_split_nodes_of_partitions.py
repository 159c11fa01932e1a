from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0014_traceparent")]

    operations = [
        migrations.AddField(
            model_name="stream",
            name="partition_splits",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="redirection",
            name="partition",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
