# What ./demo, ./check and scripts/build_packages.sh share.  Sourced by bash with `set -euo pipefail`, from the repository's root.

# What a Debian 12 lacks: to build what is PostgreSQL-free, and all.  postgresql-15 is the server itself.
gcl_build_packages=(g++ cmake ninja-build ccache pkg-config python3 procps libgtest-dev libssl-dev libibverbs-dev)
gcl_packages=("${gcl_build_packages[@]}"
  postgresql-15 postgresql-client-15 postgresql-server-dev-15 libpq-dev
  libfmt-dev libcli11-dev libtoml11-dev libbenchmark-dev)
gcl_check_packages=(clang clang-format clang-tidy libclang-rt-14-dev valgrind git bzip2
  qemu-system-x86 iproute2 ibverbs-providers ibverbs-utils)
gcl_packaging_packages=(build-essential dpkg-dev debhelper lintian debootstrap)
gcl_container_packages=(docker.io docker-compose debootstrap)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Whether packages can be installed without asking anybody.
may_install() { [[ $EUID -eq 0 ]] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# missing_packages NAME...: those that are not installed, a line each.
missing_packages() {
  local package
  for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}

# install_packages NAME...: installs what is missing, or prints the line to run and exits with 2.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return 0
  local install=("$PWD/scripts/install_packages.sh" "${missing[@]}") root=()
  if [[ $EUID -ne 0 ]]; then
    if may_install; then
      root=(sudo -n)
    elif command -v sudo >/dev/null && [[ -t 0 ]] && sudo -v; then
      root=(sudo)
    else
      echo "Packages are missing, and installing them takes root. Run as root:" >&2
      printf '  %s\n' "${install[*]}" >&2
      exit 2
    fi
  fi
  say "Installing ${missing[*]}"
  "${root[@]}" "${install[@]}" || die "the packages could not be installed (exit code $?)"
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  local targets=() said
  said=$(cmake --preset "$preset" 2>&1) || { echo "$said"; return 1; }
  [[ $# -gt 0 ]] && targets=(--target "$@")
  cmake --build --preset "$preset" "${targets[@]}"
}

# pristine_debian DIR: DIR/base, once, with what Debian calls minimal, its security updates, and certificates.  As root, by
# a script that has locked DIR.
pristine_debian() {
  local base=$1/base
  [[ ! -e $base.done ]] || return 0
  say "A minimal Debian 12 in $base"
  rm -rf "$base"
  mkdir -p "$1/archives/partial"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$base" http://deb.debian.org/debian >"$1/log" ||
    { tail -n 20 "$1/log"; die "debootstrap failed"; }
  printf 'deb http://deb.debian.org/debian %s main\n' bookworm bookworm-updates >"$base/etc/apt/sources.list"
  echo 'deb http://deb.debian.org/debian-security bookworm-security main' >>"$base/etc/apt/sources.list"
  touch "$base.done"
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
