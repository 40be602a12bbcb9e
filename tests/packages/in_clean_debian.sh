#!/bin/bash
# Builds the packages, has lintian look at them, and installs, uses and removes them in a clean Debian 12
# (scripts/clean_debian.sh), as installed.sh says.  As root or with sudo: tests/packages/in_clean_debian.sh [PACKAGES]
#
# PACKAGES: a directory with packages that are there already.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/lib.sh
install_packages "${gcl_packages[@]}" "${gcl_packaging_packages[@]}" git

work=$(mktemp -d)
remove() { rm -rf "$work"; }
trap remove EXIT
trap 'exit 130' INT TERM

say "Packages"
if [[ $# -gt 0 ]]; then cp -r "$1" "$work/packages"; else scripts/build_packages.sh "$work/packages"; fi
rm -f "$work"/packages/*-dbgsym_*

say "lintian"
lintian --allow-root --fail-on error,warning --show-overrides "$work"/packages/*.deb

# Its network is this machine's: two clusters of two primaries, and a memory node.
reserve_ports 5
cp tests/packages/{installed,unit}.sh "$work/packages/"
as_root=()
[[ $EUID -eq 0 ]] || as_root=(sudo -n)
timeout 1200 "${as_root[@]}" scripts/clean_debian.sh --bring "$work/packages" ../packages/installed.sh "$first_port"
