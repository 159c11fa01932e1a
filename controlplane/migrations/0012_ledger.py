from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("controlplane", "0011_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="ledgerentry",
            name="outcome",
            field=models.CharField(
                choices=[
                    ("done", "Done"),
                    ("stopped", "Stopped"),
                    ("rolled back", "Rolled Back"),
                ],
                default="done",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="moves",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="samples",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
