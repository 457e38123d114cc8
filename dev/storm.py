#!/usr/bin/env python3
"""Tests the `consistory` binary with damaged inputs, forged verdicts and signals, and counts failures.

    cargo build --release && dev/storm.py target/release/consistory
    dev/storm.py BINARY --inputs 100000 --forgeries 10000 --kills 1000 --seed 7

Inputs: files of every kind (histories in all formats, litmus tests of our own language and of instruction
sets, protocols, definitions of models, objects, descriptors, verdicts) are damaged (bytes, lines, pieces of
other files) and given to every command that reads such files. No run may panic, hang, take more than a
fifth more than its memory limit, end with an undocumented exit code, or print an incomplete line.

Forgeries: lines of `check --format json` about registers, transactions, objects and definitions in files are
changed so that they claim something else: another verdict, another history, other counts, another strongest
model, a certificate with another operation. `certify` must accept none whose claim is false; where a change
may leave a proof valid, `recheck.py` decides, or the verdict that the deciders give to the same question.

Kills: commands that write many lines are interrupted or killed at a random moment. Every line that they
wrote must be whole, a file named by `--output` must be complete or absent, and `check --resume` must
complete an interrupted file to the full output. A line at the end of standard output that SIGKILL cut
is counted separately: the kernel can stop a write between two pages, and `check --resume` removes the line.

Prints the counts, and exits with 1 if anything was found.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import recheck  # noqa: E402

CODES = {0, 1, 2, 3, 4, 141}
MEMORY = 64 << 20
# Memory that the program uses without input.
IDLE = 20 << 20
HANG = 120
FORMATS = ["hist", "jsonl", "axe", "dbcop", "dbcop-json", "plume", "awdit", "edn", "jepsen-json",
           "limo", "fastlin", "fptlin", "dbcop-binary"]


class Storm:
    def __init__(self, binary, seed):
        self.binary, self.random = os.path.abspath(binary), random.Random(seed)
        self.found, self.counts = [], {}
        self.folder = tempfile.mkdtemp(prefix="consistory-storm-")

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def report(self, what, detail, keep=()):
        self.found.append(what)
        kept = os.path.join(self.folder, f"found-{len(self.found)}")
        os.makedirs(kept, exist_ok=True)
        for path in keep:
            (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(kept, os.path.basename(path)))
        print(f"FOUND: {what}: {detail} (kept in {kept})", flush=True)

    def run(self, args, keep=(), limit=None, stdin=b""):
        """Runs a command; reports a panic, a hang, an undocumented exit code and too much memory."""
        errors = tempfile.TemporaryFile()
        output = tempfile.TemporaryFile()
        given = tempfile.TemporaryFile()
        given.write(stdin)
        given.seek(0)
        child = subprocess.Popen([self.binary, *args], stdin=given, stdout=output, stderr=errors)
        deadline = time.monotonic() + HANG
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                self.report("hang", " ".join(args), keep)
                return None, b"", b""
            time.sleep(0.005)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        out, err = output.read(), errors.read()
        if code not in CODES or b"panicked" in err or b"RUST_BACKTRACE" in err:
            self.report("crash", f"exit {code}: {' '.join(args)}: {err[-300:]!r}", keep)
        if limit and usage.ru_maxrss * 1024 > 1.2 * limit + IDLE:
            self.report("memory", f"{usage.ru_maxrss >> 10} MiB: {' '.join(args)}", keep)
        return code, out, err

    # Damaged inputs -------------------------------------------------------------------------------

    def damage(self, data, others):
        data = bytearray(data)
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            kind = self.random.randrange(8)
            at = self.random.randrange(len(data) + 1)
            if kind == 0 and data:
                data[at % len(data)] = self.random.choice(b'"[](){},:=@?!#\n 09-x\\\xff\x00;')
            elif kind == 1:
                data[at:at] = bytes(self.random.choice(b'"[](){},:=@?!#\n 09-x\\')
                                    for _ in range(self.random.choice([1, 2, 40])))
            elif kind == 2:
                del data[at:at + self.random.choice([1, 3, 20, 200])]
            elif kind == 3:
                del data[at:]
            elif kind == 4:
                lines = data.split(b"\n")
                i, j = self.random.randrange(len(lines)), self.random.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
                data = bytearray(b"\n".join(lines))
            elif kind == 5:
                lines = data.split(b"\n")
                i = self.random.randrange(len(lines))
                lines[i:i] = [lines[i]] * self.random.choice([1, 2, 30])
                data = bytearray(b"\n".join(lines))
            elif kind == 6:
                other = self.random.choice(others)
                start = self.random.randrange(len(other) + 1)
                data[at:at] = other[start:start + 60]
            else:
                digits = [i for i, b in enumerate(data) if 48 <= b <= 57]
                if digits:
                    i = self.random.choice(digits)
                    data[i:i + 1] = self.random.choice(
                        [b"0", b"-1", b"99999999999999999999", b"9223372036854775807", b"1e9", b"null"])
        return bytes(data)

    def files(self):
        """Reads the files to damage, by kind."""
        groups = {}
        for folder, group in (("corpus/formats/valid", "histories"), ("corpus/histories", "histories"),
                              ("corpus/doors", "histories"), ("corpus/objects", "histories"),
                              ("corpus/transactions", "histories"), ("corpus/litmus", "litmus"),
                              ("corpus/executions", "executions"), ("corpus/protocols", "protocols"),
                              ("crates/protocol/tests", "protocols"), ("models", "definitions")):
            for base, _, names in os.walk(os.path.join(ROOT, folder)):
                for name in sorted(names):
                    path = os.path.join(base, name)
                    kind = {".cat": "memory-models" if "litmus" in base else "definitions",
                            ".object": "objects"}.get(os.path.splitext(name)[1], group)
                    is_other = name.endswith((".expected", ".md", ".patch", ".rs"))
                    if not is_other and os.path.getsize(path) < 20_000:
                        with open(path, "rb") as file:
                            groups.setdefault(kind, []).append((name, file.read()))
        for seed in range(8):
            for name in ("lazy-caching", "msi", "serial-prefetch"):
                protocol = os.path.join(ROOT, "corpus/protocols", name + ".m")
                _, out, _ = self.run(["simulate", protocol, "--descriptor", "-n", "12", "--seed", str(seed)])
                groups.setdefault("descriptors", []).append((f"{name}-{seed}.txt", out))
        return groups

    SIZES = {"histories": 250, "litmus": 60, "executions": 40, "protocols": 10, "definitions": 12,
             "memory-models": 6, "objects": 12, "descriptors": 60}

    def inputs(self, number):
        groups = self.files()
        histories = [data for _, data in groups["histories"]]
        one = os.path.join(self.folder, "one.hist")
        with open(one, "w", encoding="utf-8") as file:
            file.write("a: w(x,1) w(y,1)\nb: r(y,1) r(x,0)\n")
        calls = os.path.join(ROOT, "corpus/objects/buffer-too-full.hist")
        test = os.path.join(ROOT, "corpus/executions/x86_64")
        tests = [os.path.join(base, name) for base, _, names in os.walk(test) for name in names
                 if name.endswith(".litmus")]
        kinds = ["histories"] * 14 + [kind for kind in self.SIZES if kind != "histories"]
        done = 0
        while done < number:
            batch = os.path.join(self.folder, "batch")
            shutil.rmtree(batch, ignore_errors=True)
            os.makedirs(batch)
            group = self.random.choice(kinds)
            size = self.SIZES[group]
            others = [data for _, data in groups[group]] + histories
            for i in range(size):
                name, data = self.random.choice(groups[group])
                with open(os.path.join(batch, f"{i:03}-{name}"), "wb") as file:
                    file.write(self.damage(data, others))
            files = [os.path.join(batch, name) for name in sorted(os.listdir(batch))]
            limits = ["--budget", "100ms", "--memory", "64MiB"]
            if group == "litmus":
                self.run(["litmus", "outcomes", *files, "--model", "sc,tso", "--budget", "200ms"], [batch])
                self.run(["litmus", "run", *files[:3], "--runs", "20"], [batch])
            elif group == "executions":
                _, out, _ = self.run(["litmus", "outcomes", *files, "--model", "x86tso,aarch64", "--budget",
                                      "100ms", "--format", "json"], [batch])
                self.lines_are_whole(out, [batch])
            elif group == "protocols":
                plain = self.random.choice([[], ["--plain"], ["--no-symmetry"]])
                _, out, _ = self.run(["verify", *files, *plain, "--budget", "200ms", "--memory", "64MiB",
                                      "--format", "json"], [batch], 64 << 20)
                self.lines_are_whole(out, [batch])
                self.run(["simulate", files[0], "-n", "20"], [batch])
            elif group == "definitions":
                for path in files:
                    what = self.random.choice(["check", "contrast", "show"])
                    if what == "check":
                        self.run(["check", one, "--model", path, *limits], [path], MEMORY)
                    elif what == "contrast":
                        self.run(["contrast", path, "sc", "--bound", "3", "--budget", "100ms"], [path])
                    else:
                        self.run(["models", "show", path], [path])
            elif group == "memory-models":
                for path in files:
                    self.run(["litmus", "outcomes", self.random.choice(tests), "--model", path, "--budget",
                              "200ms"], [path])
            elif group == "objects":
                for path in files:
                    self.run(["check", calls, "--object", path, *limits], [path], MEMORY)
            elif group == "descriptors":
                self.run(["verify", "--descriptor", *files], [batch], MEMORY)
            else:
                size = self.batch_of_histories(batch, files)
            done += size
            self.count(f"damaged {group}", size)

    def batch_of_histories(self, batch, files):
        """Runs a command on damaged files, all at once; returns their number."""
        kind = self.random.choice(["check", "check", "certify", "text", "convert", "convert", "kernel", "watch", "report", "resume"])
        self.count(f"runs of {kind}")
        limits = ["--budget", "100ms", "--memory", "64MiB", "--jobs", "1"]
        if kind in ("check", "certify"):
            model = self.random.choice(["strongest", "cc,ccv,cm,sc,tso", "linearizability", "rc,tcc,si,ser"])
            code, out, _ = self.run(["check", *files, "--model", model, "--format", "json", *limits],
                                    [batch], MEMORY)
            self.lines_are_whole(out, [batch])
            if kind == "certify" and out:
                verdicts = os.path.join(self.folder, "verdicts.jsonl")
                with open(verdicts, "wb") as file:
                    file.write(out)
                _, _, err = self.run(["certify", verdicts], [batch, verdicts])
                with open(verdicts, "wb") as file:
                    file.write(self.damage(out, [out]))
                self.run(["certify", verdicts], [batch, verdicts])
        elif kind == "text":
            self.run(["check", *files, *limits], [batch], MEMORY)
        elif kind == "kernel":
            self.run(["kernel", *files, *limits[:4]], [batch], MEMORY)
        elif kind == "report":
            page = os.path.join(self.folder, "report.html")
            self.run(["check", *files, *limits, "--report", page], [batch])
        elif kind == "resume":
            # A damaged file of verdicts is completed or rejected.
            verdicts = os.path.join(self.folder, "resumed.jsonl")
            args = ["check", *files, "--model", "cc,sc", "--format", "json", *limits]
            _, out, _ = self.run(args, [batch], MEMORY)
            with open(verdicts, "wb") as file:
                file.write(self.damage(out, [out]))
            self.run([*args, "--resume", verdicts], [batch, verdicts])
        elif kind == "watch":
            files = self.random.sample(files, 5)
            for path in files:
                self.run(["watch", path, "--object", self.random.choice(["queue", "register", "kv"])], [path])
        else:
            # The output can be read again.
            target = self.random.choice(["hist", "jsonl"])
            _, out, _ = self.run(["convert", *files, "--to", target], [batch], MEMORY)
            if out:
                again = os.path.join(self.folder, "again")
                with open(again, "wb") as file:
                    file.write(out)
                code, _, err = self.run(["convert", again, "--from", target, "--to", "hist"], [again], MEMORY)
                if code != 0:
                    self.report("unreadable", f"what was written as {target} is not read: {err[-200:]!r}", [batch, again])
            one, target = self.random.choice(files), self.random.choice(FORMATS)
            code, out, _ = self.run(["convert", one, "--to", target], [one], MEMORY)
            if code == 0 and out:
                again = os.path.join(self.folder, "again")
                with open(again, "wb") as file:
                    file.write(out)
                code, _, err = self.run(["convert", again, "--from", target, "--to", "hist"], [one, again], MEMORY)
                if code != 0:
                    self.report("unreadable", f"what was written as {target} is not read: {err[-200:]!r}", [one, again])
        return len(files)

    def lines_are_whole(self, out, keep):
        for line in out.split(b"\n")[:-1] + ([out.split(b"\n")[-1]] if not out.endswith(b"\n") else []):
            try:
                json.loads(line) if line else None
            except ValueError:
                self.report("torn line", repr(line[-80:]), keep)

    # Forged verdicts -------------------------------------------------------------------------------

    def verdicts(self):
        """Judges small random histories of several memories and stores."""
        folder = os.path.join(self.folder, "judged")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        seed = lambda: str(self.random.randrange(1 << 30))
        for memory in ("sc", "tso", "ccv", "cm"):
            for plant in (0, 1):
                self.run(["generate", "--memory", memory, "--sessions", "3", "--operations", "12", "--variables",
                          "2", "--count", "40", "--plant", str(plant), "--seed", seed(),
                          "-o", os.path.join(folder, f"{memory}-{plant}.hist")])
        for level in ("rc", "psi", "si", "ser"):
            for extra in ([], ["--lists"]):
                self.run(["generate", "--transactions", "--level", level, "--sessions", "3", "--operations", "12",
                          "--variables", "2", "--size", "1..3", "--count", "20", "--seed", seed(), *extra,
                          "-o", os.path.join(folder, f"{level}-{len(extra)}.hist")])
        for kind in ("queue", "register", "set", "stack", "counter", "kv"):
            for plant in (0, 1):
                self.run(["generate", "--object", kind, "--sessions", "3", "--operations", "9", "--count", "8",
                          "--plant", str(plant), "--seed", seed(), "--to", "jsonl",
                          "-o", os.path.join(folder, f"{kind}-{plant}.jsonl")])
        _, out, _ = self.run(["check", folder, "--model", "strongest", "--format", "json"])
        lines = [json.loads(line) for line in out.decode().splitlines()]
        # Definitions in files, whose certificates are checked against the definition.
        for model in ("cc", "ccv", "sc", "tso"):
            definition = os.path.join(folder, f"{model}.cat")
            shutil.copy(os.path.join(ROOT, "models", f"{model}.cat"), definition)
            shutil.copy(os.path.join(ROOT, "models", "relations.cat"), folder)
            _, out, _ = self.run(["check", os.path.join(folder, "sc-1.hist"), os.path.join(folder, "ccv-0.hist"),
                                  "--model", definition, "--format", "json"])
            lines += [json.loads(line) for line in out.decode().splitlines()]
        for line in lines:
            is_definition = line["results"][0]["model"].endswith(".cat")
            other = "objects" if "object" in line else "registers and transactions"
            kind = "definitions" if is_definition else other
            self.count(f"verdicts on {kind} to forge", len(line["results"]))
        return lines

    def forge(self, lines):
        """Returns a changed line, and whether its claim is certainly false."""
        line = json.loads(json.dumps(self.random.choice(lines)))
        result = self.random.choice(line["results"])
        kind = self.random.randrange(7)
        if kind == 0:
            result["verdict"] = {"consistent": "violation", "violation": "consistent"}.get(result["verdict"], "consistent")
            line["results"] = [result]
            line.pop("strongest", None)
        elif kind == 1:
            other = self.random.choice([other for other in lines if other["digest"] != line["digest"]])
            line["source"], line["index"] = other["source"], other["index"]
        elif kind == 2:
            line["operations"] += self.random.choice([-1, 1])
        elif kind == 3:
            line["strongest"] = line.get("strongest", []) + ["sc"] if "sc" not in line.get("strongest", []) else []
        elif kind == 4:
            digest = line["digest"]
            line["digest"] = ("0" if digest[0] != "0" else "1") + digest[1:]
        elif kind == 5:
            other = self.random.choice(self.random.choice(lines)["results"])
            result["model"] = other["model"]
            if any(r is not result and r["model"] == result["model"] for r in line["results"]):
                line["results"] = [result]
                line.pop("strongest", None)
            return line, False
        else:
            texts = []
            def walk(value, put):
                if isinstance(value, dict):
                    for key, inner in value.items():
                        walk(inner, lambda new, key=key, value=value: value.__setitem__(key, new))
                elif isinstance(value, list):
                    for i, inner in enumerate(value):
                        walk(inner, lambda new, i=i, value=value: value.__setitem__(i, new))
                elif isinstance(value, str) and ":" in value:
                    texts.append((value, put))
            walk(result.get("certificate", {}), None)
            if texts:
                names = sorted({text for text, _ in texts})
                _, put = self.random.choice(texts)
                put(self.random.choice(names))
            line.pop("strongest", None)
            line["results"] = [result]
            return line, False
        return line, True

    def forgeries(self, number):
        done = 0
        while done < number:
            lines, known, false = self.verdicts(), {}, []
            truth = {(line["digest"], line.get("object"), result["model"]): result["verdict"]
                     for line in lines for result in line["results"]}
            for _ in range(min(2000, number - done)):
                line, is_false = self.forge(lines)
                done += 1
                self.count("forged lines")
                if is_false:
                    false.append(line)
                    continue
                # The changed certificate may still be a proof; the second checker decides.
                for result in line["results"]:
                    one = {**line, "results": [result]}
                    one.pop("strongest", None)
                    # A definition in a file is that of the model of the same name.
                    model = os.path.basename(result["model"]).removesuffix(".cat")
                    true = truth.get((line["digest"], line.get("object"), model), result["verdict"])
                    if true != result["verdict"]:
                        # No proof of the claim can be correct.
                        false.append(one)
                        continue
                    if "object" in line or result["model"].endswith(".cat"):
                        self.count("changes of objects and definitions whose claim stays true")
                        continue
                    if line["source"] not in known:
                        known[line["source"]] = recheck.read_histories(line["source"])
                    history = known[line["source"]][line["index"]]
                    try:
                        recheck.check_result(history, result)
                        self.count("changes that left a proof")
                    except recheck.Skip:
                        self.count("changes that only certify can check")
                    except (recheck.Wrong, KeyError, IndexError, TypeError, ValueError):
                        false.append(one)
            self.all_are_rejected(false)

    def all_are_rejected(self, lines):
        path = os.path.join(self.folder, "forged.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        code, out, _ = self.run(["certify", path], [path])
        accepted = int(out.split(b"\n")[-2].split()[0]) if out else 0
        # A true proof next to a false claim is accepted, and the line is rejected.
        if accepted == 0:
            self.count("forgeries rejected", len(lines))
        elif len(lines) > 1:
            self.all_are_rejected(lines[:len(lines) // 2])
            self.all_are_rejected(lines[len(lines) // 2:])
        elif code == 0:
            self.report("accepted forgery", out.decode()[-200:], [path])
        else:
            self.count("forgeries rejected")

    # Kills -----------------------------------------------------------------------------------------

    def kills(self, number):
        folder = os.path.join(self.folder, "many")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "many.hist")
        self.run(["generate", "--memory", "ccv", "--sessions", "4", "--operations", "60", "--variables", "3",
                  "--count", "3000", "--seed", "1", "-o", path])
        check = ["check", path, "--model", "cc,ccv", "--format", "json"]
        litmus = os.path.join(ROOT, "corpus/litmus")
        protocols = os.path.join(ROOT, "corpus/protocols")
        named = os.path.join(self.folder, "named.jsonl")
        convert = ["convert", path, "--to", "jsonl"]
        commands = [check] * 6 + [convert, [*convert, "--output", named],
                                  ["litmus", "outcomes", litmus, "--model", "sc,tso,pso", "--format", "json"],
                                  ["verify", protocols, "--budget", "20ms", "--format", "json"]]
        _, whole, _ = self.run(check)
        _, converted, _ = self.run(convert)
        for turn in range(number):
            out_path = os.path.join(self.folder, "out.jsonl")
            args = self.random.choice(commands)
            with open(out_path, "wb") as out:
                child = subprocess.Popen([self.binary, *args], stdout=out, stderr=subprocess.DEVNULL)
                time.sleep(self.random.random() * 0.25)
                by = self.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
                child.send_signal(by)
                try:
                    child.wait(timeout=HANG)
                except subprocess.TimeoutExpired:
                    child.kill()
                    self.report("hang", "after a signal")
            with open(out_path, "rb") as out:
                text = out.read()
            is_cut = by == signal.SIGKILL and not text.endswith(b"\n") and len(text) % 4096 == 0 and text != b""
            if is_cut:
                self.count("last lines of standard output cut by SIGKILL")
                text = text[:text.rfind(b"\n") + 1]
            self.lines_are_whole(text, [out_path])
            self.count(f"kills of {args[0]}")
            if os.path.exists(named):
                with open(named, "rb") as out:
                    if out.read() != converted:
                        self.report("incomplete file", "named by --output", [named])
                os.remove(named)
                self.count("complete files of killed runs")
            if args is check and (turn % 10 == 0 or is_cut):
                self.run([*check, "--resume", out_path], [out_path])
                with open(out_path, "rb") as out:
                    if self.timeless(out.read()) != self.timeless(whole):
                        self.report("resume", "the resumed file differs", [out_path])
                self.count("interrupted files completed")

    @staticmethod
    def timeless(out):
        """Returns the lines of an output without the times in them."""
        lines = [json.loads(line) for line in out.splitlines()]
        for line in lines:
            for result in line.get("results", []):
                result.pop("millis", None)
            line.pop("millis", None)
        return lines


def main():
    parser = argparse.ArgumentParser(description="Damaged inputs, forged verdicts and signals.")
    parser.add_argument("binary")
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--forgeries", type=int, default=400)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    storm = Storm(args.binary, args.seed)
    try:
        storm.inputs(args.inputs)
        storm.forgeries(args.forgeries)
        storm.kills(args.kills)
    except KeyboardInterrupt:
        print("interrupted; so far:")
    for what in sorted(storm.counts):
        print(f"{storm.counts[what]:8} {what}")
    print(f"{len(storm.found):8} found")
    if not storm.found:
        shutil.rmtree(storm.folder, ignore_errors=True)
    return 1 if storm.found else 0


if __name__ == "__main__":
    sys.exit(main())
