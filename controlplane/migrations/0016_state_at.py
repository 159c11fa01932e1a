from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0015_split_nodes_of_partitions'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='state_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
