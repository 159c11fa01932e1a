from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0013_one_replication_factor")]

    operations = [
        migrations.AddField(
            model_name=name, name="traceparent", field=models.CharField(blank=True, max_length=55)
        )
        for name in ("proposal", "routingversion")
    ]
