"""Reads histories of registers and transactions from `.hist` files and JSON lines, for `recheck.py`.

It shares only the description of the formats (docs/formats.md) with Consistory. An operation has a
name as in certificates (`t0:3`), and its kind is one letter: `r` reads, `w` writes, `u` is a
read-modify-write, `a` appends to a list, `f` is a fence. Operations with one `txn` are one transaction.
"""

import json
import re
from collections import namedtuple

Op = namedtuple("Op", "name session index kind key read write status txn time")


class Skip(Exception):
    """A case that this program does not check."""


TOKEN = re.compile(r'''\s*(?:(\#.*)|("(?:[^"\\]|\\.)*")|(\[|\]|[(),!?]|@-?\d+\.\.(?:-?\d+)?|=>)'''
                   r'''|([^\s"\[\](),!?@#]+))''')


def tokens(text):
    at, found = 0, []
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if not match:
            raise Skip(f"cannot read {text[at:at + 20]!r}")
        at = match.end()
        if match.group(1) is None:
            found.append(match.group(2) or match.group(3) or match.group(4))
    return found


def word(token):
    return json.loads(token) if token.startswith('"') else token


def value(token):
    """Returns a comparable form of a value, in which texts and integers differ."""
    if token.startswith('"'):
        return json.loads(token)
    if re.fullmatch(r"-?\d+", token):
        return int(token)
    return {"null": None, "true": True, "false": False}.get(token, token)


class History:
    """Operations by name, and the initial and final values of keys."""

    def __init__(self):
        self.name, self.ops, self.sessions, self.initial, self.final = None, [], {}, {}, {}

    def add(self, session, kind, key, read, write, status, txn=None, time=None):
        index = self.sessions.get(session, 0)
        self.sessions[session] = index + 1
        name = f"{session}:{index}"
        txn = name if txn is None else (session, txn)
        self.ops.append(Op(name, session, index, kind, key, read, write, status, txn, time))

    def registers_only(self):
        """Rejects histories to which the models of registers do not apply."""
        several = [op.txn for op in self.ops if op.status != "fail"]
        if len(set(several)) != len(several):
            raise Skip("transactions of several operations")
        if any(isinstance(op.write, tuple) for op in self.init):
            raise Skip("lists")

    def finish(self):
        keys = {op.key for op in self.ops if op.key is not None} | set(self.initial)
        # A key that is appended to is a list, and so is one that is never written and was read as one.
        lists = {op.key for op in self.ops if op.kind == "a"}
        lists |= {op.key for op in self.ops if isinstance(op.read, tuple)} - {
            op.key for op in self.ops if op.kind in "wu"}
        start = {key: self.initial.get(key, () if key in lists else 0) for key in keys}
        fill = lambda op, v: start[op.key] if v is None and op.key is not None else v
        self.ops = [op._replace(read=fill(op, op.read) if op.kind in "ru" else None,
                                write=fill(op, op.write) if op.kind in "wua" else None)
                    for op in self.ops]
        self.init = [Op(f"init:{key}", None, 0, "w", key, None, start[key], "ok", None, None)
                     for key in sorted(keys)]
        return self


def read_hist(text):
    found, history, named = [], History(), False
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if line.startswith("---"):
            if history.ops or history.initial or named and history.sessions:
                found.append(history.finish())
            history, named = History(), True
            continue
        parts = re.match(r'\s*("(?:[^"\\]|\\.)*"|[^\s:"#]+)\s*:(.*)', line)
        if not parts:
            if line.strip() and not line.strip().startswith("#"):
                raise Skip(f"cannot read the line {line!r}")
            continue
        name, rest = word(parts.group(1)), parts.group(2)
        if parts.group(1) in ("init", "final"):
            rest = re.sub(r"\s#.*", "", rest)
            for key, bound in re.findall(r'("(?:[^"\\]|\\.)*"|[^\s=]+)\s*=\s*("(?:[^"\\]|\\.)*"|\S+)', rest):
                if bound.startswith("["):
                    raise Skip("initial lists")
                (history.initial if name == "init" else history.final)[word(key)] = value(bound)
            continue
        history.sessions.setdefault(name, 0)
        session_line(history, name, tokens(rest))
    if history.ops:
        found.append(history.finish())
    return found


def session_line(history, session, words):
    at, open_at, txns = 0, None, len(history.ops)
    while at < len(words):
        token = words[at]
        if token == "[":
            open_at, at, txns = len(history.ops), at + 1, txns + 1
            continue
        if token == "]":
            at += 1
            status = {"!": "fail", "?": "unknown"}.get(words[at] if at < len(words) else "")
            at += status is not None
            for i in range(open_at, len(history.ops)):
                if history.ops[i].status != "ok":
                    raise Skip("statuses inside of transactions")
                if status:
                    history.ops[i] = history.ops[i]._replace(status=status)
            open_at = None
            continue
        kind = {"r": "r", "read": "r", "w": "w", "write": "w", "rmw": "u", "f": "f", "fence": "f",
                "append": "a"}.get(token)
        if kind is None:
            raise Skip(f"an operation {token!r}")
        args, at = [], at + 1
        if kind != "f":
            args, at = arguments(words, at + 1)
        status, time = "ok", None
        while at < len(words) and (words[at] in "!?" or words[at].startswith("@") or words[at] == "=>"):
            if words[at] == "=>":
                raise Skip("calls of objects")
            if words[at].startswith("@"):
                time = tuple(int(t) if t else None for t in words[at][1:].split(".."))
            status = {"!": "fail", "?": "unknown"}.get(words[at], status)
            at += 1
        key = (args[0] if isinstance(args[0], tuple) else word(args[0])) if args else None
        values = [arg if isinstance(arg, tuple) else value(arg) for arg in args[1:]]
        history.add(session, kind, key, values[0] if kind in "ru" else None,
                    values[-1] if kind in "wua" else None, status, None if open_at is None else txns, time)


def arguments(words, at):
    """Returns the content of parentheses, lists as tuples, and the position after them."""
    args, stack = [], []
    while words[at] != ")" or stack:
        if words[at] == "[":
            stack.append([])
        elif words[at] == "]":
            inner = tuple(stack.pop())
            (stack[-1] if stack else args).append(inner)
        elif words[at] != ",":
            (stack[-1].append(value(words[at])) if stack else args.append(words[at]))
        at += 1
    return args, at + 1


def read_jsonl(text):
    found, history, name = [], None, None
    for line in text.split("\n"):
        if not line.strip():
            continue
        fields = json.loads(line)
        if history is None or str(fields.get("history")) != name:
            if history and history.ops:
                found.append(history.finish())
            history, name, runs = History(), str(fields.get("history")), {}
        for field, target in (("init", history.initial), ("final", history.final)):
            target.update(fields.get(field, {}))
        if "init" in fields or "final" in fields:
            continue
        kind = {"read": "r", "write": "w", "rmw": "u", "fence": "f", "append": "a"}.get(fields.get("op"))
        if kind is None:
            raise Skip("operations that are not of registers")
        session, key = str(fields["session"]), fields.get("key")
        # Consecutive operations with one name are one transaction.
        txn, (last, number) = fields.get("txn"), runs.get(session, (None, 0))
        number += txn is None or txn != last
        runs[session] = (txn, number)
        listed = lambda v: tuple(v) if isinstance(v, list) else v
        values = [listed(fields.get("value")), listed(fields.get("read" if kind == "u" else "value"))]
        time = (fields["start"], fields.get("end")) if "start" in fields else None
        history.add(session, kind, None if key is None else str(key),
                    values[1] if kind in "ru" else None, values[0] if kind in "wua" else None,
                    fields.get("status", "ok"), None if txn is None else number, time)
    if history and history.ops:
        found.append(history.finish())
    return found


def read_histories(path):
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    return read_jsonl(text) if text.lstrip().startswith("{") else read_hist(text)
