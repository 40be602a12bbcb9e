#!/bin/bash
# PostgreSQL's own isolation suite, for the tests: scripts/fetch_isolation_suite.sh DIR
#
# Makes DIR/VERSION with specs/, expected/ and isolation_schedule, and the link DIR/of-INSTALLED to it, unless it is there: only
# the first time takes a network.  They come from Debian's source package of the server that is installed, which apt finds at the
# machine's own sources and verifies with their keys; where an archive has lost that one, which happens to those of security
# updates, of the newest minor version that it has.  The test says which it plays.  The machine's lists are left alone.
#
# GCL_ISOLATION_SUITE_VERSION=15.18-0+deb12u1 takes that version, and no other.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

[[ $# -eq 1 ]] || die "usage: $0 DIR"
package=$(dpkg-query -W -f '${source:Package}' postgresql-15) || die "postgresql-15 is not installed as a package"
installed=$(dpkg-query -W -f '${source:Version}' postgresql-15)
named=${GCL_ISOLATION_SUITE_VERSION:-}
link=$1/of-$installed
[[ ! -e ${named:+$1/}${named:-$link} ]] || exit 0

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

# download VERSION: into $work/package
download() {
  rm -f "$work"/package/*
  (cd "$work/package" && apt-get "${privately[@]}" source --download-only "$package=$1") >>"$work/said" 2>&1
}
# The source versions that the archive speaks of, the newest first.
offered() { apt-cache "${privately[@]}" madison "$package" 2>/dev/null | awk '$NF == "Sources" {print $3}' | grep -vxF "$installed" | sort -rVu; }

# A source that has no source packages, or does not answer, need not be the one that matters.
apt-get "${privately[@]}" update >"$work/said" 2>&1 || true
version=''
for candidate in ${named:-"$installed" $(offered)}; do
  say "The isolation suite of $package $candidate"
  if download "$candidate"; then
    version=$candidate
    break
  fi
done
if [[ -z $version ]]; then
  tail -n 12 "$work/said" >&2
  die "PostgreSQL's isolation suite is missing: the source package $package ${named:-$installed} could not be downloaded, nor another one.
Is there a network, and does the archive have that version (apt-get update, apt-get upgrade)?"
fi
tar -xf "$work"/package/*.orig.tar.* -C "$work/suite" --strip-components=4 --wildcards \
  '*/src/test/isolation/specs/*' '*/src/test/isolation/expected/*' '*/src/test/isolation/isolation_schedule' ||
  die "PostgreSQL's isolation suite is missing: the package $package $version has no such files"
[[ -e $1/$version ]] || mv -T "$work/suite" "$1/$version"
[[ -n $named ]] || ln -sfn "$version" "$link"
