#!/usr/bin/env python3
"""Runs a command in a guest with RDMA: guest.py [--memory MB] [--cpus N] [--seconds N] [--write DIR]... [--verbose] [--] COMMAND ARGUMENT...

The guest is Debian's kernel in qemu, emulated: it takes no rights and no hardware.  It sees the files of this machine as they
are, at the same paths; what it writes stays in its memory and ends with it, but below a --write DIR.  So COMMAND is whatever runs
here, with its libraries, in this directory and this environment, as root.  README.md says which devices and addresses it has.

Its output and errors are those of COMMAND, and so is its exit code.  But:
  124  COMMAND had not ended after --seconds, the guest's start among them
  125  the guest ended without COMMAND's exit code (a panic, a step of its start that failed), or could not be started
In both cases the last lines of the guest's console are printed, and nothing is left running.
"""
import argparse
import collections
import ctypes
import os
import pathlib
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNEL = pathlib.Path(os.environ.get("GCL_GUEST_KERNEL", HERE.parents[1] / "build/guest_kernel")) / "kernel"
QEMU = "qemu-system-x86_64"
# What the start of the guest needs, in this order; what these need comes before them.
MODULES = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "veth", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm"]
# On a processor that says that it copies strings fast (ERMS, FSRM) the kernel copies by `rep movsb`, which the emulation does byte by
# byte: what Soft-RoCE READs of a word then would be torn.  Else it copies words (coherence/transport/verbs/design.md).
CPU = "max,-erms,-fsrm"
CONSOLE_LINES_MAX = 100  # a panic with its trace takes some 40, more or less
TIMED_OUT, NO_EXIT_CODE = 124, 125
PR_SET_PDEATHSIG = 1


def in_order(folder, wanted):
    """The files of the modules and of all that they need, each after what it needs."""
    files = {path.stem.replace("-", "_"): path for path in folder.glob("*.ko")}
    found = []

    def add(name):
        path = files[name.replace("-", "_")]
        if path in found:
            return
        needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes()).group(1).decode("ascii")
        for need in filter(None, needs.split(",")):
            add(need)
        found.append(path)

    for name in wanted:
        add(name)
    return found


def initramfs(arguments):
    """An open file with what the guest does before it sees the host's files."""
    environment = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in os.environ.items() if re.fullmatch(r"[A-Za-z_]\w*", name))
    command = f"{environment}cd {shlex.quote(os.getcwd())} || exit\nexec {shlex.join(arguments.command)}\n"
    mounts = ["cp /command /files/run/command"]
    for number, path in enumerate(arguments.write):
        mounts.append(f"mount -t 9p -o rw,trans=virtio,version=9p2000.L,msize=1048576,cache=none write{number} {shlex.quote('/files' + path)}")
    packed = open(os.memfd_create("initramfs"), "w+b")  # pylint: disable=consider-using-with
    with tempfile.TemporaryDirectory(prefix="gcl-guest-") as folder:
        root = pathlib.Path(folder)
        for name in ("bin", "dev", "modules"):
            (root / name).mkdir()
        shutil.copy(KERNEL / "busybox", root / "bin")
        shutil.copy(HERE / "init.sh", root / "init")
        for number, path in enumerate(in_order(KERNEL / "modules", MODULES)):
            shutil.copy(path, root / f"modules/{number:02}-{path.name}")
        (root / "command").write_text(command, "utf-8", "surrogateescape")
        (root / "written_by_host").write_text("\n".join(mounts) + "\n", "utf-8", "surrogateescape")
        names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*"))).encode()
        subprocess.run([KERNEL / "busybox", "cpio", "-o", "-H", "newc"], cwd=root, input=names, stdout=packed, stderr=subprocess.PIPE, check=True)
    return packed


def qemu_arguments(arguments, packed, pipes):
    """The command line of qemu.  pipes: the ends that it writes into, by name."""
    sets = [argument for number, end in enumerate(pipes.values()) for argument in ("-add-fd", f"fd={end},set={number}")]
    chardevs = [argument for number, name in enumerate(pipes) for argument in ("-chardev", f"file,id={name},path=/dev/fdset/{number},append=on")]
    shared = [("host", "/", "on")] + [(f"write{number}", path, "off") for number, path in enumerate(arguments.write)]
    exports = []
    for tag, path, readonly in shared:
        exports += ["-fsdev", f"local,id={tag},path={path.replace(',', ',,')},security_model=none,multidevs=remap,readonly={readonly}"]
        exports += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", CPU,
        "-m", f"{arguments.memory}M", "-smp", str(arguments.cpus), *sets, *chardevs, "-serial", "chardev:console", "-device", "virtio-serial-pci",
        *(argument for number, name in enumerate(("out", "err", "exit"), 1) for argument in ("-device", f"virtserialport,chardev={name},nr={number}")),
        *exports, "-kernel", str(KERNEL / "vmlinux"), "-initrd", f"/proc/self/fd/{packed.fileno()}",
        "-append", "console=ttyS0 loglevel=5 panic=-1 mitigations=off audit=0 random.trust_cpu=on",
    ]  # fmt: skip


def dies_with_its_parent():
    """A guest.py that is killed leaves no guest."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def listen(reading, deadline, verbose):
    """Passes on what the guest writes until it ends or says the exit code.  The exit code, "late" or None; and the console's last lines."""
    console, said = collections.deque(maxlen=CONSOLE_LINES_MAX), b""
    rest = b""
    with selectors.DefaultSelector() as selector:
        for name, end in reading.items():
            selector.register(end, selectors.EVENT_READ, name)
        while selector.get_map() and not said.endswith(b"\n"):
            ready = selector.select(max(0, deadline - time.monotonic()))
            if not ready:
                return "late", console
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fd)
                elif key.data == "out":
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                elif key.data == "err":
                    sys.stderr.buffer.write(data)
                    sys.stderr.buffer.flush()
                elif key.data == "console":
                    if verbose:
                        sys.stderr.buffer.write(data)
                        sys.stderr.buffer.flush()
                    *lines, rest = (rest + data).split(b"\n")
                    console.extend(lines)
                    rest = rest[-1000:]
                else:
                    said += data
    console.append(rest)
    code = re.fullmatch(rb"exit (\d+)\n", said)
    return int(code.group(1)) if code else None, console


def run(arguments):
    """The exit code."""
    deadline = time.monotonic() + arguments.seconds
    pipes = {name: os.pipe() for name in ("console", "out", "err", "exit")}
    writing = {name: ends[1] for name, ends in pipes.items()}
    with initramfs(arguments) as packed:
        qemu = subprocess.Popen(qemu_arguments(arguments, packed, writing), stdin=subprocess.DEVNULL, stdout=writing["console"],
                                stderr=writing["console"], pass_fds=(packed.fileno(), *writing.values()), preexec_fn=dies_with_its_parent)
    try:
        for end in writing.values():
            os.close(end)
        code, console = listen({name: ends[0] for name, ends in pipes.items()}, deadline, arguments.verbose)
    finally:
        qemu.kill()
        qemu.wait()
    if code not in ("late", None):
        return code
    for line in console:
        print("guest:", line.decode("utf-8", "replace").rstrip(), file=sys.stderr)
    if code == "late":
        print(f"guest.py: {arguments.command[0]} had not ended after {arguments.seconds:g} s (--seconds); above is the guest's console", file=sys.stderr)
        return TIMED_OUT
    print(f"guest.py: the guest ended without an exit code of {arguments.command[0]}; above is its console", file=sys.stderr)
    return NO_EXIT_CODE


def main():
    parser = argparse.ArgumentParser(description="Runs a command in a guest with RDMA, and exits as it does.")
    parser.add_argument("--memory", type=int, default=1024, metavar="MB", help="memory of the guest, in MB (1024)")
    parser.add_argument("--cpus", type=int, default=1, metavar="N", help="processors of the guest (1)")
    parser.add_argument("--seconds", type=float, default=300, metavar="N", help="the guest is ended after this time (300)")
    parser.add_argument("--write", action="append", default=[], type=os.path.abspath, metavar="DIR", help="what is written below DIR stays")
    parser.add_argument("--verbose", action="store_true", help="the guest's console goes to standard error")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ARGUMENT...")
    arguments = parser.parse_args()
    if arguments.command[:1] == ["--"]:
        del arguments.command[0]
    if not arguments.command:
        parser.error("no command")
    if not (KERNEL / "vmlinux").exists():
        print(f"guest.py: there is no kernel in {KERNEL.parent}; scripts/fetch_guest_kernel.sh {KERNEL.parent} gets it", file=sys.stderr)
        return NO_EXIT_CODE
    if not shutil.which(QEMU):
        print(f"guest.py: {QEMU} is missing: apt-get install --no-install-recommends qemu-system-x86", file=sys.stderr)
        return NO_EXIT_CODE
    # An end by a signal is one that cleans up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
