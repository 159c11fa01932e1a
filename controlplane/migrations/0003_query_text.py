from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0002_lab_run'),
    ]

    operations = [
        migrations.AddField(
            model_name='query',
            name='text',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AddField(
            model_name='query',
            name='task_count',
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AlterField(
            model_name='query',
            name='value',
            field=models.CharField(blank=True, default='speed', max_length=40),
        ),
    ]
