"""The limit that held when an alert was farthest beyond it; limits follow what is reachable."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0005_series'),
    ]

    operations = [
        migrations.AddField(
            model_name='alert',
            name='worst_limit',
            field=models.FloatField(blank=True, null=True),
        ),
    ]
