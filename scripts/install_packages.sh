#!/bin/sh
# Installs Debian packages, as root: scripts/install_packages.sh NAME...
#
# Asks nothing and waits up to 10 minutes for another package manager.  The server's package would make and start a
# cluster on port 5432; while it is installed it is told not to.  A cluster that is there is left alone.
set -eu
no_cluster=/etc/postgresql-common/createcluster.d/zz_pg_gcl.conf
mkdir -p "${no_cluster%/*}"
trap 'rm -f "$no_cluster"' EXIT
trap 'exit 130' INT TERM
echo 'create_main_cluster = false' >"$no_cluster"
export DEBIAN_FRONTEND=noninteractive
apt-get -q -o DPkg::Lock::Timeout=600 update
apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
