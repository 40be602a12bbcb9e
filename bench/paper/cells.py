"""The cells of the paper's figures, as arguments of paper_bench: {figure: {key: arguments}}."""

READS = [95, 50, 0]
RIVALS = {
    "SELCC": "protocol=selcc",
    "SEL": "protocol=sel",
    "directory, 1 core": "protocol=directory",
    "GAM (SEQ)": "protocol=gam",
    "GAM (TSO)": "protocol=gam-tso",
}
REMOTE = {"directory": "directory", "gam": "GAM (SEQ)", "gam-tso": "GAM (TSO)"}
RUN = "warm_up=400 measured=200"
LOCAL = "repeat=50"
SKEWED = "theta=0.99"
# What is wanted again and again is told from what is wanted once only after some time.
STEADY = "warm_up=4000 measured=1000"
# A Zipf distribution's hot pages have their good and bad days: means of so many seeds.
SEEDS = range(1, 17)
STEPS = {
    "SEL": "protocol=sel",
    "SELCC, the paper's": "protocol=selcc off=-claim,-hints,-join,-early-answers",
    "and early answers": "protocol=selcc off=-claim,-hints,-join",
    "and claims": "protocol=selcc off=-hints,-join",
    "and hints": "protocol=selcc off=-join",
    "and joins": "protocol=selcc",
}
# What is varied by 30 % each, and what other hardware would be.
CONSTANTS = ["round_trip_ns", "atomic_ns", "bytes_per_us", "issue_ns", "message_ns", "local_access_ns"]
OTHER = {"round trip 5 us": "cost.round_trip_ns=5000", "message 1.3 us": "cost.message_ns=1300"}


# Of the paper, for a writer among readers; and what makes them idle.
MECHANISMS = {"neither": "-claim,-join,-stand-back,-matching", "spin-waiting": "-claim,-join,-matching", "both": "-claim,-join",
              "claim": "all"}


def cells():
    figures = {name: {} for name in ["12", "13", "13sizes", "14", "14steps", "15a", "15b", "16", "18", "many", "many_skewed", "constants"]}
    for reads in READS:
        for sharing in [0, 30, 60, 100]:
            for nodes in [1, 2, 4, 8, 16]:
                figures["12"][reads, sharing, nodes] = f"protocol=selcc nodes={nodes} sharing={sharing} reads={reads}"
        for nodes in [32, 58]:
            figures["many"][reads, nodes] = f"protocol=selcc nodes={nodes} pages=2400 frames=400 reads={reads}"
        for name, protocol in STEPS.items():
            for seed in SEEDS:
                figures["14steps"][reads, name, seed] = f"{protocol} {SKEWED} {STEADY} reads={reads} seed={seed}"
        for nodes in [8, 12, 16, 32, 58]:
            for rival in ["SELCC", "SEL"]:
                figures["many_skewed"][reads, rival, nodes] = f"{RIVALS[rival]} {SKEWED} nodes={nodes} threads=4 reads={reads}"
        for rival, protocol in RIVALS.items():
            for threads in [1, 2, 4, 8]:
                figures["13"][reads, rival, threads] = f"{protocol} {LOCAL} threads={threads} reads={reads}"
                figures["14"][reads, rival, threads] = f"{protocol} {SKEWED} {STEADY} threads={threads} reads={reads}"
        figures["16"][reads, "SELCC"] = f"protocol=selcc {LOCAL} reads={reads}"
        for name, cores in {"none": "stranded=1", "1 core": "remote_cores=1", "8 cores": "remote_cores=8"}.items():
            for rival, called in REMOTE.items():
                figures["16"][reads, f"{called}, {name}"] = f"protocol={rival} {cores} {LOCAL} reads={reads}"
        for rival in ["SELCC", "SEL", "directory, 1 core"]:
            for name, change in variations():
                figures["constants"][name, reads, rival] = f"{RIVALS[rival]} {LOCAL} {change} reads={reads}"
    for gcl in [512, 1024, 2048, 4096, 8192]:
        figures["13sizes"][gcl,] = f"protocol=selcc gcl={gcl} {LOCAL} reads=0"
    for name, gamma in {"0": 0, "256": 256, "inf": -1}.items():
        figures["15a"][name,] = f"protocol=selcc gamma={gamma} theta=10 reads=0 pages=1000 warm_up=1000 measured=10000"
    for name, off in MECHANISMS.items():
        figures["15b"][name,] = f"protocol=selcc off={off} theta=10 single_writer=1 pages=1000 warm_up=500 measured=20000 timeline_ns=200000"
    for name, change in {"claim, gamma 16": "gamma=16", "claim, gamma 16, one thread a node": "gamma=16 threads=1"}.items():
        figures["15b"][name,] = f"protocol=selcc {change} theta=10 single_writer=1 pages=1000 warm_up=500 measured=20000"
    for reads in [100] + READS:
        steps = {
            "none": "off=-forwarding batched_eviction=0 dirty_ranges=0",
            "forwarding": "batched_eviction=0 dirty_ranges=0",
            "batched eviction": "dirty_ranges=0",
            "dirty ranges": "",
        }
        for step, change in steps.items():
            figures["18"][reads, step] = f"protocol=selcc {change} reads={reads}"
    return figures


def variations():
    yield "as it is", ""
    for constant in CONSTANTS:
        yield f"{constant} -30 %", f"cost.{constant}=*0.7"
        yield f"{constant} +30 %", f"cost.{constant}=*1.3"
    yield from OTHER.items()


def arguments(cell):
    """Later ones win."""
    return RUN.split() + cell.split()
