"""The topic from which a stream is read, for streams that are not in the log of the cluster."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0007_evaluations'),
    ]

    operations = [
        migrations.AddField(
            model_name='stream',
            name='source',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
