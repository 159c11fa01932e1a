from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0012_split_capacity_at")]

    operations = [migrations.RemoveField(model_name="reachablemeasures", name="factor")]
