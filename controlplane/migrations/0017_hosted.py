from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0016_state_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='hosted',
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
