#!/bin/bash
# PostgreSQL's own isolation suite, for the tests: scripts/fetch_isolation_suite.sh DIR
#
# Makes DIR/VERSION with specs/, expected/ and isolation_schedule, unless it is there: only the first time takes a network.
# They come from Debian's source package of exactly the server that is installed, which apt finds at the machine's own sources
# and verifies with their keys.  The machine's lists are left alone.
#
# GCL_ISOLATION_SUITE_VERSION=15.18-0+deb12u1 takes the suite of another version: for where the archive lacks that of the
# server.  Nothing does so by itself, and the test says which it ran.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

[[ $# -eq 1 ]] || die "usage: $0 DIR"
package=$(dpkg-query -W -f '${source:Package}' postgresql-15) || die "postgresql-15 is not installed as a package"
installed=$(dpkg-query -W -f '${source:Version}' postgresql-15)
version=${GCL_ISOLATION_SUITE_VERSION:-$installed}
to=$1/$version
[[ ! -e $to ]] || exit 0

mkdir -p "$1"
work=$(mktemp -d "$(realpath "$1")/half.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,package,suite}

# The machine's sources, of source packages.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -e $file ]] || sed -n 's/^deb\b/deb-src/p' "$file" >"$work/sources/$(basename "$file" .list).list"
done
for file in /etc/apt/sources.list.d/*.sources; do
  [[ ! -e $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/$(basename "$file")"
done
privately=(-q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o Acquire::Retries=2)

# failed WHAT: with what apt said
failed() {
  tail -n 12 "$work/said" >&2
  die "PostgreSQL's isolation suite is missing: $1.
It is in the source package $package $version, which apt downloads once.
Is there a network, and does the archive have that version (apt-get update, apt-get upgrade)?
GCL_ISOLATION_SUITE_VERSION=VERSION takes the suite of another one, out of those that it has."
}

say "The isolation suite of $package $version"
# A source that has no source packages, or does not answer, need not be the one that matters.
apt-get "${privately[@]}" update >"$work/said" 2>&1 || true
(cd "$work/package" && apt-get "${privately[@]}" source --download-only "$package=$version") >>"$work/said" 2>&1 ||
  failed "the package could not be downloaded"
tar -xf "$work"/package/*.orig.tar.* -C "$work/suite" --strip-components=4 --wildcards \
  '*/src/test/isolation/specs/*' '*/src/test/isolation/expected/*' '*/src/test/isolation/isolation_schedule' \
  >>"$work/said" 2>&1 || failed "the package has no such files"
mv -T "$work/suite" "$to"
