"""One table of measured series instead of four; what was measured before is deleted."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0004_scenarios_of_planners'),
    ]

    operations = [
        migrations.DeleteModel(name='KeySkew'),
        migrations.DeleteModel(name='MeasurePoint'),
        migrations.DeleteModel(name='MetricSample'),
        migrations.DeleteModel(name='StreamArrivals'),
        migrations.AddField(
            model_name='cluster',
            name='read_position',
            field=models.CharField(default='', editable=False, max_length=45),
        ),
        migrations.CreateModel(
            name='SeriesPeriod',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope', models.PositiveSmallIntegerField(choices=[(0, 'Cluster'), (1, 'Node'), (2, 'Split'), (3, 'Stream'), (4, 'Query')])),
                ('seconds', models.PositiveIntegerField()),
                ('t', models.DateTimeField()),
                ('measured_s', models.FloatField()),
                ('data', models.BinaryField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='series_periods', to='controlplane.cluster')),
            ],
            options={
                'ordering': ['cluster_id', 'scope', 'seconds', 't'],
                'indexes': [models.Index(fields=['scope', 'seconds', 't'], name='series_period_by_age')],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'scope', 'seconds', 't'), name='series_period_once')],
            },
        ),
    ]
