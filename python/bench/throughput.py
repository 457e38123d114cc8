"""Measures the package in comparison with the command line: `python throughput.py CONSISTORY [HISTORIES] [OPERATIONS]`.

CONSISTORY is the path of the release binary. Processor time is compared, user and system, because it does
not depend on other load on the machine.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time


def spent(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measured(name, work, who=resource.RUSAGE_SELF):
    before, wall = spent(who), time.perf_counter()
    result = work()
    used, wall = spent(who) - before, time.perf_counter() - wall
    print(f"{name:<44} {used:8.2f} s of processor time, {wall:7.2f} s")
    return used, result


def main():
    binary = sys.argv[1]
    histories = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    operations = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.jsonl")
        subprocess.run(
            [binary, "generate", "--memory", "tso", "--count", str(histories), "-n", "10", "-s", "3",
             "-v", "3", "--to", "jsonl", "-o", small],
            check=True,
        )
        large = os.path.join(folder, "large.jsonl")
        subprocess.run(
            [binary, "generate", "--memory", "sc", "-n", str(operations), "-s", "50", "-v", "1000",
             "--to", "jsonl", "-o", large],
            check=True,
        )
        print(f"{histories} histories of 10 operations, model sc")
        verdicts = os.path.join(folder, "verdicts.jsonl")

        def command():
            with open(verdicts, "wb") as out:
                subprocess.run([binary, "check", small, "--model", "sc", "--format", "json"], stdout=out)

        cli, _ = measured("consistory check --format json", command, resource.RUSAGE_CHILDREN)

        import consistory

        def streamed():
            return sum(report[0].is_violation for report in consistory.check_many(small, "sc"))

        package, violations = measured("check_many", streamed)
        print(f"check_many has {100 * cli / package:.0f} % of the throughput; {violations} violations")
        print(f"a history of {operations} operations")
        lines, history = measured("read from JSON lines", lambda: consistory.read(large)[0])
        import pyarrow

        names = ["session", "op", "key", "value"]
        rows = history.operations
        table = pyarrow.table({name: [row[name] for row in rows] for name in names})
        del rows
        arrow, again = measured("built from an Arrow table", lambda: consistory.History.from_arrow(table))
        assert again == history
        print(f"Arrow takes {100 * arrow / lines:.0f} % of the time of JSON lines")


if __name__ == "__main__":
    main()
