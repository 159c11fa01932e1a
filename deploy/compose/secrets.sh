#!/bin/sh
# Create the secrets of compose.yaml in ./secrets, unless they exist. Only this user can enter the
# folder; the files can be read by the users of the containers, into which they are mounted.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 0700 secrets

write() {
    [ -e "secrets/$1" ] || (umask 0333 && printf '%s' "$2" >"secrets/$1")
}

random() {
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

for name in secret_key postgres_password redis_password grafana_password; do
    write "$name" "$(random)"
done
write database_url "postgres://weir:$(cat secrets/postgres_password)@postgres/weir"
write redis_url "redis://:$(cat secrets/redis_password)@redis:6379/0"
# Weir creates the token of its metrics: docs/operations/services.md.
[ -e secrets/metrics_token ] || : >secrets/metrics_token
