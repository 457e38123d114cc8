"""Measures a Ray cluster beside the command line: `python cluster.py CONSISTORY [HISTORIES] [KILLS]`.

CONSISTORY is the path of the release binary. Three node processes with a core each run on this machine;
KILLS of them (2) are killed with SIGKILL, raylet and workers, while histories are judged, and replaced.
Every verdict is compared with the command line's. Processor time is compared, user and system, of all
processes of the cluster, because it does not depend on what else the machine does.
"""

import collections
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

MARK = f"CONSISTORY_BENCH={uuid.uuid4().hex}"
TICKS = os.sysconf("SC_CLK_TCK")


class Meter(threading.Thread):
    """Adds up the processor time of all processes that carry the mark, also of those that died."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.names, self.strangers = {}, {}, set()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.25):
            self.look()

    def look(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if pid in self.strangers:
                continue
            try:
                if pid not in self.seen:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        if MARK.encode() not in file.read():
                            self.strangers.add(pid)
                            continue
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{pid}/cmdline") as file:
                    line = file.read().replace("\0", " ")
            except OSError:
                continue
            self.seen[pid] = (int(fields[11]) + int(fields[12])) / TICKS
            self.names.setdefault(pid, set()).add(kind(line))

    def total(self):
        self.look()
        return sum(self.seen.values())

    def by_kind(self):
        sums = collections.Counter()
        for pid, used in self.seen.items():
            names = self.names[pid]
            sums["workers" if "workers" in names else min(names)] += used
        return sums


def kind(line):
    if line.startswith("ray::"):
        return "workers"
    for word in ("default_worker.py", "raylet", "gcs_server", "log_monitor", "agent", "dashboard"):
        if word in line:
            return "other workers" if word == "default_worker.py" else word
    return "driver" if "bench/cluster.py" in line else "others"


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command_line(binary, path, verdicts):
    """Runs the command line, and returns its processor time."""
    before = children_time()
    with open(verdicts, "wb") as out:
        subprocess.run([binary, "check", path, "--model", "sc", "--format", "json"], stdout=out)
    return children_time() - before


def kill(node):
    """Kills a node's raylet and its workers."""
    for info in node.all_processes.get("raylet", []):
        pid = info.process.pid
        found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True)
        for each in [str(pid), *found.stdout.split()]:
            try:
                os.kill(int(each), signal.SIGKILL)
            except ProcessLookupError:
                pass


def main():
    binary = os.path.abspath(sys.argv[1])
    histories = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    with tempfile.TemporaryDirectory() as folder:
        path, verdicts = os.path.join(folder, "all.jsonl"), os.path.join(folder, "verdicts.jsonl")
        subprocess.run(
            [binary, "generate", "--memory", "tso", "--count", str(histories), "-n", "10", "-s", "3",
             "-v", "3", "--to", "jsonl", "-o", path],
            check=True,
        )
        print(f"{histories} histories of 10 operations, {os.path.getsize(path) >> 20} MiB, model sc")
        bare = command_line(binary, path, verdicts)
        print(f"{'consistory check --format json':<44} {bare:8.1f} s of processor time", flush=True)
        run_cluster(folder, path, verdicts, kills, bare)


def run_cluster(folder, path, verdicts, kills, bare):
    name, value = MARK.split("=")
    os.environ[name] = value
    # The environment of this very process is fixed, so it starts another one that carries the mark.
    command = [sys.executable, __file__, "--inside", folder, path, verdicts, str(kills)]
    meter = Meter()
    meter.start()
    inside = subprocess.Popen(command)
    code = inside.wait()
    used = meter.total()
    print(f"{'the cluster, all processes':<44} {used:8.1f} s of processor time")
    for kind_of, seconds in meter.by_kind().most_common():
        print(f"    {kind_of:<40} {seconds:8.1f} s")
    print(f"overhead over the command line: {100 * (used / bare - 1):.0f} %", flush=True)
    if code != 0:
        sys.exit(code)
    compare(os.path.join(folder, "out", "parts"), verdicts)


def compare(parts, verdicts):
    """Checks that every history has exactly one verdict, the command line's."""
    import pyarrow.parquet

    same = 0
    with open(verdicts, encoding="utf-8") as lines:
        for part in sorted(os.listdir(parts)):
            table = pyarrow.parquet.read_table(os.path.join(parts, part))
            rows = zip(*(table.column(name).to_pylist() for name in ("index", "digest", "verdict")))
            for found in rows:
                text = next(lines)
                line = json.loads(text)
                wanted = (line["index"], line["digest"], line["results"][0]["verdict"])
                assert found == wanted, (found, wanted)
                same += 1
        assert next(lines, None) is None, "verdicts are missing"
    print(f"every one of {same} histories has exactly one verdict, the command line's")


def inside(folder, path, verdicts, kills):
    from ray.cluster_utils import Cluster

    from consistory import ray as cluster

    started = time.perf_counter()
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 10**8}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    others = [nodes.add_node(num_cpus=1, object_store_memory=10**8) for _ in range(2)]
    print(f"three nodes started in {time.perf_counter() - started:.0f} s", flush=True)
    killed = []

    def progress(done, total):
        if len(killed) < kills and done >= (len(killed) + 1) * total / (kills + 1):
            kill(others[len(killed) % 2])
            killed.append(done)
            others[(len(killed) - 1) % 2] = nodes.add_node(num_cpus=1, object_store_memory=10**8)
            print(f"killed a node after {done} of {total} pieces", flush=True)

    results = cluster.check(
        path, "sc", out=os.path.join(folder, "out"), address=nodes.address, progress=progress
    )
    print(f"judged in {time.perf_counter() - started:.0f} s: {results.summary}", flush=True)
    assert len(killed) == kills
    import ray

    ray.shutdown()
    nodes.shutdown()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
