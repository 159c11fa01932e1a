"""Index the changes of policies in the audit log, which the page of a policy lists."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0056_stored_forecast")]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["cluster", "-at"], name="audit_of_policies",
                               condition=models.Q(action="policy.change")),
        ),
    ]  # fmt: skip
