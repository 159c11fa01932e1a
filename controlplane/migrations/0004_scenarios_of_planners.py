"""Scenarios that planners repair: what they do to rates, and what their ends set again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0003_reachable_measures'),
    ]

    operations = [
        migrations.AddField(
            model_name='scenario',
            name='before',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='scenario',
            name='factors',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name='scenario',
            name='kind',
            field=models.CharField(choices=[('rush_hour', 'Rush hour'), ('hot_key', 'Hot key'), ('slow_node', 'Slow node'), ('node_lost', 'Node lost'), ('node_added', 'Node added'), ('uneven_queries', 'Uneven queries'), ('node_returns', 'Nodes return'), ('growing_stream', 'Growing stream'), ('overload', 'Overload')], max_length=20),
        ),
    ]
