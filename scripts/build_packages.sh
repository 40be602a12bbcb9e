#!/bin/bash
# Builds the packages gcl-15, gclctl and gcl-memnode for the Debian 12 that this is run on, from the files of this
# directory as they are: scripts/build_packages.sh [DIRECTORY]
#
# They are left in DIRECTORY (build/packages), and nothing else is.  What the build needs is installed, or named.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/lib.sh
[[ $# -le 1 && ${1-} != -* ]] || die "usage: scripts/build_packages.sh [DIRECTORY]"
made=$(realpath -m "${1:-build/packages}")
install_packages "${gcl_packages[@]}" "${gcl_packaging_packages[@]}"

# One at a time.  It is a copy, because debhelper writes beside what it reads; always at one place, so that ccache finds
# what it has compiled.
mkdir -p build
exec {lock}>build/packages.lock
flock "$lock"
work=$PWD/build/packages.work
remove() { rm -rf "$work"; }
trap remove EXIT
trap 'exit 130' INT TERM
remove
mkdir -p "$work/pg-gcl"
tar -c --exclude='./build*' --exclude=./.git --exclude=./.cache --exclude=__pycache__ . | tar -x -C "$work/pg-gcl"

# The tests are run by ./check.  debhelper has a home directory of its own, without this account's cache.
CCACHE_DIR=$(ccache --get-config cache_dir)
export CCACHE_DIR DEB_BUILD_OPTIONS="nocheck terse parallel=$(nproc) ${DEB_BUILD_OPTIONS-}"
(cd "$work/pg-gcl" && dpkg-buildpackage --build=binary --no-sign)

rm -rf "$made"
mkdir -p "$made"
mv "$work"/*.deb "$made"
ls -l "$made"
