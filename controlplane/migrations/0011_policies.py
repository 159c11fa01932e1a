from django.db import migrations, models


def kinds_without_state():
    """Return the kinds of plans that move no operator state."""
    return ["admission", "shedding"]


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0013_api'),
    ]

    operations = [
        migrations.AddField(
            model_name='policy',
            name='auto_asked',
            field=models.BooleanField(default=True),
        ),
        migrations.AlterField(
            model_name='policy',
            name='auto_kinds',
            field=models.JSONField(blank=True, default=kinds_without_state),
        ),
        migrations.AddField(
            model_name='decision',
            name='unit',
            field=models.CharField(blank=True, max_length=10),
        ),
    ]
