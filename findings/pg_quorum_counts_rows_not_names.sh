#!/bin/bash
# PostgreSQL 16.2: a quorum of synchronous standbys counts connections, not names. With
# synchronous_standby_names = 'ANY 2 (b, c)' two standbys that both call themselves b are a quorum: a
# commit returns while c is not even connected.
#
# Guess before the run: each name of the list can be counted once, so that a commit waits for b and c,
# and pg_stat_replication shows one of the two rows of b as `quorum` and the other one as `async`.
# Seen: both rows are `quorum`, and the commit returns without c; with one standby b it hangs.
#
# Needs Python and pip; the package pgserver has the programs of PostgreSQL.
set -euo pipefail
T=$(mktemp -d)
chmod 755 "$T"
R=()
stop() {
    kill "${R[@]}" 2> /dev/null || true
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
mkdir "$T/data" "$T/first" "$T/second"
[ "$(id -u)" != 0 ] || chown nobody "$T/data" "$T/first" "$T/second"
cd /
as "$B/initdb" -D "$T/data" -U me -A trust > /dev/null
cat >> "$T/data/postgresql.conf" << CONF
listen_addresses = ''
unix_socket_directories = '$T/data'
synchronous_standby_names = 'ANY 2 (b, c)'
CONF
as "$B/pg_ctl" -D "$T/data" -l "$T/data/log" -w start > /dev/null
sql() { as "$B/psql" -h "$T/data" -U me -d postgres -AtX "$@"; }
sql -c "SET synchronous_commit = local" -c "CREATE TABLE t (x int)" > /dev/null
standby() { # FOLDER: one more standby that calls itself b
    "${AS[@]}" "$B/pg_receivewal" -d "host=$T/data user=me application_name=b" -D "$1" --synchronous 2> /dev/null &
    R+=($!)
    for _ in $(seq 100); do
        [ "$(sql -c "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")" = "${#R[@]}" ] && break
        sleep 0.2
    done
}
commit() {
    if timeout 5 "${AS[@]}" "$B/psql" -h "$T/data" -U me -d postgres -AtX -c "INSERT INTO t VALUES (1)" > /dev/null 2>&1
    then echo returned; else echo hangs; fi
}
rows() { sql -c "SELECT coalesce(string_agg(application_name || ' ' || sync_state, ', '), 'none') FROM pg_stat_replication"; }
standby "$T/first"
echo "one standby:  $(rows): a commit $(commit | tee "$T/one") after 5 s"
standby "$T/second"
echo "two standbys: $(rows): a commit $(commit | tee "$T/two")"
[ "$(rows) $(cat "$T/one" "$T/two" | xargs)" = "b quorum, b quorum hangs returned" ] || { echo "the behaviour has changed"; exit 1; }
