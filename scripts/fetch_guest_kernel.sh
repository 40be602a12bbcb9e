#!/bin/bash
# A kernel for tests/rdma's guest: scripts/fetch_guest_kernel.sh DIR
#
# Makes DIR/VERSION with vmlinux, the modules that a guest may want and a static busybox, and the link DIR/kernel to it, unless it
# is there: only the first time takes a network.  They come from Debian's packages, which apt finds at the machine's own sources
# and verifies with their keys.  Nothing is installed: the machine's own kernel, its boot loader and its lists are left alone.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

[[ $# -eq 1 ]] || die "usage: $0 DIR"
[[ ! -e $1/kernel ]] || exit 0
machine=$(dpkg --print-architecture)
[[ $machine == amd64 ]] || die "The guest's kernel is missing: it is known for amd64 machines only, and this is $machine"

mkdir -p "$1"
work=$(mktemp -d "$(realpath "$1")/half.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages,kernel/modules}
chmod 755 "$work"

# With lists of its own: those of the machine may be of yesterday, or not be there.
privately=(-q -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o Acquire::Retries=2 -o Acquire::http::Timeout=30
  -o APT::Sandbox::User=root)
missing() {
  tail -n 12 "$work/said" >&2
  die "The guest's kernel is missing: $1.
Is there a network (apt-get update)?"
}
say "A kernel for guests"
timeout 300 apt-get "${privately[@]}" update >"$work/said" 2>&1 || true  # a source that does not answer need not be the one that matters
image=$(apt-cache "${privately[@]}" depends linux-image-amd64 2>>"$work/said" | sed -n 's/.*Depends: \(linux-image-[0-9]\)/\1/p' | head -n 1) || true
[[ -n $image ]] || missing "the package linux-image-amd64 is not known"
(cd "$work/packages" && timeout 600 apt-get "${privately[@]}" download "$image" busybox-static) >>"$work/said" 2>&1 ||
  missing "the packages $image and busybox-static could not be downloaded"

# unpack PACKAGE PATTERN...: these files of it, into $work/files
unpack() {
  local package=$1
  shift
  mkdir -p "$work/files"
  dpkg-deb --fsys-tarfile "$work/packages/$package"_*.deb | tar -x -C "$work/files" --wildcards "$@" 2>>"$work/said" ||
    missing "the package $package has no $*"
}
unpack "$image" './boot/vmlinuz-*' './lib/modules/*.ko'
unpack busybox-static ./bin/busybox
# Unpacked, for a guest takes seconds to do that; the header of what a boot loader loads says where it is.
python3 - "$work"/files/boot/vmlinuz-* "$work/kernel/vmlinux" >>"$work/said" 2>&1 <<'PYTHON' || missing "the kernel of $image could not be unpacked"
import lzma, pathlib, struct, sys
image = pathlib.Path(sys.argv[1]).read_bytes()
offset, length = struct.unpack_from("<II", image, 0x248)
begin = (image[0x1F1] + 1) * 512 + offset
pathlib.Path(sys.argv[2]).write_bytes(lzma.LZMADecompressor().decompress(image[begin:begin + length]))
PYTHON
cp "$work/files/bin/busybox" "$work/kernel/"
for folder in crypto lib fs/9p fs/configfs fs/fscache fs/netfs fs/overlayfs net/9p net/ipv4 net/ipv6 drivers/virtio drivers/char drivers/infiniband/core \
  drivers/infiniband/sw drivers/net/veth.ko arch/x86/crypto; do
  find "$work"/files/lib/modules/*/kernel/$folder -name '*.ko' -exec cp -t "$work/kernel/modules" {} +
done
version=${image#linux-image-}
rm -rf "${1:?}/$version"
mv -T "$work/kernel" "$1/$version"
ln -sfn "$version" "$1/kernel"
