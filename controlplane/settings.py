"""Django settings, read from the environment by `installation.env`: the values of this process."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dj_database_url

from controlplane.formats import log_lines
from controlplane.installation import env
from controlplane.installation.assets.folders import environment_folder, static_root
from controlplane.installation.demos import demos
from controlplane.installation.extras import has_lab
from controlplane.wire import redis_clients

BASE_DIR = env.ROOT
DATA_DIR = env.data_dir()
DEBUG = env.flag("WEIR_DEBUG")
SECRET_KEY = env.secret_key(DATA_DIR)
ALLOWED_HOSTS = env.words("WEIR_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
REDIS_URL = env.redis_url()

# Whether browsers reach Weir by https (directly or through a proxy that sets X-Forwarded-Proto).
HTTPS = env.flag("WEIR_HTTPS")
# Proxies whose X-Forwarded-For, -Proto and -Host are believed: networks (CIDR) or addresses.
TRUSTED_PROXIES = env.networks("WEIR_TRUSTED_PROXIES")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "ninja",
    "django_htmx",
    "controlplane",
    "dashboard",
    *(["dashboard.lab"] if has_lab() else []),
]

MIDDLEWARE = [
    "controlplane.access.middleware.with_request_id",
    "controlplane.processes.serving.request_metrics.measure_requests",
    "controlplane.api.common.problems.api_problems",
    "controlplane.api.common.bodies.refuse_encoded_bodies",
    # Before what reads the fields of a form.
    "dashboard.guards.admit_senders",
    "controlplane.formats.storable.refuse_unstorable",
    "django.middleware.security.SecurityMiddleware",
    "controlplane.access.middleware.content_security_policy",
    "controlplane.access.logins.middleware.forbid_storage",
    # Django adds random bytes, so that the length depends less on what a page repeats (BREACH).
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "controlplane.access.logins.middleware.check_login_session",
    "controlplane.access.logins.middleware.record_refusals",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.account.confirmation.ask_for_confirmation",
    "dashboard.site.refuse_invalid_values",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Requests that are answered at once; each thread keeps a connection to the database.
WEB_THREADS = env.integer("WEIR_WEB_THREADS", 4, minimum=1, maximum=256)

ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.processes.asgi.application"
# Named, not imported: the control plane imports neither the pages nor the workers.
WEBSOCKET_URLPATTERNS = "dashboard.consumers.websocket_urlpatterns"
TASK_APP = "workers.celery.app"


SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;"
        " PRAGMA cache_size=-32000;"
    ),
}


def database() -> dict[str, Any]:
    """Return PostgreSQL by DATABASE_URL, else SQLite in the data directory.

    SQLite is shared by web, worker, beat and relay. WAL lets them read while one writes;
    IMMEDIATE takes the write lock at BEGIN, where the busy timeout works (a lock upgrade in the
    middle of a transaction fails at once); synchronous NORMAL syncs at checkpoints only.
    """
    given = env.secret("DATABASE_URL")
    if given and not given.startswith("sqlite"):
        return dict(dj_database_url.parse(given, conn_max_age=60, conn_health_checks=True))
    if given:
        config: dict[str, Any] = dict(dj_database_url.parse(given))
    else:
        DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        config = {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "db.sqlite3"}
    # Each new connection would read the schema and fill its cache again.
    config["CONN_MAX_AGE"] = 60
    config["OPTIONS"] = SQLITE_OPTIONS
    return config


def results_database(default: dict[str, Any]) -> dict[str, Any]:
    """Return WEIR_RESULTS_DATABASE_URL, else a file beside SQLite's, else PostgreSQL as it is.

    Drivers write windows by the thousand: in a file of their own they hold no lock that the system
    of record waits for.
    """
    given = env.secret("WEIR_RESULTS_DATABASE_URL")
    if given and not given.startswith("sqlite"):
        return dict(dj_database_url.parse(given, conn_max_age=60, conn_health_checks=True))
    config = dict(default)
    if given:
        config |= dj_database_url.parse(given)
        config["OPTIONS"] = SQLITE_OPTIONS
        config["CONN_MAX_AGE"] = 60
    elif config["ENGINE"].endswith("sqlite3") and config["NAME"] != ":memory:":
        main = Path(config["NAME"])
        config["NAME"] = main.with_name(f"{main.stem}-results{main.suffix}")
    return config


DATABASES = {"default": database()}
DATABASES["results"] = results_database(DATABASES["default"])


def results_url() -> str:
    """Return the URL of the database of results, as drivers take it."""
    if DATABASES["results"]["ENGINE"].endswith("sqlite3"):
        return f"sqlite:///{quote(str(DATABASES['results']['NAME']))}"
    return env.secret("WEIR_RESULTS_DATABASE_URL") or env.secret("DATABASE_URL")


RESULTS_URL = results_url()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "controlplane.processes.serving.channel_layer.ChannelLayer",
        "CONFIG": {
            "hosts": [redis_clients.channel_host(REDIS_URL)],
            "prefix": "weir:channels",
            # A browser that does not read loses samples after this many seconds and asks again.
            "expiry": 30,
            "capacity": 500,
        },
    },
}

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT = "controlplane.processes.serving.task_broker:Transport"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged after it ran: a worker that dies leaves it to the next one.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "weir"
# Experiments take minutes to hours, and receivers of webhooks answer as they like: queues and
# workers of their own, so that nothing else waits.
CELERY_TASK_ROUTES = {
    "weir.run_lab": {"queue": "lab"},
    "weir.send_webhook": {"queue": "webhooks"},
    "weir.send_due_webhooks": {"queue": "webhooks"},
    "weir.send_lineage": {"queue": "webhooks"},
}
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than any task runs (CELERY_TASK_TIME_LIMIT), or Redis would hand it out twice.
    "visibility_timeout": 900,
    "global_keyprefix": "weir:celery:",
    # A worker's blocking read waits in its event loop, which checks the connection on its own; this
    # bounds every other command, such as the sending of a task by the web.
    "socket_timeout": redis_clients.PATIENT_READ_S,
    "socket_connect_timeout": redis_clients.CONNECT_S,
}
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_SOFT_TIME_LIMIT = 570
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"

STATIC_URL = "/static/"
# An installed package has these files in the folder `static` of the dashboard.
STATICFILES_DIRS = [BASE_DIR / "static"] if env.is_checkout() else []
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "controlplane.installation.assets.serving.InstalledFinder",
]
STATIC_ROOT = static_root(environment_folder(), env.data_dir())
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "controlplane.installation.assets.collection.ManifestStorage"},
}
# zstd needs a library that no browser of Weir's users asks for; brotli and gzip do.
SERVESTATIC_USE_ZSTD = False
# Pictures are compressed already, and source maps are read by developers only.
SERVESTATIC_SKIP_COMPRESS_EXTENSIONS = ("png", "map")
SERVESTATIC_KEEP_ONLY_HASHED_FILES = True

AUTHENTICATION_BACKENDS = [
    "controlplane.access.logins.password_backend.PasswordBackend",
    "controlplane.access.logins.single_sign_on.SingleSignOnBackend",
]
PASSWORD_HASHERS = [
    "controlplane.access.logins.hashing.YieldingPBKDF2Hasher",
    # For hashes that another installation of Django made.
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "controlplane.access.logins.context_words.ContextWordsValidator"},
    {"NAME": "controlplane.access.logins.breached_passwords.BreachedPasswordsValidator"},
    {"NAME": "controlplane.access.logins.signals.PasswordChanges"},
]
# Single sign-on by an OpenID Connect provider; off without an issuer.
OIDC_ISSUER = env.text("WEIR_OIDC_ISSUER").rstrip("/")
OIDC_CLIENT_ID = env.text("WEIR_OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.secret("WEIR_OIDC_CLIENT_SECRET")
OIDC_NAME = env.text("WEIR_OIDC_NAME", "single sign-on")
OIDC_SCOPES = env.text("WEIR_OIDC_SCOPES", "openid profile email")
OIDC_USER_CLAIM = env.text("WEIR_OIDC_USER_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = env.text("WEIR_OIDC_GROUPS_CLAIM", "groups")
# The role of a group of the provider, for example weir-admins=admin,analysts=viewer.
OIDC_ROLES = env.mapping("WEIR_OIDC_ROLES")
# The authentication context classes (acr) of which a log-in must have one, and the largest age of
# the log-in at the provider in minutes; none and 0: the provider decides.
OIDC_ACR_VALUES = env.text("WEIR_OIDC_ACR_VALUES").split()
OIDC_MAX_AGE = timedelta(minutes=env.integer("WEIR_OIDC_MAX_AGE_MINUTES", 0, 0, 60 * 24 * 30))
# Whether users with a password may or must have a second factor.
SECOND_FACTOR = env.choice("WEIR_SECOND_FACTOR", ("optional", "required"))
# A file of the passwords of known breaches (SHA-1 in order); "" for none.
BREACHED_PASSWORDS = env.text("WEIR_BREACHED_PASSWORDS")
# Whether users may log in with a password as well.
PASSWORD_LOGIN = env.flag("WEIR_PASSWORD_LOGIN", default=True)

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# A session ends after so long without a request by its user, and after so long in any case.
SESSION_IDLE = timedelta(minutes=env.integer("WEIR_SESSION_IDLE_MINUTES", 120, 1, 60 * 24 * 30))
SESSION_MAX_AGE = timedelta(hours=env.integer("WEIR_SESSION_HOURS", 12, 1, 24 * 30))
# Seconds after which an open socket or feed checks its authorization, besides at each change.
ACCESS_RECHECK_S = env.integer("WEIR_ACCESS_RECHECK_S", 30, 1, 3600)

# Browsers accept the prefix only from this host, by https, for all paths.
_COOKIE_PREFIX = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = int(SESSION_MAX_AGE.total_seconds())
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = env.words("WEIR_TRUSTED_ORIGINS", "")
# Off on plain http, where it would lock people out; a year where Weir is known to be on https.
SECURE_HSTS_SECONDS = env.integer("WEIR_HSTS_SECONDS", 31_536_000 if HTTPS else 0)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# A bulk of 10,000 queries with texts of a thousand characters each stays below this.
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
# Larger bodies and uploaded files wait in temporary files.
FILE_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024
# A request with an uploaded file, such as a cluster's description, may have more.
MAX_REQUEST_BYTES = 65 * 1024 * 1024
# Open live charts of one user in one web process, and messages of one in ten seconds.
MAX_SOCKETS_PER_USER = env.integer("WEIR_MAX_SOCKETS_PER_USER", 100, 1, 10_000)
MAX_SOCKET_MESSAGES = 100

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

# The most cores of this machine that a master of Spark, local[n], may name.
LOCAL_CORES = env.integer("WEIR_LOCAL_CORES", max(8, os.cpu_count() or 1), 1, 99)
# Which demonstrations the runner started with; none: no replayer runs.
DEMOS = demos()
# Days after which history is deleted (controlplane.background.retention); AUDIT_DAYS: 0 for never.
PROPOSAL_DAYS = env.integer("WEIR_PROPOSAL_DAYS", 30, 1, 36_500)
LAB_RUN_DAYS = env.integer("WEIR_LAB_RUN_DAYS", 90, 1, 36_500)
HEALTH_DAYS = env.integer("WEIR_HEALTH_DAYS", 90, 1, 36_500)
AUDIT_DAYS = env.integer("WEIR_AUDIT_DAYS", 365, 0, 36_500)
# The server that e-mail goes to; the URL may have a password, so it may come from a file.
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, _SECURED = env.email("WEIR_EMAIL_URL")
EMAIL_USE_TLS, EMAIL_USE_SSL = _SECURED == "starttls", _SECURED == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("WEIR_EMAIL_FROM", "weir@localhost")
# Where events of OpenLineage are sent, "" for nowhere.
OPENLINEAGE_URL = env.text("WEIR_OPENLINEAGE_URL")
OPENLINEAGE_TOKEN = env.secret("WEIR_OPENLINEAGE_TOKEN")
# Where spans of OpenTelemetry are sent, "" for nowhere.
OTLP_URL = env.text("WEIR_OTLP_URL")
OTLP_TOKEN = env.secret("WEIR_OTLP_TOKEN")
# A directory of descriptions that clusters follow, and what of it Weir applies automatically.
DESCRIPTIONS = env.text("WEIR_DESCRIPTIONS")
DESCRIPTIONS_APPLY = env.choice("WEIR_DESCRIPTIONS_APPLY", ("0", "1", "prune"))
# Hours after which an ended query and its task leave the database.
QUERY_RETENTION_HOURS = env.integer("WEIR_QUERY_RETENTION_HOURS", 6, minimum=1)

# What Weir connects to for its users, besides public addresses by https. A site that only its own
# machine's browsers reach is a developer's: there the usual ports of Kafka and Redis are allowed.
_IS_LOCAL = not (HTTPS or TRUSTED_PROXIES or {*ALLOWED_HOSTS} - {"localhost", "127.0.0.1", "[::1]"})
_LOCAL = "kafka://127.0.0.0/8:9092-9094 kafka://[::1]:9092-9094"
_LOCAL += " redis://127.0.0.0/8:6379 redis://[::1]:6379"
_LOCAL += " postgresql://127.0.0.0/8:5432 postgresql://[::1]:5432"
_LOCAL += f" {(DATA_DIR / 'sinks').as_uri()}"
env.set_destinations(_LOCAL if _IS_LOCAL else "", REDIS_URL)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "controlplane.formats.log_lines.LineFormatter",
            "format": log_lines.FORMAT + "{request_id}",
            "style": "{",
        },
    },
    "filters": {"request_id": {"()": "controlplane.access.request_ids.WithRequest"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request_id"],
        }
    },
    # Its line for each request would stand between those of commands.
    "loggers": {"httpx": {"level": "WARNING"}},
    "root": {"handlers": ["console"], "level": env.text("WEIR_LOG_LEVEL", "INFO").upper()},
}

# Limits of a computation, which runs in a child process: memory in MB and seconds. A proposal's
# time limit is below CELERY_TASK_SOFT_TIME_LIMIT.
PROPOSAL_MEMORY_MB = env.integer("WEIR_PROPOSAL_MEMORY_MB", 2048, 64, 1_048_576)
PROPOSAL_SECONDS = env.integer("WEIR_PROPOSAL_SECONDS", 540, 1, 540)
LAB_MEMORY_MB = env.integer("WEIR_LAB_MEMORY_MB", 4096, 64, 1_048_576)
LAB_SECONDS = env.integer("WEIR_LAB_SECONDS", 24 * 3600, 1, 7 * 24 * 3600)
# Proposals that are computed at once; at least one process of the worker is left for placement.
COMPUTING_SLOTS = env.integer("WEIR_COMPUTING_SLOTS", 1, 1, 64)
# Requests of a user that wait or are computed, where a comparison counts once; computations of a
# cluster, where each candidate of a comparison counts; runs of the Lab of a user.
MAX_REQUESTS_PER_USER = env.integer("WEIR_MAX_REQUESTS_PER_USER", 4, 1, 10_000)
MAX_COMPUTATIONS_PER_CLUSTER = env.integer("WEIR_MAX_COMPUTATIONS_PER_CLUSTER", 32, 1, 10_000)
MAX_LAB_RUNS_PER_USER = env.integer("WEIR_MAX_LAB_RUNS_PER_USER", 8, 1, 10_000)
