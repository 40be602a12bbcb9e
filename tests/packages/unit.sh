#!/bin/bash
# In a Debian 12 with systemd and the packages, as root: unit.sh PORT.  Runs the unit of a memory node as a machine would:
# systemd is process 1 of a process space of its own, in a copy of this system that ends with it.
set -euo pipefail
port=$1
work=$(mktemp -d)
die() { printf 'NOT RIGHT: %s\n' "$*" >&2; exit 1; }

# Its processes have a branch of the control groups, which systemd takes for all of them.
mkdir "$work/groups"
mount -t cgroup2 none "$work/groups"
branch=$work/groups/gcl-packages-$$
mkdir "$branch"
machine='' init=''
remove() {
  [[ -z $init ]] || kill -9 "$init" 2>/dev/null || true
  [[ -z $machine ]] || wait "$machine" 2>/dev/null || true
  find "$branch" -depth -type d -exec rmdir {} \;
  umount "$work/groups"
  rm -rf "$work"
}
trap remove EXIT

boot() {
  set -e
  echo 0 >"$branch/cgroup.procs"
  export work
  # shellcheck disable=SC2016
  exec unshare --mount --pid --cgroup --fork --kill-child bash -c '
    set -e
    mount -t tmpfs none "$work"
    mkdir "$work/changes" "$work/work" "$work/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$work/changes,workdir=$work/work" "$work/root"
    mount -t proc proc "$work/root/proc"
    mount --bind "$work/root/proc/sys" "$work/root/proc/sys"
    mount -o remount,bind,ro "$work/root/proc/sys"
    mount -t sysfs -o ro sys "$work/root/sys"
    mount -t tmpfs none "$work/root/run"
    mount -t cgroup2 none "$work/root/sys/fs/cgroup"
    cd "$work/root"
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --unit=basic.target'
}
boot 2>"$work/boot" &
machine=$!
# in_machine COMMAND...
in_machine() { nsenter -t "$init" --pid --mount --cgroup --root --wd timeout 60 "$@"; }
within_a_minute() {
  local i
  for ((i = 0; i < 600; i++)); do if "$@"; then return 0; fi; sleep 0.1; done
  return 1
}
is_up() {
  init=$(cat "/proc/$machine/task/$machine/children" 2>/dev/null) && init=${init% } && [[ -n $init ]] &&
    [[ $(in_machine systemctl is-system-running 2>/dev/null) == running ]]
}
within_a_minute is_up || die "systemd is not up: $(cat "$work/boot")"

unit=gcl-memnode@0 pool=/dev/shm/gcl-pool account=gcl-memnode key=/etc/gcl/memnode/cluster.key
socket=/run/gcl-memnode/0/socket
show() { in_machine systemctl show -p "$1" --value "$unit"; }
expect() { [[ $1 == "$2" ]] || { in_machine systemctl status --no-pager "$unit" || true; die "'$1' instead of '$2'"; }; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# As docs/OPERATING.md says.
in_machine setpriv --reuid "$account" --regid "$account" --init-groups \
  gclctl make-pool "$pool" --saved "/var/lib/$account/pool.saved" --size 64MB --primaries 1 >/dev/null
in_machine bash -c "od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >key && install -m 640 -g $account key $key"
in_machine sed -e "s,^FILE=.*,FILE=$pool," \
  -e "s,--listen [^ ]*,--listen 127.0.0.1:$port --listen unix:$socket," -e "s,--key [^ ]*,--key $key," \
  /usr/share/doc/gcl-memnode/examples/0.conf >"$work/0.conf"
in_machine tee /etc/gcl/memnode/0.conf <"$work/0.conf" >/dev/null
in_machine md5sum "$pool" >"$work/pool"

in_machine systemctl --quiet enable --now "$unit"
within_a_minute listens || { in_machine systemctl status --no-pager "$unit" || true; die "nothing listens"; }
in_machine test -S "$socket" || die "no $socket"
process=$(show MainPID)
expect "$(in_machine stat -c %U "/proc/$process")" "$account"
expect "$(in_machine grep -E '^(CapEff|NoNewPrivs|Seccomp):' "/proc/$process/status" | tr -s '\t\n' ' ')" \
  'CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 '
expect "$(show LimitMEMLOCK)" infinity  # what it gets is what this machine lets systemd give
# Another one of the same file, beside it.
in_machine setpriv --reuid "$account" --regid "$account" --init-groups gcl_memnode "$pool" --listen unix:/tmp/another \
  --plain 2>"$work/second" && die "two servers of one file"
grep -q 'served over a network by a process' "$work/second" || die "the second one says: $(cat "$work/second")"

# One that has failed is started again.
in_machine bash -c "kill -9 $process"
restarted() { [[ $(show NRestarts) == 1 && $(show ActiveState) == active ]] && listens; }
within_a_minute restarted || die "$(in_machine systemctl status --no-pager "$unit")"

in_machine systemctl stop "$unit"
expect "$(show ActiveState) $(show Result)" 'inactive success'
in_machine journalctl --no-pager -o cat -u "$unit" | grep 'has stopped' || die "it has not stopped by itself"
in_machine md5sum --quiet -c - <"$work/pool" || die "$pool has changed"

# As after a reboot: the copy is loaded.
in_machine bash -c "rm $pool"
in_machine systemctl start "$unit"
within_a_minute listens || die "nothing listens"
in_machine gcl_memnode "$pool" --listen "127.0.0.1:$port" --plain --check | grep 'memory node 0 of pool'
in_machine systemctl stop "$unit"

# Removing the package stops what runs, and takes what was configured.
in_machine systemctl start "$unit"
within_a_minute listens || die "nothing listens"
in_machine env DEBIAN_FRONTEND=noninteractive apt-get -q -y purge gcl-memnode >"$work/apt" 2>&1 || die "$(cat "$work/apt")"
! listens || die "what is removed goes on"
! in_machine bash -c 'ls -d /etc/gcl /etc/systemd/system/*.wants/gcl-*' 2>/dev/null || die "that is left"
in_machine test -e "/var/lib/$account" -a -e "$pool" || die "memory is removed"
