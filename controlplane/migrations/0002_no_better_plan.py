"""The outcome *no better plan* of requests, and assessments on executed plans."""

import controlplane.plans.proposal_states
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='ledgerentry',
            name='assessment',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name='proposal',
            name='aims',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name='proposal',
            name='judgement',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AlterField(
            model_name='proposal',
            name='state',
            field=models.CharField(choices=[('computing', 'Computing'), ('ready', 'Ready'), ('no better plan', 'No Better Plan'), ('approved', 'Approved'), ('executing', 'Executing'), ('paused', 'Paused'), ('done', 'Done'), ('rejected', 'Rejected'), ('stale', 'Stale'), ('failed', 'Failed'), ('stopped', 'Stopped'), ('rolling back', 'Rolling Back'), ('rolled back', 'Rolled Back'), ('superseded', 'Superseded')], default=controlplane.plans.proposal_states.State['COMPUTING'], max_length=20),
        ),
    ]
