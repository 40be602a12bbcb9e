#!/bin/bash
# Runs a command in a clean Debian 12 that holds a fresh clone of this repository and nothing else, and looks at what it
# left behind.  As root, on Debian, with debootstrap:
#
#   scripts/clean_debian.sh ./demo --seconds 5              as root
#   scripts/clean_debian.sh --as sudo ./check               as a user with passwordless sudo
#   scripts/clean_debian.sh --as plain --expect 2 ./demo    as a user without: it must say what to run, and exit with 2
#
# --as root|sudo|plain    who runs the command
# --expect CODE           the exit code that is right (0)
# --before COMMAND        run by root first, such as: apt-get install -y postgresql-15
# --bring DIR             copied into the home directory, beside the clone
# --dir DIR               holds the pristine system and downloaded packages between runs (/var/tmp/gcl-clean-debian)
# --keep                  leave the changed system behind for a look
#
# The command sees no terminal, no locale and no TERM.  The network is this machine's; processes, /tmp and /dev/shm are
# its own.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh

who=root expect=0 before='' bring='' dir=/var/tmp/gcl-clean-debian keep=no
while [[ ${1-} == --* ]]; do
  case $1 in
    --as) who=$2; shift 2 ;;
    --expect) expect=$2; shift 2 ;;
    --before) before=$2; shift 2 ;;
    --bring) bring=$(realpath "$2"); shift 2 ;;
    --dir) dir=$2; shift 2 ;;
    --keep) keep=yes; shift ;;
    *) die "unknown option $1; see the head of scripts/clean_debian.sh" ;;
  esac
done
[[ $# -gt 0 && $who =~ ^(root|sudo|plain)$ ]] || die "usage: scripts/clean_debian.sh [OPTIONS] COMMAND...; see its head"
[[ $EUID -eq 0 ]] || die "run me as root: I mount and change root"
type debootstrap >/dev/null || die "apt-get install debootstrap"

# One at a time: they share what apt has downloaded.
mkdir -p "$dir"
exec {lock}>"$dir/lock"
flock -w 1800 "$lock" || die "another run has $dir"

base=$dir/base
pristine_debian "$dir"

# This run's system: changes go to a layer of its own.
run=$(mktemp -d "$dir/run-XXXXXX")
root=$run/root
mkdir "$run/changes" "$run/work" "$root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$run/changes,workdir=$run/work" "$root"
job=''
remove() {
  local i
  # What runs inside ends with its process 1, and lets go of the system a moment later.
  [[ -z $job ]] || kill -9 "$job" 2>/dev/null || true
  for ((i = 0; i < 100; i++)); do if umount "$root" 2>/dev/null; then break; fi; sleep 0.1; done
  ! mountpoint -q "$root" || die "$root is in use, and stays mounted"
  if [[ $keep == yes ]]; then echo "What changed lies in $run/changes"; else rm -rf "$run"; fi
}
trap remove EXIT
trap 'exit 130' INT TERM
cp /etc/resolv.conf /etc/hosts "$root/etc/"
home=/root
if [[ $who != root ]]; then
  home=/home/somebody
  chroot "$root" useradd -m -s /bin/bash somebody
fi
git clone -q --no-local . "$root$home/pg_gcl"
[[ -z $bring ]] || cp -r "$bring" "$root$home/"
[[ $who == root ]] || chroot "$root" chown -R somebody: "$home"

# What runs inside as process 1 of its own process space, once the rest is mounted.
export who home before expect dir root
inside() {
  set -euo pipefail
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sys "$root/sys"
  mkdir -p "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 pts "$root/dev/pts"
  ln -sf pts/ptmx "$root/dev/ptmx"
  mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
  mount --bind "$dir/archives" "$root/var/cache/apt/archives"
  cd /
  local plain=(env -i "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "HOME=$home")
  in_root() { chroot "$root" "${plain[@]}" "$@" </dev/null; }
  if [[ $who == sudo ]]; then
    in_root sh -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends sudo' \
      >/dev/null 2>&1
    echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/somebody"
  fi
  if [[ -n $before ]]; then in_root bash -c "$before"; fi
  local clusters code=0 bad=0 left
  clusters=$(ls -d "$root"/etc/postgresql/*/* 2>/dev/null || true)
  say "$who: $*"
  if [[ $who == root ]]; then
    in_root sh -c 'cd "$HOME/pg_gcl" && "$@"' sh "$@" || code=$?
  else
    in_root runuser -u somebody -- sh -c 'cd "$HOME/pg_gcl" && "$@"' sh "$@" || code=$?
  fi
  say "What is left behind"
  complain() { echo "NOT RIGHT: $*"; bad=1; }
  [[ $code -eq $expect ]] || complain "exit code $code instead of $expect"
  [[ $(ls -d "$root"/etc/postgresql/*/* 2>/dev/null || true) == "$clusters" ]] || complain "a cluster of the system's"
  left=$(ls -A "$root/etc/postgresql-common/createcluster.d" 2>/dev/null || true)
  [[ -z $left ]] || complain "settings of the packages: $left"
  left=$(ls -A "$root/dev/shm")
  [[ -z $left ]] || complain "shared memory: $left"
  left=$(ls -A "$root/tmp")
  [[ -z $left ]] || complain "in /tmp: $left"
  left=$(ls -A "$root/var/lib/postgresql" 2>/dev/null | grep gcl || true)
  [[ -z $left ]] || complain "in /var/lib/postgresql: $left"
  [[ -n $before ]] || left=$(chroot "$root" ps -eo pid,args 2>/dev/null | grep -E 'postgres|gclctl|ports.py' | grep -v grep || true)
  [[ -z $left ]] || complain "processes: $left"
  [[ $bad -ne 0 ]] || echo "nothing"
  return "$bad"
}
export -f inside say
# In the background, so that a signal ends it at any time; but not deaf to SIGINT, as the shell's jobs are without -m.
set -m
unshare --mount --pid --ipc --uts --fork --kill-child bash -c 'inside "$@"' inside "$@" &
job=$!
set +m
code=0
wait "$job" || code=$?
exit "$code"
