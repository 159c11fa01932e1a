"""Scenarios of demo clusters."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0049_lists_and_costs'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='demo',
            field=models.CharField(blank=True, editable=False, max_length=40),
        ),
        migrations.CreateModel(
            name='Scenario',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('rush_hour', 'Rush hour'), ('hot_key', 'Hot key'), ('slow_node', 'Slow node'), ('node_lost', 'Node lost'), ('node_added', 'Node added')], max_length=12)),
                ('node', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('started_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('started_by', models.CharField(max_length=150)),
                ('ended_by', models.CharField(blank=True, max_length=150)),
                ('note', models.CharField(blank=True, max_length=300)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scenarios', to='controlplane.cluster')),
            ],
            options={
                'ordering': ['-started_at', '-id'],
                'indexes': [models.Index(fields=['cluster', '-started_at'], name='scenario_by_cluster')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('cluster', 'kind'), name='scenario_open_once'), models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('started_at'))), name='scenario_ends_after_its_start')],
            },
        ),
    ]
