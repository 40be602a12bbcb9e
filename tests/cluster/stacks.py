"""Where the processes of a cluster stand, for a test that finds that they do not go on."""
import os
import subprocess


def of(cluster):
    """The stacks of its servers' and memory nodes' processes, as gdb tells them; only their titles where there is none."""
    text = ""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                title = file.read().replace("\0", " ").strip()
            inside = os.readlink(f"/proc/{pid}/cwd").startswith(cluster.dir) or cluster.dir in title
        except OSError:
            continue  # it ended, or is not ours
        if inside and title.split()[0].rpartition("/")[2] not in ("psql", "gclctl", "python3"):
            text += f"\n--- {pid} {title}\n{_stack(pid)}"
    return text


def _stack(pid):
    try:
        told = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 25"], text=True, errors="replace",
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60).stdout
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        return f"{error}\n"
    return "".join(line + "\n" for line in told.splitlines() if line.startswith(("#", "Thread ")))
