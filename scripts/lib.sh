# What ./demo and ./check share.  Sourced by bash with `set -euo pipefail`, from the repository's root.

# What a Debian 12 lacks.  postgresql-15 is the server itself.
gcl_packages=(g++ cmake ninja-build ccache pkg-config python3 procps
  postgresql-15 postgresql-client-15 postgresql-server-dev-15 libpq-dev
  libfmt-dev libcli11-dev libgtest-dev libbenchmark-dev)
gcl_check_packages=(clang-format valgrind)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# install_packages NAME...: installs what is missing, or prints the line to run and exits with 2.
install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  local root=()
  if [[ $EUID -ne 0 ]]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      root=(sudo -n)
    elif command -v sudo >/dev/null && [[ -t 0 ]] && sudo -v; then
      root=(sudo)
    else
      echo "Packages are missing, and installing them takes root. Run as root:" >&2
      echo "  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${missing[*]}" >&2
      exit 2
    fi
  fi
  say "Installing ${missing[*]}"
  # The server's package would make and start a cluster on port 5432; while it is installed it is told not to.
  local no_cluster=/etc/postgresql-common/createcluster.d/zz_pg_gcl.conf
  "${root[@]}" mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' | "${root[@]}" tee "$no_cluster" >/dev/null
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
  local code=0
  { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } || code=$?
  "${root[@]}" rm -f "$no_cluster"
  [[ $code -eq 0 ]] || die "the packages could not be installed (apt-get ended with $code)"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >"/tmp/gcl-configure.$$" 2>&1 || { cat "/tmp/gcl-configure.$$"; rm -f "/tmp/gcl-configure.$$"; return 1; }
  rm -f "/tmp/gcl-configure.$$"
  local targets=()
  [[ $# -gt 0 ]] && targets=(--target "$@")
  cmake --build --preset "$preset" "${targets[@]}"
}

# A directory's name for a cluster that the account of its servers can enter: free_dir NAME
free_dir() {
  local parent=${TMPDIR:-/tmp}
  [[ $EUID -eq 0 ]] && parent=/var/lib/postgresql
  echo "$parent/gcl-$1-$$"
}

# Reserves N successive ports until this shell ends and leaves the first one in $first_port: reserve_ports N
reserve_ports() {
  coproc port_holder { exec python3 scripts/ports.py "$1"; }
  read -r first_port <&"${port_holder[0]}" || die "no $1 successive ports are free"
}
