#!/bin/bash
# Builds the images of docker/Dockerfile, runs docker/compose.yaml with Debian's docker.io and docker-compose, and sees that
# docker/README.md is right: secrets, rights, restarts, losses.  As root or with sudo: tests/docker/compose.sh [PACKAGES]
#
# PACKAGES: a directory with the Debian packages that the images are made of; without it the images build them.  The
# daemon is this test's own, with all that it has in a directory that is removed; it changes no rule of the machine's
# firewall.  No registry is asked: the system below the images is made by debootstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/lib.sh
if [[ ${1-} != --inside ]]; then
  install_packages "${gcl_container_packages[@]}" postgresql-15 postgresql-client-15 python3
  packages=${1:+$(realpath "$1")}
  as_root=()
  [[ $EUID -eq 0 ]] || as_root=(sudo -n)
  # The daemon, its containers and their mounts end with this process.
  exec "${as_root[@]}" unshare --mount --pid --fork --kill-child --mount-proc "$PWD/tests/docker/compose.sh" --inside \
    "$packages"
fi
packages=${2-}
export PATH=/usr/sbin:/usr/bin:/sbin:/bin  # Debian's own

work=$(mktemp -d -p /var/tmp gcl-docker-XXXXXX)
export DOCKER_HOST=unix://$work/socket
daemon=''
remove() {
  local code=$?
  trap - EXIT
  if [[ -n $daemon ]]; then
    [[ $code -eq 0 ]] || docker ps -a || true
    docker ps -aq | xargs -r docker rm -f >/dev/null || true
    docker network ls -q --filter type=custom | xargs -r docker network rm >/dev/null || true
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
  fi
  rm -rf --one-file-system "$work" || code=1
  exit "$code"
}
trap remove EXIT
trap 'exit 130' INT TERM

wrong() { printf 'NOT RIGHT: %s\n' "$*" >&2; exit 1; }
expect() { [[ $1 == "$2" ]] || wrong "'$1' instead of '$2'"; }
# within SECONDS COMMAND...: has it succeed, some time
within() {
  local ends=$((SECONDS + $1))
  shift
  until "$@"; do
    [[ $SECONDS -lt $ends ]] || return 1
    sleep 0.2
  done
}

say "A docker daemon"
# Without rules for the firewall, and without a bridge but compose's: containers reach each other, and ports that are
# published are passed on by processes.
dockerd --data-root "$work/data" --exec-root "$work/run" --pidfile "$work/pid" -H "$DOCKER_HOST" --iptables=false \
  --ip6tables=false --ip-forward=false --bridge=none >"$work/dockerd" 2>&1 &
daemon=$!
answers() { docker version >/dev/null 2>&1; }
within 120 answers || { tail -n 20 "$work/dockerd"; wrong "dockerd does not answer"; }
docker info -f 'docker {{.ServerVersion}}, storage driver {{.Driver}}' 2>/dev/null

say "Images"
base=/var/tmp/gcl-clean-debian
mkdir -p "$base"
exec {lock}>"$base/lock"
flock -w 1800 "$lock" || die "another run has $base"
pristine_debian "$base"
# As Debian's own image for docker: dpkg need not wait for the disk.
mkdir -p "$work/etc/dpkg/dpkg.cfg.d"
echo force-unsafe-io >"$work/etc/dpkg/dpkg.cfg.d/docker-apt-speedup"
tar -c -C "$base/base" --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*_*' \
  --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' . \
  -C "$work" ./etc/dpkg/dpkg.cfg.d/docker-apt-speedup | docker import - debian:12-slim >/dev/null
exec {lock}>&-
from=()
if [[ -n $packages ]]; then
  mkdir "$work/packages"
  cp "$packages"/*.deb "$work/packages"
  tar -c -C "$work" packages | docker import - gcl-packages >/dev/null
  from=(--build-arg packages=gcl-packages)
fi
image() {
  DOCKER_BUILDKIT=1 docker build --network host --progress plain "${from[@]}" -f docker/Dockerfile --target "$1" \
    -t "pg_gcl/$1" . >"$work/build" 2>&1 || { tail -n 50 "$work/build"; wrong "no image $1"; }
}
image memnode
image primary
# megabytes IMAGE
megabytes() { echo $(($(docker image inspect -f '{{.Size}}' "$1") / 1000000)); }
for name in debian:12-slim pg_gcl/memnode pg_gcl/primary; do echo "$(megabytes $name) MB  $name"; done
below=$(megabytes debian:12-slim)
[[ $(megabytes pg_gcl/memnode) -le $((below + 10)) ]] || wrong "the image of a memory node is large"
[[ $(megabytes pg_gcl/primary) -le $((below + 350)) ]] || wrong "the image of a primary is large"
expect "$(docker run --rm --network none pg_gcl/primary bash -c 'command -v g++ cmake make ninja || true')" ''
expect "$(docker run --rm --network none pg_gcl/memnode bash -c 'command -v postgres psql gclctl || true')" ''

reserve_ports 3
export GCL_SECRETS=$work/secrets GCL_PUBLISH=127.0.0.1 GCL_POOL_SIZE=256MB GCL_CACHE_SIZE=64MB
export GCL_PORT1=$first_port GCL_PORT2=$((first_port + 1)) GCL_PORT3=$((first_port + 2))
project=gcl-test
compose() { docker-compose -p $project -f docker/compose.yaml "$@" >"$work/compose" 2>&1; }
up() { compose up -d --no-build || { cat "$work/compose"; wrong "docker-compose up"; }; }
of() { echo "${project}_$1_1"; }  # the name of its container
# logs NAME, and in a file
logs() {
  docker logs "$(of "$1")" >"$work/log" 2>&1
  cat "$work/log"
}
# said NAME PATTERN: and shows the first line of it
said() { logs "$1" >/dev/null && grep -m 1 -e "$2" "$work/log"; }
# ask K SQL, from outside
ask() {
  PGPASSWORD=${password-$(cat "$GCL_SECRETS/postgres.password")} PGCONNECT_TIMEOUT=20 psql -X -A -t -q \
    -v ON_ERROR_STOP=1 -h 127.0.0.1 -p $((first_port + $1 - 1)) -U postgres -c "$2"
}
serves() { ask "$1" "SELECT FROM gcl_stat_node" >"$work/serves" 2>&1; }
all_serve() {
  for k in 1 2 3; do within 120 serves $k || { logs "primary$k" | tail -n 20; wrong "primary $k: $(cat "$work/serves")"; }; done
}
# All three have joined since the memory node was started last.
all_joined() {
  logs memnode >/dev/null
  awk '/listens on/ { delete in_pool } /node [0-9]+ .* is in the pool/ { in_pool[$5 " " $6] = 1 }
    END { for (node in in_pool) n++; exit n != 3 }' "$work/log"
}
rows=0
# Every primary has what was written, and writes.
all_have_all() {
  all_serve
  for k in 1 2 3; do
    ask $k "INSERT INTO account SELECT count(*) + 1, 'of primary $k' FROM account"
    rows=$((rows + 1))
  done
  for k in 1 2 3; do expect "$(ask $k 'SELECT count(*), max(id) FROM account')" "$rows|$rows"; done
}

say "Without secrets nothing starts"
install -d -m 700 "$GCL_SECRETS"
touch "$GCL_SECRETS/cluster.key" "$GCL_SECRETS/postgres.password"
if compose up -d --no-build; then wrong "it starts"; fi
said keys 'the secret cluster.key is empty or missing' || wrong "keys says: $(logs keys)"
expect "$(docker ps -a --format '{{.Names}}' --filter status=running | grep -c primary)" 0
compose down -v
rm -r "$GCL_SECRETS"

say "docker-compose up, and psql to any of the three"
docker/make_secrets "$GCL_SECRETS"
chown 1000 "$GCL_SECRETS"/*  # somebody's own, as a rule
up
all_serve
ask 1 "CREATE TABLE account (id int PRIMARY KEY, body text) USING gcl"
all_have_all
if (password=another; ask 1 "SELECT 1") >"$work/said" 2>&1; then wrong "any password does"; fi
grep -o 'password authentication failed.*' "$work/said" || wrong "with another password: $(cat "$work/said")"
healthy() { [[ $(docker inspect -f '{{.State.Health.Status}}' "$(of "$1")") == healthy ]]; }
for one in memnode primary1 primary2 primary3; do within 120 healthy $one || wrong "$one is not healthy"; done
up  # once more: nothing is made anew
all_have_all

say "Nothing is root's, and nothing is written but in volumes"
for one in memory memnode primary1 primary2 primary3; do
  expect "$(docker exec "$(of $one)" bash -c "cat /proc/[0-9]*/status 2>/dev/null" |
    grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs):' | sort -u | tr -s '\t\n' ' ')" \
    'CapBnd: 0000000000000000 CapEff: 0000000000000000 NoNewPrivs: 1 Uid: 999 999 999 999 '
  ! docker exec "$(of $one)" touch /usr/bin/another 2>/dev/null || wrong "$one can write its system"
done
mapfile -t all < <(docker ps -aq)
docker inspect "${all[@]}" >"$work/shown"
grep -q pg_gcl/primary "$work/shown" || wrong "nothing is shown"
! grep -F -e "$(cat "$GCL_SECRETS/cluster.key")" -e "$(cat "$GCL_SECRETS/postgres.password")" "$work/shown" ||
  wrong "a secret is shown"

say "Without the key nobody joins"
stranger=$work/stranger
docker/make_secrets "$stranger"
chgrp 999 "$stranger" "$stranger"/*
chmod 750 "$stranger"
chmod 640 "$stranger"/*
code=0
timeout 120 docker run --rm --hostname stranger --network ${project}_default -v "$stranger:/run/gcl:ro" -e GCL_NODE=3 \
  -e GCL_ADDRESS=stranger:5556 pg_gcl/primary >"$work/said" 2>&1 || code=$?
expect "$code" 1
grep -E "FATAL: +could not join the gcl pool" "$work/said" || wrong "a stranger's primary says: $(cat "$work/said")"
grep -m 1 "refuses this side's key" "$work/said" || wrong "a stranger's primary says: $(cat "$work/said")"
said memnode "is refused: its key is another than the cluster's" || wrong "memnode does not say it"
# shellcheck disable=SC2016
docker exec "$(of primary1)" bash -c 'exec 3<>/dev/tcp/memnode/7400; echo hello >&3; timeout 10 cat <&3' || true
within 30 said memnode 'is refused: it does not speak TLS' || wrong "memnode does not refuse what is no TLS"
all_have_all

say "A primary that starts while the memory node is away"
docker stop "$(of memnode)" >/dev/null
docker restart "$(of primary1)" >/dev/null
within 60 said primary1 'the address memnode:7400 is not known\|memnode:7400.*Connection refused' ||
  wrong "primary 1 says: $(logs primary1 | tail -n 5)"
logs primary1 | grep -A 1 'FATAL: *could not join the gcl pool' | tail -n 2
! serves 1 || wrong "it serves without memory"
docker start "$(of memnode)" >/dev/null
within 120 all_joined || wrong "memnode says: $(logs memnode | tail -n 20)"
all_have_all

say "Each container is restarted, and killed and started"
for one in memory memnode primary1 primary2 primary3; do
  echo "$one"
  docker restart "$(of $one)" >/dev/null
  [[ $one != memnode ]] || within 120 all_joined || wrong "memnode says: $(logs memnode | tail -n 20)"
  all_have_all
  docker kill "$(of $one)" >/dev/null
  docker start "$(of $one)" >/dev/null
  [[ $one != memnode ]] || within 120 all_joined || wrong "memnode says: $(logs memnode | tail -n 20)"
  all_have_all
done

say "A checkpoint of the pool, by a primary, out of the logs of all"
ask 2 "ALTER SYSTEM SET gcl.checkpoint_timeout = '1s'"
ask 2 "SELECT pg_reload_conf()" >/dev/null
within 60 said primary2 'gcl: checkpoint [0-9]*: [0-9]* records' || wrong "primary 2 says: $(logs primary2 | tail -n 5)"
all_have_all

say "docker-compose down, and up"
compose down || { cat "$work/compose"; wrong "docker-compose down"; }
expect "$(docker ps -aq)" ''
up
said pool 'nothing is lost' || wrong "pool says: $(logs pool)"
said memnode 'is in the pool' || wrong "memnode says: $(logs memnode)"
all_have_all

say "All are killed, and with them memory is lost"
compose kill
expect "$(docker ps -q)" ''
up
said pool 'memory has lost the pool, which was in use' || wrong "pool says: $(logs pool)"
said pool 'the pool is whole again' || wrong "pool says: $(logs pool)"
all_have_all
compose down -v
expect "$(docker volume ls -q)" ''

say "docker/demo"
docker/demo --seconds 30
