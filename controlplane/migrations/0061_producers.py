"""Tokens of producers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """With what a token may be limited to."""
    dependencies = [
        ("controlplane", "0060_samples_in_windows"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="role",
            field=models.CharField(
                blank=True,
                choices=[
                    ("producer", "producer"),
                    ("viewer", "Viewer"),
                    ("operator", "Operator"),
                    ("approver", "Approver"),
                    ("admin", "Admin"),
                ],
                max_length=10,
            ),
        ),
    ]
