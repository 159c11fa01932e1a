"""The latency while a rung of a ladder was active."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0051_tour'),
    ]

    operations = [
        migrations.AddField(
            model_name='sheddinginterval',
            name='p95_ms',
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name='sheddinginterval',
            name='timed',
            field=models.PositiveBigIntegerField(default=0),
        ),
    ]
