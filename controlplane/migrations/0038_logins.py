"""Login sessions, failed attempts, initial passwords and external identities; tokens expire."""

import uuid
from datetime import timedelta

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.utils import timezone

# What a token gets that was valid for ever, as the default of new ones.
DAYS = 90


def let_tokens_expire(apps, schema_editor):
    expires_at = timezone.now() + timedelta(days=DAYS)
    apps.get_model("controlplane", "ApiToken").objects.filter(expires_at=None).update(
        expires_at=expires_at
    )


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("controlplane", "0037_disarmed_ladder"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoginSession",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("via", models.CharField(choices=[("password", "Password"), ("sso", "Sso")], default="password", max_length=10)),
                ("auth_hash", models.CharField(max_length=128)),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                ("agent", models.CharField(blank=True, max_length=200)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("ended_by", models.CharField(blank=True, choices=[("log_out", "Log Out"), ("idle", "Idle"), ("age", "Age"), ("password", "Password"), ("revoked", "Revoked")], max_length=10)),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="login_sessions", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "ordering": ["-started_at"],
                "indexes": [models.Index(fields=["user", "-started_at"], name="session_by_user")],
            },
        ),
        migrations.CreateModel(
            name="FailedAttempts",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("password", "Password"), ("token", "Token")], max_length=10)),
                ("subject", models.CharField(blank=True, max_length=150)),
                ("address", models.CharField(blank=True, max_length=45)),
                ("since", models.DateTimeField(db_index=True)),
                ("last_at", models.DateTimeField()),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("unrecorded", models.PositiveIntegerField(default=0)),
                ("locked_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "failed attempts",
                "constraints": [models.UniqueConstraint(fields=("kind", "subject", "address"), name="failed_attempts_once")],
            },
        ),
        migrations.CreateModel(
            name="InitialPassword",
            fields=[
                ("user", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="initial_password", serialize=False, to=settings.AUTH_USER_MODEL)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ExternalIdentity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="identities", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "verbose_name_plural": "external identities",
                "constraints": [models.UniqueConstraint(fields=("issuer", "subject"), name="external_identity_once")],
            },
        ),
        migrations.RunPython(let_tokens_expire, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(),
        ),
    ]
