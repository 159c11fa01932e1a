"""Names, visibility, Spark masters and times of series of runs of the Lab."""

from django.db import migrations, models

import controlplane.models.cluster


class Migration(migrations.Migration):
    dependencies = [
        ("controlplane", "0047_alerts"),
    ]

    operations = [
        migrations.AddField(
            model_name="labrun",
            name="master",
            field=models.CharField(
                blank=True,
                default="",
                max_length=250,
                validators=[controlplane.models.cluster.valid_master],
            ),
        ),
        migrations.AddField(
            model_name="labrun",
            name="name",
            field=models.CharField(blank=True, default="", max_length=100),
        ),
        migrations.AddField(
            model_name="labrun",
            name="timings",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="labrun",
            name="visibility",
            field=models.CharField(
                choices=[("everyone", "Everyone"), ("owner", "Owner")],
                default="everyone",
                max_length=10,
            ),
        ),
    ]
