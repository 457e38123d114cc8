#!/usr/bin/env python3
"""Checks every format with independent readers and writers.

    dev/doors.py target/debug/consistory --rounds 40 --seed 1

This program generates random histories: single operations on registers, transactions on registers and lists, and
calls of a stack or a register. It writes each of them in every format that can express it, with its own writers,
and checks three properties:

* `convert` to JSON lines returns the operations that were written;
* the small reader of a format, and `convert` itself, read the output of `convert` in this format
  as the same operations; the small readers of formats that `convert` only reads get the files written here;
* `check` gives the same verdicts in every format.

Sessions, keys and values are numbers, so that no format has to rename them. Then the small readers and
`convert` read the files of `corpus/formats/valid` and every `.hist` file of the corpus, and must agree.
Prints the counts, and exits with 1 if anything differs.
"""

import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter, namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "dev"))
import recheck_reading  # noqa: E402

# kind: r, w, u (read-modify-write), f (fence), a (append), or the name of a method.
Op = namedtuple("Op", "kind key read write time", defaults=[None, None, None, None])
Txn = namedtuple("Txn", "status ops")
INITIAL = 0


# Random histories: a list of sessions, each a list of transactions ------------------------------------

def registers(rng):
    value, sessions, clock = 0, [], 0
    timed = rng.random() < 0.3
    for _ in range(rng.randint(2, 3)):
        session = []
        for _ in range(rng.randint(1, 4)):
            kind, key = rng.choice("rrwwwuf"), str(rng.randrange(2))
            value += 1
            clock += 2
            time = (clock, clock + 1) if timed else None
            if kind == "f":
                session.append(Txn("ok", [Op("f", time=time)]))
                continue
            read = rng.randrange(0, value + 1) if kind in "ru" else None
            session.append(Txn("ok", [Op(kind, key, read, value if kind in "wu" else None, time)]))
        sessions.append(session)
    written = {(op.key, op.write) for s in sessions for t in s for op in t.ops}
    fix = lambda op: op._replace(read=op.read if op.read is None or (op.key, op.read) in written else INITIAL)
    return [[Txn(t.status, [fix(op) for op in t.ops]) for t in s] for s in sessions]


def transactions(rng, statuses, lists=False):
    value, sessions, held = 0, [], {}
    for _ in range(rng.randint(2, 3)):
        session = []
        for _ in range(rng.randint(1, 3)):
            ops = []
            for _ in range(rng.choice([1, 2, 2, 3])):
                key = str(rng.randrange(2))
                if rng.random() < 0.5:
                    value += 1
                    held.setdefault(key, []).append(value)
                    ops.append(Op("a" if lists else "w", key, None, value))
                elif lists:
                    seen = held.get(key, [])
                    ops.append(Op("r", key, tuple(seen[:rng.randint(0, len(seen))])))
                else:
                    ops.append(Op("r", key, rng.choice([INITIAL] + held.get(key, []))))
            session.append(Txn(rng.choice(statuses), ops))
        sessions.append(session)
    keys = {op.key for s in sessions for t in s for op in t.ops if op.kind == "a"}
    if lists and any(op.key not in keys for s in sessions for t in s for op in t.ops):
        return transactions(rng, statuses, lists)
    return sessions


def calls(rng):
    """Returns a history of a stack: two processes whose calls overlap at random."""
    value, sessions, ends = 0, [[], []], [0, 0]
    for _ in range(rng.randint(2, 6)):
        p = rng.randrange(2)
        start = max(ends) // 2 + ends[p] // 2 + rng.randint(1, 9) * 2 + p
        start = max(start, ends[p] + 2 - (ends[p] + p) % 2)
        ends[p] = end = start + 2 * rng.randint(1, 9)
        if rng.random() < 0.6:
            value += 1
            op = Op("push", None, None, value, (start, end))
        else:
            op = Op("pop", None, rng.choice([None] + list(range(1, value + 1))), None, (start, end))
        sessions[p].append(Txn("ok", [op]))
    return [s for s in sessions if s]


# Small writers: a history as a text, bytes, or a folder of files -----------------------------------------

MARK = {"ok": "", "fail": "!", "unknown": "?"}


def each(sessions):
    return ((i, t) for i, session in enumerate(sessions) for t in session)


def to_hist(sessions):
    def text(op):
        time = f"@{op.time[0]}..{op.time[1]}" if op.time else ""
        read = json.dumps(op.read if not isinstance(op.read, tuple) else list(op.read)).replace(" ", "")
        return {"r": f"r({op.key},{read})", "w": f"w({op.key},{op.write})", "a": f"append({op.key},{op.write})",
                "u": f"rmw({op.key},{op.read},{op.write})", "f": "f",
                "push": f"push({op.write})", "pop": f"pop() => {read} "}[op.kind] + time
    lines = []
    for i, session in enumerate(sessions):
        line = f"{i}:"
        for t in session:
            inner = " ".join(text(op) for op in t.ops)
            line += f" [ {inner} ]{MARK[t.status]}" if len(t.ops) > 1 or t.status != "ok" else f" {inner}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def to_jsonl(sessions):
    lines, number = [], 0
    for i, t in each(sessions):
        number += 1
        for op in t.ops:
            names = {"r": "read", "w": "write", "u": "rmw", "f": "fence", "a": "append"}
            fields = {"session": str(i)}
            if op.kind in names:
                fields["op"] = names[op.kind]
                if op.key is not None:
                    fields["key"] = op.key
                if op.kind == "u":
                    fields["read"] = op.read
                if op.kind != "f":
                    fields["value"] = op.write if op.kind in "wua" else op.read
                if len(t.ops) > 1 or t.status != "ok":
                    fields["txn"] = number
            else:
                fields |= {"call": op.kind, "args": [op.write] if op.kind == "push" else []}
                fields["returns"] = None if op.kind == "push" else op.read
            if t.status != "ok":
                fields["status"] = t.status
            if op.time:
                fields |= {"start": op.time[0], "end": op.time[1]}
            lines.append(json.dumps(fields))
    return "\n".join(lines) + "\n"


def to_axe(sessions):
    lines = []
    for i, t in each(sessions):
        op, time = t.ops[0], ""
        if op.time:
            time = f" @ {op.time[0]}:{op.time[1]}"
        load, store = f"M[{op.key}] == {op.read}", f"M[{op.key}] := {op.write}"
        lines.append(f"{i}: " + {"r": load, "w": store, "u": f"{{ {load}; {store} }}", "f": "sync"}[op.kind] + time)
    return "\n".join(lines) + "\n"


def to_dbcop(sessions):
    event = lambda op: f"{op.key}:={op.write}" if op.kind == "w" else f"{op.key}=={op.read or '?'}"
    lines = lambda s: [f"[{' '.join(event(op) for op in t.ops)}]{'!' if t.status == 'fail' else ''}" for t in s]
    return "\n---\n".join("\n".join(lines(s)) for s in sessions) + "\n"


def to_dbcop_json(sessions):
    event = lambda op: {"Write" if op.kind == "w" else "Read": {
        "variable": int(op.key), "version": op.write if op.kind == "w" else op.read or None}}
    return json.dumps([[{"events": [event(op) for op in t.ops], "committed": t.status == "ok"} for t in s]
                       for s in sessions])


def to_plume(sessions):
    lines, number = [], 0
    for i, t in each(sessions):
        lines += [f"{op.kind}({op.key},{op.write if op.kind == 'w' else op.read},{i},"
                  f"{number if t.status == 'ok' else -1})" for op in t.ops]
        number += 1
    return "\n".join(lines) + "\n"


def to_awdit(sessions):
    one = lambda t: "\n".join(f"{op.kind} {op.key} {op.write if op.kind == 'w' else op.read}" for op in t.ops)
    return "\n====\n".join("\n----\n".join(one(t) for t in s) for s in sessions) + "\n"


def steps(t, asked):
    found = []
    for op in t.ops:
        if op.kind in "wa":
            found.append(["append" if op.kind == "a" else "w", int(op.key), op.write])
        else:
            read = list(op.read) if isinstance(op.read, tuple) else op.read or None
            found.append(["r", int(op.key), None if asked else read])
    return found


def events(sessions):
    found = []
    for i, t in each(sessions):
        found.append({"process": i, "type": "invoke", "f": "txn", "value": steps(t, True)})
        kind = {"ok": "ok", "fail": "fail", "unknown": "info"}[t.status]
        found.append({"process": i, "type": kind, "f": "txn", "value": steps(t, t.status != "ok")})
    return found


def edn(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f":{k} " + (f":{v}" if isinstance(v, str) else edn(v)) for k, v in value.items()) + "}"
    if isinstance(value, list):
        inner = [f":{v}" if isinstance(v, str) else edn(v) for v in value]
        return "[" + " ".join(inner) + "]"
    return "nil" if value is None else str(value)


def to_edn(sessions):
    return "\n".join(edn(event) for event in events(sessions)) + "\n"


def to_jepsen_json(sessions):
    return json.dumps(events(sessions))


def to_dbcop_binary(sessions):
    out = struct.pack("<5Q", 0, len(sessions), 2, 3, 3) + struct.pack("<Q", 0) * 3 + struct.pack("<Q", len(sessions))
    for s in sessions:
        out += struct.pack("<Q", len(s))
        for t in s:
            out += struct.pack("<Q", len(t.ops))
            for op in t.ops:
                out += struct.pack("<BQQB", op.kind == "w", int(op.key), op.write if op.kind == "w" else op.read, 1)
            out += struct.pack("<B", t.status == "ok")
    return out


def to_cobra(sessions):
    files, number = {}, 100
    for i, session in enumerate(sessions):
        out = b""
        for t in session:
            number += 1
            out += b"S" + struct.pack(">q", number)
            for op in t.ops:
                if op.kind == "w":
                    out += b"W" + struct.pack(">3q", op.write, int(op.key), 7)
                else:
                    out += b"R" + struct.pack(">4q", 1, op.read or 0xdeadbeef, int(op.key), 7)
            if t.status == "ok":
                out += b"C" + struct.pack(">q", number)
        files[f"T{i}.log"] = out
    return files


def to_viper(sessions):
    line = lambda t: json.dumps({"value": [[op.kind, int(op.key), op.write if op.kind == "w" else op.read or None,
                                            True] for op in t.ops]})
    return {f"J{i}.log": "".join(line(t) + "\n" for t in s).encode() for i, s in enumerate(sessions)}


def to_timekiller(sessions):
    found = []
    for i, t in each(sessions):
        ops = [{"t": op.kind, "k": int(op.key), "v": op.write if op.kind == "w" else op.read or None} for op in t.ops]
        found.append({"tid": len(found), "sid": i, "ops": ops})
    return json.dumps(found)


def to_limo(sessions):
    """Writes calls before returns at the same time, so that operations which touch in time overlap."""
    found = []
    for i, t in each(sessions):
        op = t.ops[0]
        found.append((op.time[0], 0, f"[{i}] call push({op.write})" if op.kind == "push" else f"[{i}] call pop"))
        found.append((op.time[1], 1, f"[{i}] return" + ("" if op.kind == "push" else f" {op.read or 'empty'}")))
    return "# stack\n" + "\n".join(text for _, _, text in sorted(found)) + "\n"


def to_fptlin(sessions):
    line = lambda i, op: f"{i} {op.time[0]} {op.time[1]} " + (
        f"PUSH {op.write}" if op.kind == "push" else f"POP {op.read or -1}")
    return "# stack\n" + "\n".join(line(i, t.ops[0]) for i, t in each(sessions)) + "\n"


def to_fastlin(sessions):
    line = lambda op: (f"push {op.write}" if op.kind == "push" else f"pop {op.read or -1}") + f" {op.time[0]} {op.time[1]}"
    return "# stack\n" + "\n".join(line(t.ops[0]) for _, t in each(sessions)) + "\n"


def to_jepsen_log(sessions):
    """Writes a log of registers: a completed call is two lines."""
    found = []
    for i, t in each(sessions):
        op = t.ops[0]
        name, value = (":write", op.write) if op.kind == "w" else (":read", op.read)
        found.append(f"INFO  jepsen.util - {i}\t:invoke\t{name}\t{value if op.kind == 'w' else 'nil'}")
        found.append(f"INFO  jepsen.util - {i}\t:ok\t{name}\t{value}")
    return "\n".join(found) + "\n"


def to_gem5(sessions):
    """Writes a log in which a request of one byte writes it, and a request of two bytes reads both."""
    lines, clock = [], 0
    for i, t in each(sessions):
        clock += 10
        data = str(t.ops[0].write) if t.ops[0].kind == "w" else " ".join(str(op.read) for op in t.ops)
        lines.append(f"{clock:7}: system.cpu: completed request for proc: {i} addr: {int(t.ops[0].key):#x}, "
                     f"size: {1 if t.ops[0].kind == 'w' else 2}, data: {data}")
    return "\n".join(lines) + "\n"


# Small readers -------------------------------------------------------------------------------------------

def from_hist(text):
    """Reads histories of one file, as written by `convert`: no comments, quotes only around texts."""
    value = lambda v: tuple(json.loads(v)) if v.startswith("[") else json.loads(v)
    op = re.compile(r"(\w+)(?:\(((?:\[[^]]*\]|[^()\[\]])*)\))?( => (\S+))? ?(?:@(\d+)\.\.(\d+))?")
    sessions = {}
    for line in text.splitlines():
        name, rest = re.fullmatch(r"(\d+):(.*)", line).groups()
        session, inside = sessions.setdefault(int(name), []), None
        at = 0
        while rest[at:].strip():
            at += len(rest[at:]) - len(rest[at:].lstrip())
            if rest[at] == "[":
                inside = Txn("ok", [])
                session.append(inside)
                at += 1
                continue
            if rest[at] == "]":
                status = {"!": "fail", "?": "unknown"}.get(rest[at + 1:at + 2])
                session[-1] = inside._replace(status=status or "ok")
                inside, at = None, at + 1 + bool(status)
                continue
            found = op.match(rest, at)
            kind, args, has_result, result, start, end = found.groups()
            args = re.findall(r"\[[^]]*\]|[^,]+", args or "")
            time = (int(start), int(end)) if start else None
            if kind in ("push", "pop"):
                one = Op(kind, None, json.loads(result) if has_result else None, value(args[0]) if args else None, time)
            else:
                kind = {"append": "a", "rmw": "u"}.get(kind, kind)
                one = Op(kind, args[0] if args else None, value(args[1]) if kind in "ru" else None,
                         value(args[-1]) if kind in "wua" else None, time)
            at = found.end()
            if inside:
                inside.ops.append(one)
            else:
                status = {"!": "fail", "?": "unknown"}.get(rest[at:at + 1])
                at += bool(status)
                session.append(Txn(status or "ok", [one]))
    return [sessions[i] for i in sorted(sessions)]


def from_limo(text):
    """Reads calls and returns in order; methods other than those of a stack are calls with texts."""
    sessions, at = {}, 0
    for line in re.sub(r"#.*", "", text).splitlines():
        found = re.fullmatch(r"\[(\d+)\] (call|return)(?: (.*?))?\s*", line)
        if not found:
            continue
        session, what, rest = sessions.setdefault(int(found[1]), []), found[2], found[3]
        if what == "call":
            name, args = re.fullmatch(r"(\w+)\s*\(?(.*?)\)?", rest).groups()
            args = [simple(arg.strip()) for arg in args.split(",")] if args else []
            session.append(Txn("ok", [Op(name, None, None, arguments(args), (at, None))]))
        else:
            op, = session[-1].ops
            session[-1] = Txn("ok", [op._replace(read=simple(rest), time=(op.time[0], at))])
        at += 1
    return [sessions[i] for i in sorted(sessions)]


def arguments(args):
    return args[0] if len(args) == 1 else tuple(args) or None


def simple(text):
    """Returns the value of a word in a log."""
    if text in (None, "empty", "nil", "null"):
        return None
    return {"true": True, "false": False}.get(text, int(text) if re.fullmatch(r"-?\d+", text) else text)


def from_cobra(files):
    sessions = []
    for name in sorted(files, key=lambda name: int(re.search(r"\d+", name).group())):
        data, at, session = files[name], 0, []
        while at < len(data):
            kind, at = chr(data[at]), at + 1
            fields = struct.unpack_from({"S": ">q", "C": ">q", "W": ">3q", "R": ">4q"}[kind], data, at)
            at += 8 * len(fields)
            if kind == "S":
                session.append(Txn("unknown", []))
            elif kind == "C":
                session[-1] = session[-1]._replace(status="ok")
            elif kind == "W":
                session[-1].ops.append(Op("w", str(fields[1]), None, fields[0]))
            else:
                read = INITIAL if fields[1] == 0xdeadbeef else fields[1]
                session[-1].ops.append(Op("r", str(fields[2]), read))
        sessions.append(session)
    return sessions


def from_viper(files):
    """Reads the logs; an operation whose fourth field is false did not happen."""
    one = lambda kind, key, v, *_: Op("w", str(key), None, v) if kind == "w" else Op("r", str(key), v or INITIAL)
    ops = lambda line: [one(*op) for op in json.loads(line)["value"] if op[3:] != [False]]
    return [[Txn("ok", ops(line)) for line in files[name].decode().splitlines()]
            for name in sorted(files, key=lambda name: int(re.search(r"\d+", name).group()))]


def from_timekiller(text):
    sessions = {}
    for t in json.loads(text):
        ops = [Op("w", str(op["k"]), None, op["v"]) if op["t"] == "w" else Op("r", str(op["k"]), op["v"] or INITIAL)
               for op in t["ops"]]
        sessions.setdefault(t["sid"], []).append(Txn("ok", ops))
    return [sessions[i] for i in sorted(sessions)]


def from_jepsen_log(text):
    """Reads invocations and completions of registers; failed reads and pending operations are unknown."""
    sessions, at = {}, 0
    for process, kind, name, v in re.findall(r"jepsen\.util(?: -|:) (\d+)\s+:(\w+)\s+:(\w+)\s+(.*)", text):
        session, values = sessions.setdefault(int(process), []), v.strip("[]").split()
        if kind == "invoke":
            args = [] if name == "read" else [simple(v) for v in values]
            session.append(Txn("unknown", [Op(name, None, None, arguments(args), (at, None))]))
        else:
            op, = session[-1].ops
            if kind == "ok" or kind == "fail" and name != "read":
                read = simple(v) if name == "read" else kind == "ok" if name == "cas" else None
                status = "fail" if kind == "fail" and name != "cas" else "ok"
                session[-1] = Txn(status, [op._replace(read=read, time=(op.time[0], at))])
        at += 1
    return [sessions[i] for i in sorted(sessions)]


def from_gem5(text):
    """Reads requests: one byte is a write, several bytes are reads."""
    sessions = {}
    for proc, address, size, data in re.findall(
            r"completed request for proc: (\d+) addr: 0x([0-9a-f]+), size: (\d+), data: ([\d ]+)", text):
        data, address = [int(byte) for byte in data.split()], int(address, 16)
        ops = [Op("w", hex(address), None, data[0])] if size == "1" else [
            Op("r", hex(address + i), byte) for i, byte in enumerate(data)]
        sessions.setdefault(int(proc), []).extend(Txn("ok", [op]) for op in ops)
    return [sessions[i] for i in sorted(sessions)]


def from_jsonl(text):
    sessions, last, kinds = {}, {}, {"read": "r", "write": "w", "rmw": "u", "fence": "f", "append": "a"}
    for line in text.splitlines():
        fields = json.loads(line)
        if "session" not in fields:
            continue
        session = sessions.setdefault(fields["session"], [])
        time = (fields["start"], fields.get("end")) if "start" in fields else None
        if "call" in fields:
            args = fields["args"]
            op = Op(fields["call"], None, fields.get("returns"), arguments(args), time)
        else:
            kind, value = kinds[fields["op"]], fields.get("value")
            value = tuple(value) if isinstance(value, list) else value
            read = {"r": value, "u": fields.get("read")}.get(kind)
            op = Op(kind, fields.get("key"), INITIAL if kind == "r" and read is None else read,
                    value if kind in "wua" else None, time)
        status, txn = fields.get("status", "ok"), fields.get("txn")
        if txn is not None and last.get(fields["session"]) == txn:
            session[-1].ops.append(op)
        else:
            session.append(Txn(status, [op]))
        last[fields["session"]] = txn
    return [sessions[name] for name in sorted(sessions, key=int)]


def from_dbcop(text):
    def txn(line):
        inner, failed = re.fullmatch(r"\[(.*)\](!?)", line).groups()
        ops = [re.fullmatch(r"(\w+)(:=|==)(\?|\d+)", word).groups() for word in inner.split()]
        return Txn("fail" if failed else "ok", [
            Op("w", k, None, int(v)) if how == ":=" else Op("r", k, INITIAL if v == "?" else int(v)) for k, how, v in ops])
    return [[txn(line) for line in part.split("\n") if line] for part in re.split(r"^-+$", text.strip(), flags=re.M)]


def from_dbcop_json(text):
    def op(event):
        (kind, fields), = event.items()
        key, version = str(fields["variable"]), fields["version"] or INITIAL
        return Op("w", key, None, version) if kind == "Write" else Op("r", key, version)
    return [[Txn("ok" if t["committed"] else "fail", [op(e) for e in t["events"]]) for t in s] for s in json.loads(text)]


def from_awdit(text):
    op = lambda k, key, v: Op("w", key, None, int(v)) if k == "w" else Op("r", key, int(v))
    one = lambda part: Txn("ok", [op(*line.split()) for line in part.strip().split("\n")])
    return [[one(part) for part in re.split(r"^-+$", s, flags=re.M)] for s in re.split(r"^=+$", text, flags=re.M)]


def from_plume(text):
    sessions, names = {}, {}
    for kind, key, value, session, txn in re.findall(r"([rw])\((\d+),(\d+),(\d+),(-?\d+)\)", text):
        op = Op("w", key, None, int(value)) if kind == "w" else Op("r", key, int(value))
        found = sessions.setdefault(int(session), [])
        if txn != "-1" and names.get(session) == txn:
            found[-1].ops.append(op)
        else:
            found.append(Txn("ok" if txn != "-1" else "fail", [op]))
        names[session] = txn
    return [sessions[i] for i in sorted(sessions)]


def from_axe(text):
    sessions = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+): (.*?)(?: @ (\d+):(\d+))?", line)
        if not found:
            continue
        thread, rest, start, end = found.groups()
        load, store = re.search(r"M\[(\d+)\] == (\d+)", rest), re.search(r"M\[(\d+)\] := (\d+)", rest)
        kind = "f" if rest == "sync" else "u" if load and store else "r" if load else "w"
        key = (load or store).group(1) if load or store else None
        op = Op(kind, key, int(load.group(2)) if load else None, int(store.group(2)) if store else None,
                (int(start), int(end)) if start else None)
        sessions.setdefault(int(thread), []).append(Txn("ok", [op]))
    return [sessions[i] for i in sorted(sessions)]


def from_jepsen_json(text):
    sessions = {}
    for event in json.loads(text):
        if event["type"] == "invoke":
            continue
        ops = [Op("a" if f == "append" else f, str(key), None, v) if f != "r" else
               Op("r", str(key), tuple(v) if isinstance(v, list) else v or INITIAL) for f, key, v in event["value"]]
        status = {"ok": "ok", "fail": "fail", "info": "unknown"}[event["type"]]
        sessions.setdefault(int(event["process"]), []).append(Txn(status, ops))
    return [sessions[i] for i in sorted(sessions)]


def from_edn(text):
    """Reads Elle's EDN of transactions, which is JSON except for keywords, nil and commas."""
    text = re.sub(r":([a-z]+)", r'"\1"', re.sub(r":(\d+)", r"\1", text)).replace("nil", "null")
    found = []
    for line in text.splitlines():
        value = re.search(r'"value" (\[.*\])[,}]', line).group(1)
        value = json.loads(re.sub(r"(?<=[^\[]) (?=\S)", ",", value))
        found.append({"process": re.search(r'"process" (\d+)', line).group(1),
                      "type": re.search(r'"type" "(\w+)"', line).group(1), "value": value})
    return from_jepsen_json(json.dumps(found))


def from_fptlin(text):
    sessions = {}
    for i, start, end, kind, value in re.findall(r"(\d+) (\d+) (\d+) (PUSH|POP) (-?\d+)", text):
        time, value = (int(start), int(end)), int(value)
        op = Op("push", None, None, value, time) if kind == "PUSH" else Op(
            "pop", None, None if value == -1 else value, None, time)
        sessions.setdefault(int(i), []).append(Txn("ok", [op]))
    return [sessions[i] for i in sorted(sessions)]


def from_fastlin(text):
    return from_fptlin(re.sub(r"(push|pop) (-?\d+) (\d+) (\d+)", lambda m: f"0 {m[3]} {m[4]} {m[1].upper()} {m[2]}", text))


def from_dbcop_binary(data):
    at = [40 + 24]
    def take(form):
        found = struct.unpack_from("<" + form, data, at[0])
        at[0] += struct.calcsize("<" + form)
        return found[0]
    def op():
        is_write, key, value, _ = take("B"), str(take("Q")), take("Q"), take("B")
        return Op("w", key, None, value) if is_write else Op("r", key, value)
    def txn():
        ops = [op() for _ in range(take("Q"))]
        return Txn("ok" if take("B") else "fail", ops)
    def texts():
        at[0] = 40
        for _ in range(3):
            length = take("Q")
            at[0] += length
    texts()
    return [[txn() for _ in range(take("Q"))] for _ in range(take("Q"))]


# Writers and readers by the name of the format.
SINGLE = {"hist": to_hist, "jsonl": to_jsonl, "axe": to_axe}
COMMITTED = {"hist": to_hist, "jsonl": to_jsonl, "awdit": to_awdit, "viper": to_viper, "timekiller": to_timekiller,
             "dbcop": to_dbcop, "dbcop-json": to_dbcop_json, "plume": to_plume, "dbcop-binary": to_dbcop_binary,
             "edn": to_edn, "jepsen-json": to_jepsen_json, "cobra": to_cobra}
ABORTED = {name: COMMITTED[name] for name in ("hist", "jsonl", "dbcop", "dbcop-json", "dbcop-binary", "edn", "jepsen-json")}
UNKNOWN = {name: COMMITTED[name] for name in ("hist", "jsonl", "edn", "jepsen-json", "cobra")}
LISTS = {name: COMMITTED[name] for name in ("hist", "jsonl", "edn", "jepsen-json")}
CALLS = {"hist": to_hist, "jsonl": to_jsonl, "limo": to_limo, "fptlin": to_fptlin,
         "fastlin": to_fastlin}
READERS = {"jsonl": from_jsonl, "hist": from_hist, "limo": from_limo, "cobra": from_cobra, "viper": from_viper,
           "timekiller": from_timekiller, "jepsen": from_jepsen_log, "gem5": from_gem5, "axe": from_axe, "dbcop": from_dbcop, "dbcop-json": from_dbcop_json,
           "plume": from_plume, "awdit": from_awdit, "edn": from_edn, "jepsen-json": from_jepsen_json,
           "fptlin": from_fptlin, "fastlin": from_fastlin, "dbcop-binary": from_dbcop_binary}
READ_ONLY = {"cobra", "viper", "timekiller", "gem5", "jepsen"}


class Doors:
    def __init__(self, binary, seed):
        self.binary, self.rng = os.path.abspath(binary), random.Random(seed)
        self.folder, self.counts, self.found = tempfile.mkdtemp(prefix="consistory-doors-"), Counter(), 0

    def run(self, *args):
        return subprocess.run([self.binary, *args], capture_output=True, cwd=self.folder, stdin=subprocess.DEVNULL)

    def report(self, what, sessions, detail):
        self.found += 1
        print(f"FOUND: {what}\n{to_hist(sessions)}{detail}\n", flush=True)

    def place(self, name, content):
        path = os.path.join(self.folder, name)
        if isinstance(content, dict):
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            for file, data in content.items():
                with open(os.path.join(path, file), "wb") as out:
                    out.write(data)
        else:
            with open(path, "wb") as out:
                out.write(content if isinstance(content, bytes) else content.encode())
        return path

    def family(self, name, sessions, formats, models):
        """Writes a history in each format, and compares the operations read back and the verdicts."""
        verdicts = {}
        for form, write in formats.items():
            source = f"{name}-{form}"
            self.place(source, write(sessions))
            chosen = [] if form in ("cobra", "viper") else ["--from", form]
            self.compare(f"{form} is read otherwise than it was written", sessions,
                         self.run("convert", source, *chosen, "--to", "jsonl"), form, from_jsonl)
            if form in READ_ONLY:
                self.alike(form, source, write(sessions))
            else:
                written = self.run("convert", f"{name}-hist", "--from", "hist", "--to", form)
                self.compare(f"{form} is written otherwise than it was read", sessions, written, form, READERS[form])
                self.place("again", written.stdout)
                self.compare(f"{form} does not come back", sessions,
                             self.run("convert", "again", "--from", form, "--to", "jsonl"), form, from_jsonl)
            judged = self.run("check", source, *chosen, "--model", models, "--format", "json",
                              *(["--object", "stack"] if name == "calls" else []))
            try:
                results = json.loads(judged.stdout.decode())["results"]
                verdicts[form] = {r["model"]: r["verdict"] for r in results}
            except ValueError:
                self.report(f"{form} is not judged", sessions, judged.stderr.decode())
        for model in models.split(","):
            # fastlin has no sessions, which weaker models of objects need.
            said = {form: v[model] for form, v in verdicts.items() if form != "fastlin" or model == "linearizability"}
            if len(set(said.values())) > 1:
                self.report(f"the verdicts on {model} differ", sessions, json.dumps(said))
        self.counts[f"verdicts of {name}"] += sum(len(v) for v in verdicts.values())

    def compare(self, what, sessions, ran, form, read):
        self.counts[f"{form} compared"] += 1
        if ran.returncode != 0:
            return self.report(f"{form}: {what}", sessions, ran.stderr.decode(errors="replace"))
        data = ran.stdout if read is from_dbcop_binary else ran.stdout.decode()
        try:
            found = normal(read(data), form)
        except (ValueError, KeyError, AttributeError, IndexError, struct.error) as error:
            return self.report(f"{form}: {what}", sessions, f"{error!r}\n{data}")
        if found != normal(sessions, form):
            self.report(f"{form}: {what}", sessions, f"{found}\n{normal(sessions, form)}")

    def round(self):
        rng = self.rng
        self.family("registers", registers(rng), SINGLE, "cc,ccv,cm,sc,tso,pso")
        levels = "rc,ra,tcc,pc,psi,si,ser"
        self.family("committed", transactions(rng, ["ok"]), COMMITTED, levels)
        self.family("aborted", transactions(rng, ["ok", "ok", "fail"]), ABORTED, levels)
        self.family("unknown", transactions(rng, ["ok", "ok", "unknown"]), UNKNOWN, levels)
        self.family("lists", transactions(rng, ["ok", "ok", "unknown"], lists=True), LISTS, levels)
        self.family("calls", calls(rng), CALLS, "linearizability,read-my-writes")
        plain = [[Txn("ok", [op]) for op in (t.ops[0] for t in s)] for s in transactions(rng, ["ok"])]
        self.alike("jepsen", "plain-jepsen", to_jepsen_log(plain))
        pairs = [[Txn("ok", [Op("r", "0", rng.randrange(3)), Op("r", "1", rng.randrange(3))]) if rng.random() < 0.5 else
                  Txn("ok", [Op("w", str(rng.randrange(2)), None, rng.randrange(9))]) for _ in range(3)] for _ in range(2)]
        self.alike("gem5", "bytes-gem5", to_gem5(pairs))

    def alike(self, form, name, content):
        """Reads an input with `convert` and with the small reader, and compares."""
        self.counts[f"{form} compared"] += 1
        self.place(name, content)
        ran = self.run("convert", name, *([] if form in ("cobra", "viper") else ["--from", form]), "--to", "jsonl")
        found = from_jsonl(ran.stdout.decode())
        wanted = READERS[form](content)
        if not wanted or as_calls(found) != as_calls(wanted):
            self.report(f"{form}: {name} is read otherwise than by the tiny reader", [],
                        f"{ran.stderr.decode()}{as_calls(found)}\n{as_calls(wanted)}")

    def corpus(self):
        """Reads the files of the corpus with `convert` and with the small readers."""
        folder = os.path.join(ROOT, "corpus/formats/valid")
        for form, name in (("timekiller", "timekiller.json"), ("limo", "stack.limo"), ("jepsen", "jepsen.log"),
                           ("jepsen", "jepsen-with-times.log"), ("gem5", "ruby-tester.out")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.alike(form, name, file.read())
        for place, _, files in sorted(os.walk(os.path.join(ROOT, "corpus"))):
            for name in sorted(files):
                path = os.path.join(place, name)
                if not name.endswith(".hist") or "malformed" in place:
                    continue
                try:
                    wanted = recheck_reading.read_histories(path)
                    ran = self.run("convert", path, "--to", "jsonl")
                    found = recheck_reading.read_jsonl(ran.stdout.decode())
                except recheck_reading.Skip:
                    self.counts["files of the corpus with calls or single failures, not compared"] += 1
                    continue
                if not found and b"can't express" in ran.stderr:
                    self.counts["files of the corpus with calls or single failures, not compared"] += 1
                    continue
                self.counts["files of the corpus compared"] += 1
                found, wanted = [plain_ops(h) for h in found], [plain_ops(h) for h in wanted]
                if found != wanted:
                    self.report(f"{path} is read otherwise than by recheck.py", [], f"{found}\n{wanted}")


def plain_ops(history):
    """Returns the operations of a history of recheck.py; a transaction has the name of its first one."""
    first = {}
    ops = sorted(history.ops, key=lambda op: (op.session, op.index))
    return history.init + [op._replace(txn=first.setdefault(op.txn, op.name)) for op in ops]


def as_calls(sessions):
    """Returns the operations in a form that does not depend on their grouping; unknown results are ignored."""
    def one(t, op):
        is_open = op.time is not None and op.time[1] is None
        return ("unknown" if is_open else t.status, op.kind, op.key, None if is_open else op.read, op.write, op.time)
    return [[one(t, op) for t in s for op in t.ops] for s in sessions]


def normal(sessions, form):
    """Returns the part that a format can express: reads of transactions that did not commit are not recorded in events, and
    an event has a time that is its position."""
    found = []
    for session in sessions:
        listed = []
        for t in session:
            ops = t.ops
            if form in ("edn", "jepsen-json"):
                ops = [op._replace(time=None, read=None if t.status != "ok" else op.read) for op in ops]
            if form == "limo":
                ops = [op._replace(time=None) for op in ops]
            listed.append((t.status, [(op.kind, op.key, op.read, op.write, op.time) for op in ops]))
        found.append(listed)
    if form == "fastlin":
        # This format has no sessions.
        return sorted((ops[0][4], ops[0]) for listed in found for _, ops in listed)
    return found


def main():
    parser = argparse.ArgumentParser(description="Formats against tiny readers and writers.")
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    doors = Doors(args.binary, args.seed)
    for _ in range(args.rounds):
        doors.round()
    doors.corpus()
    for what in sorted(doors.counts):
        print(f"{doors.counts[what]:8} {what}")
    print(f"{doors.found:8} found")
    shutil.rmtree(doors.folder, ignore_errors=True)
    return 1 if doors.found else 0


if __name__ == "__main__":
    sys.exit(main())
