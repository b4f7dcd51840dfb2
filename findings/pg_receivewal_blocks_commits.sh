#!/bin/bash
# PostgreSQL 16.2: a pg_receivewal that is named in synchronous_standby_names and runs without
# --synchronous lets commits hang: it reports what it has flushed only when a segment of 16 MB is
# full. Meanwhile pg_stat_replication shows it as `async`, as if its name were not listed, with
# sync_priority 0. So a count of rows that are not `async` says that nobody is waited for, while every
# commit waits for this one.
#
# Guess before the run: pg_receivewal reports its flush position in its status messages (every 10 s,
# or as --status-interval says), so that a commit waits for at most a second with --status-interval=1.
# Guessed too: sync_state follows from the list of names alone, so a listed standby is `sync`.
# Seen: with --status-interval=1 a commit has not returned after 5 s, and the row says `async`,
# priority 0, no flush position; with --synchronous it says `sync` and the commit returns.
#
# Needs Python and pip; the package pgserver has the programs of PostgreSQL.
set -euo pipefail
T=$(mktemp -d)
chmod 755 "$T"
stop() {
    [ -z "${R:-}" ] || kill "$R" 2> /dev/null || true
    as "$B/pg_ctl" -D "$T/data" -m immediate stop > /dev/null 2>&1 || true
    rm -rf "$T"
}
trap stop EXIT
AS=()
[ "$(id -u)" != 0 ] || AS=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)
as() { "${AS[@]}" "$@"; }
python3 -m venv "$T/env"
"$T/env/bin/pip" install -q --disable-pip-version-check pgserver==0.1.4
B=$(echo "$T"/env/lib/python3*/site-packages/pgserver/pginstall/bin)
"$B/postgres" --version
mkdir "$T/data" "$T/received"
[ "$(id -u)" != 0 ] || chown nobody "$T/data" "$T/received"
cd /
as "$B/initdb" -D "$T/data" -U me -A trust > /dev/null
cat >> "$T/data/postgresql.conf" << CONF
listen_addresses = ''
unix_socket_directories = '$T/data'
synchronous_standby_names = 'receiver'
CONF
as "$B/pg_ctl" -D "$T/data" -l "$T/data/log" -w start > /dev/null
sql() { as "$B/psql" -h "$T/data" -U me -d postgres -AtX "$@"; }
sql -c "SET synchronous_commit = local" -c "CREATE TABLE t (x int)" > /dev/null
receive() {
    "${AS[@]}" "$B/pg_receivewal" -d "host=$T/data user=me application_name=receiver" -D "$T/received" --status-interval=1 "$@" 2> "$T/said" &
    R=$!
    for _ in $(seq 50); do
        [ "$(sql -c "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 1 ] && break
        sleep 0.2
    done
    sleep 2
}
receive
row="SELECT sync_state, sync_priority, coalesce(flush_lsn::text, 'none') <> 'none' FROM pg_stat_replication"
shown=$(sql -c "$row")
if timeout 5 "$B/psql" -h "$T/data" -U me -d postgres -AtX -c "INSERT INTO t VALUES (1)" > /dev/null 2>&1; then plain=returned; else plain=hangs; fi
echo "without --synchronous: shown as $shown, a commit $plain after 5 s"
kill "$R"
wait "$R" 2> /dev/null || true
sleep 1
receive --synchronous
if timeout 5 "$B/psql" -h "$T/data" -U me -d postgres -AtX -c "INSERT INTO t VALUES (2)" > /dev/null 2>&1; then with=returned; else with=hangs; fi
echo "with --synchronous:    shown as $(sql -c "$row"), a commit $with"
[ "$shown $plain $with" = "async|0|f hangs returned" ] || { echo "the behaviour has changed"; exit 1; }
