#!/bin/bash
# In a clean Debian 12, as root: installs the packages beside this file, makes a cluster and a memory node with them, and
# removes them: installed.sh PORT (of five that are free).  Nothing of what they brought is left.
set -euo pipefail
cd "$(dirname "$0")"
port=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
mapfile -t packages < <(ls ./*.deb)
cluster=/var/lib/postgresql/gcl-cluster

say() { printf -- '-- %s\n' "$*"; }
die() { printf 'NOT RIGHT: %s\n' "$*" >&2; exit 1; }
apt() {
  apt-get -q -y -o DPkg::Lock::Timeout=60 --no-install-recommends "$@" >"$work/apt" 2>&1 ||
    { tail -n 30 "$work/apt"; die "apt-get $*"; }
}

# Every file, and what those of /etc hold; but what apt, dpkg and systemd note of their own work, and
# this test's files.
all_files() {
  find / -xdev \( -path "$work" -o -path /root -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache/apt \
    -o -path /var/cache/debconf -o -path /var/log/apt -o -path /run/systemd \) -prune -o \
    ! -path /var/log/dpkg.log ! -path /var/log/alternatives.log ! -path '/etc/*-' -printf '%p %y %m %u:%g %l\n' | sort
  find /etc -type f ! -name '*-' -print0 | sort -z | xargs -0 md5sum
}
ask() { gclctl psql "$cluster" "$1" -X -A -t -q -v ON_ERROR_STOP=1 -c "$2"; }
expect() { [[ $1 == "$2" ]] || die "'$1' instead of '$2'"; }

say "What the packages depend on, and no more"
mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/none.conf
apt update
# systemd is this test's: it reads the unit.
mapfile -t needed < <(apt-get -s --no-install-recommends install "${packages[@]}" |
  awk '$1 == "Inst" && $2 !~ /^(gcl-15|gclctl|gcl-memnode)$/ { print $2 }')
[[ " ${needed[*]} " == *' postgresql-15 '* ]] || die "no server among ${needed[*]}"
apt install systemd "${needed[@]}"
rm -r /etc/postgresql-common/createcluster.d/none.conf
all_files >"$work/before"

say "Installing"
apt install "${packages[@]}"
grep -E '^(Setting up|0 upgraded|[0-9]+ upgraded)' "$work/apt"
grep -q '^0 upgraded, 3 newly installed' "$work/apt" || die "apt installed something else"

say "Man pages name every verb and option"
gclctl --help | awk '/^Subcommands:/ { verbs = 1; next } verbs && NF { print $1 }' >"$work/verbs"
gcl_memnode --help | grep -o -E '^ +(-h,)?--[a-z-]+' | sed 's/.*--/--/' >"$work/options"
[[ $(wc -l <"$work/verbs") -gt 20 && $(wc -l <"$work/options") -gt 6 ]] || die "--help says too little"
zcat /usr/share/man/man1/gclctl.1.gz | sed 's/\\//g' >"$work/gclctl.1"
zcat /usr/share/man/man8/gcl_memnode.8.gz | sed 's/\\//g' >"$work/gcl_memnode.8"
while read -r verb; do grep -q "^\.BI $verb " "$work/gclctl.1" || die "gclctl(1) lacks $verb"; done <"$work/verbs"
while read -r option; do
  grep -q -e "$option\b" "$work/gcl_memnode.8" || die "gcl_memnode(8) lacks $option"
done <"$work/options"

say "A cluster"
gclctl init "$cluster" --primaries 2 --pool-size 256MB --cache-size 64MB --port "$port"
gclctl start "$cluster"
ask 1 "CREATE EXTENSION gcl; CREATE TABLE t (id int PRIMARY KEY, body text) USING gcl"
ask 1 "INSERT INTO t VALUES (1, 'of primary 1')"
ask 2 "UPDATE t SET body = body || ', updated on 2'; INSERT INTO t VALUES (2, 'of primary 2')"
expect "$(ask 1 'SELECT * FROM t ORDER BY id')" $'1|of primary 1, updated on 2\n2|of primary 2'
expect "$(ask 2 'SELECT * FROM t ORDER BY id')" $'1|of primary 1, updated on 2\n2|of primary 2'
expect "$(ask 2 "SELECT extversion = gcl_version() FROM pg_extension WHERE extname = 'gcl'")" t
for program in gclctl gcl_memnode; do cmp "/usr/bin/$program" "$cluster/prefix/lib/postgresql/15/bin/$program"; done
gclctl status "$cluster"
gclctl upgrade "$cluster"  # it has what is installed
gclctl stop "$cluster"
gclctl verify "$cluster"
gclctl start "$cluster"
expect "$(ask 2 'SELECT count(*) FROM t')" 2

say "A cluster over tcp, with the daemon"
remote=$cluster-tcp
gclctl init "$remote" --primaries 2 --pool-size 128MB --cache-size 64MB --port $((port + 3)) --transport tcp \
  --memory-port $((port + 2)) >/dev/null
gclctl start "$remote"
gclctl psql "$remote" 1 -X -q -v ON_ERROR_STOP=1 -c "CREATE EXTENSION gcl; CREATE TABLE t USING gcl AS SELECT 1 AS id"
expect "$(gclctl psql "$remote" 2 -X -A -t -c 'SELECT id FROM t')" 1
grep -q "listens on 127.0.0.1:$((port + 2))" "$remote/memory0/log" || die "no memory node: $(cat "$remote/memory0/log")"
gclctl destroy "$remote"

say "The unit of a memory node"
systemd-analyze verify --man=no gcl-memnode@0.service
systemd-analyze security --offline=yes --no-pager --threshold=25 gcl-memnode@0.service | tail -n 1
./unit.sh $((port + 2))

say "Removing: a cluster goes on without the packages, and what is in memory or saved stays"
account=gcl-memnode
touch "/var/lib/$account/pool.saved"
apt purge gcl-15 gclctl gcl-memnode
[[ ! -e /usr/bin/gclctl ]] || die "gclctl is there"
grep -q "^$account:" /etc/passwd || die "files have lost their account"
expect "$("$cluster"/prefix/lib/postgresql/15/bin/gclctl status "$cluster" | grep -c ' up')" 2
apt install "${packages[@]}"
gclctl destroy "$cluster"
rm "/var/lib/$account/pool.saved"

say "apt-get purge leaves nothing behind"
apt purge gcl-15 gclctl gcl-memnode
all_files >"$work/after"
diff "$work/before" "$work/after" || die "files differ (< before, > after)"
echo "$(wc -l <"$work/after") lines compared"
