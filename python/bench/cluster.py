"""Measures a Ray cluster in comparison with the command line: `python cluster.py CONSISTORY [HISTORIES] [KILLS]`.

CONSISTORY is the path of the release binary, and the package should be a release wheel (``dev/wheel``).
Three node processes with a core each run on this machine; KILLS of them (2) are killed with SIGKILL, raylet
and workers, while histories are judged, and replaced. Every verdict is compared with the command line's,
which uses all cores of the machine.

Two overheads are printed: of processor time, user and system, of all processes of the cluster, which does
not depend on other load on the machine; and of the time from the start of the first node to the summary,
which is meaningful only on an idle machine. The time is then divided by phase.
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
    """Adds up the processor time of all marked processes, including those that died."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.names, self.strangers = {}, {}, set()
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.1):
            self.look()

    def look(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                # A new process has the environment of its parent until it runs its own program.
                is_new = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / TICKS < 1
                if pid in self.strangers and not is_new:
                    continue
                if pid not in self.seen:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        if MARK.encode() not in file.read():
                            self.strangers.add(pid)
                            continue
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
    program = line.split(" ", 1)[0].rsplit("/", 1)[-1]
    if program in ("raylet", "gcs_server"):
        return program
    for word in ("default_worker.py", "log_monitor", "agent", "dashboard"):
        if word in line:
            return "workers without work" if word == "default_worker.py" else word
    return "driver" if "bench/cluster.py" in line else "others"


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command_line(binary, path, verdicts):
    """Runs the command line, and returns its processor time and its time."""
    before, started = children_time(), time.perf_counter()
    with open(verdicts, "wb") as out:
        subprocess.run([binary, "check", path, "--model", "sc", "--format", "json"], stdout=out)
    return children_time() - before, time.perf_counter() - started


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
        used, took = command_line(binary, path, verdicts)
        print(f"{'consistory check --format json':<44} {used:8.1f} s of processor time, {took:.1f} s", flush=True)
        run_cluster(folder, path, verdicts, kills, used, took)


def run_cluster(folder, path, verdicts, kills, bare, bare_took):
    name, value = MARK.split("=")
    os.environ[name] = value
    # The environment of this process cannot change, so it starts another process with the mark.
    command = [sys.executable, __file__, "--inside", folder, path, str(kills)]
    meter = Meter()
    meter.start()
    inside = subprocess.Popen(command)
    code = inside.wait()
    used = meter.total()
    if code != 0:
        sys.exit(code)
    with open(os.path.join(folder, "times.json"), encoding="utf-8") as file:
        times = json.load(file)
    took = sum(times.values())
    print(f"{'the cluster, all processes':<44} {used:8.1f} s of processor time, {took:.1f} s")
    print("  processor time:")
    for kind_of, seconds in meter.by_kind().most_common():
        print(f"    {kind_of:<40} {seconds:8.1f} s")
    print("  time:")
    for phase, seconds in times.items():
        print(f"    {phase:<40} {seconds:8.1f} s")
    print(f"overhead in processor time: {100 * (used / bare - 1):+.0f} %, in time: {100 * (took / bare_took - 1):+.0f} %", flush=True)
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


def inside(folder, path, kills):
    """Runs the cluster, and records the time of each phase."""
    import ray
    from ray.cluster_utils import Cluster

    from consistory import ray as cluster

    marks = [("", time.perf_counter())]

    def mark(phase):
        marks.append((phase, time.perf_counter()))

    # By default Ray considers a machine dead after 15 seconds without an answer, and asks a dead machine
    # for a copy of an object for 10 seconds before it asks another one. Both delay work. docs/cluster.md
    # recommends these settings for machines that come and go.
    noticing = {
        "object_manager_pull_timeout_ms": 1000,
        "health_check_initial_delay_ms": 1000,
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 2000,
        "health_check_failure_threshold": 4,
    }
    head = {
        "num_cpus": 1,
        "include_dashboard": False,
        "object_store_memory": 10**8,
        "_system_config": noticing,
    }
    nodes = Cluster(initialize_head=True, head_node_args=head)
    others = [nodes.add_node(num_cpus=1, object_store_memory=10**8) for _ in range(2)]
    mark("three nodes start")
    killed, pieces = [], []

    def progress(done, total):
        if done == 0:
            mark("the driver cuts the input")
            return
        if not pieces:
            mark("the first piece is done")
        pieces.append(time.perf_counter())
        if len(killed) < kills and done >= (len(killed) + 1) * total / (kills + 1):
            kill(others[len(killed)])
            killed.append(done)
            print(f"killed a node after {done} of {total} pieces", flush=True)
            others.append(nodes.add_node(num_cpus=1, object_store_memory=10**8))
        if done == total:
            mark("the other pieces are done")

    results = cluster.check(
        path, "sc", out=os.path.join(folder, "out"), address=nodes.address, progress=progress
    )
    mark("the sums")
    print(results.summary, flush=True)
    assert len(killed) == kills
    ray.shutdown()
    nodes.shutdown()
    gaps = sorted(((b - a, number) for number, (a, b) in enumerate(zip(pieces, pieces[1:]), 1)), reverse=True)
    print("longest times without a finished piece:", *(f"{gap:.1f} s after {number};" for gap, number in gaps[:3]))
    times = {phase: end - start for (_, start), (phase, end) in zip(marks, marks[1:])}
    with open(os.path.join(folder, "times.json"), "w", encoding="utf-8") as file:
        json.dump(times, file)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
