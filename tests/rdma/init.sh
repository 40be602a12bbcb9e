#!/bin/busybox sh
# The guest's first process: loads the modules, mounts the host's files, makes the RDMA devices, and runs /command.
#
# Each step is said on the console.  One that fails ends the guest without an exit code: guest.py says so, with the console's last
# lines.
set -eux
export PATH=/bin
/bin/busybox --install -s /bin
trap 'set +x; poweroff -f' EXIT
mount -t devtmpfs devices /dev
for module in /modules/*.ko; do insmod "$module"; done

# The host's files, as they are.  What is written stays in memory and ends with the guest, but for the directories of --write.
mkdir /proc /host /memory /files
mount -t proc processes /proc
mount -t tmpfs -o size=90% memory /memory
mkdir /memory/written /memory/work
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=1048576,cache=loose host /host
mount -t overlay -o lowerdir=/host,upperdir=/memory/written,workdir=/memory/work files /files
mount -t devtmpfs devices /files/dev
mount -t proc processes /files/proc
mount -t sysfs kernel /files/sys
mkdir -p /files/dev/shm /files/dev/pts
mount -t tmpfs -o size=90%,mode=1777 shm /files/dev/shm
mount -t devpts terminals /files/dev/pts
mount -t tmpfs -o mode=755 run /files/run
mkdir -m 1777 /files/run/lock
. /written_by_host

# A cable with an end at either side, and an RDMA device on each.  (With the host's ip, which is another one than busybox's.)
run() { chroot /files "$@"; }
ip=/usr/bin/ip rdma=/usr/bin/rdma
run $ip link set lo up
run $ip link add rdma0 type veth peer name rdma1
# What goes from the address of one end to that of the other takes the cable, and not the short way that a kernel knows between
# its own addresses: those are looked up last, but for what comes out of the cable.
for family in 4 6; do
  run $ip -$family rule add pref 100 lookup local
  run $ip -$family rule del pref 0
done
for name in all rdma0 rdma1; do
  echo 1 >/files/proc/sys/net/ipv4/conf/$name/accept_local
  echo 0 >/files/proc/sys/net/ipv4/conf/$name/rp_filter
done
# end NUMBER FAMILY ADDRESS LENGTH ADDRESS_OF_THE_OTHER [nodad]
end() {
  run $ip -$2 address add "$3/$4" dev "rdma$1" ${6:-}
  run $ip -$2 rule add pref 10 iif "rdma$1" lookup local
  run $ip -$2 rule add pref 20 from "$3" to "$5" lookup "7$1"
  run $ip -$2 route add "$5" dev "rdma$1" table "7$1"
}
for number in 0 1; do run $ip link set "rdma$number" mtu 4200 up; done
end 0 4 10.77.0.1 24 10.77.0.2
end 1 4 10.77.0.2 24 10.77.0.1
end 0 6 fd00:77::1 64 fd00:77::2 nodad
end 1 6 fd00:77::2 64 fd00:77::1 nodad
for number in 0 1; do run $rdma link add "rxe$number" type rxe netdev "rdma$number"; done

ulimit -l unlimited
ulimit -c 0
set +ex
run /bin/sh /run/command </dev/null >/dev/vport0p1 2>/dev/vport0p2
code=$?
set -ex
sync
echo "exit $code" >/dev/vport0p3
