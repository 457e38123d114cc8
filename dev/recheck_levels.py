"""Checks certificates of isolation levels, directly by the definitions (docs/isolation.md).

`recheck.py` reads histories and verdicts, and calls `check` for every verdict about a level.

The relations: `so` orders the transactions of a session, `rt` those that do not overlap in time, `wr`
leads from a transaction to one that reads from it, `ww` orders the writers of a key, and `rw` leads from
a reader to every transaction that overwrites its source. B is `wr` and the order given by `--order`.

A consistent history has a commit order: a total order of the transactions that contains B and, whenever
t3 reads a key from t1 and knows another writer t2 of the key, the pair (t2, t1). The levels differ only in the
transactions that a transaction knows; see `knows`. A violated level has a cycle of
dependencies of a shape that the level forbids; see `is_forbidden`. Every `ww` of a cycle needs a reason:
a list that was read, a case that assumes it, or another forbidden cycle that its opposite would close.
"""

from collections import defaultdict

LEVELS = ("rc", "ra", "tcc", "pc", "psi", "si", "ser")
INIT = "init"
# A commit order of a level is also a commit order of the levels in its list, and a violation of one of
# these is also a violation of the level.
WEAKER = {"ser": set(LEVELS), "si": set(LEVELS) - {"ser"}, "pc": {"rc", "ra", "tcc", "pc"},
          "psi": {"rc", "ra", "tcc", "psi"}, "tcc": {"rc", "ra", "tcc"}, "ra": {"rc", "ra"}, "rc": {"rc"}}


class Wrong(Exception):
    """A certificate that does not prove its claim."""


class Transactions:
    """The transactions of a history, and the candidates of each read."""

    def __init__(self, history, order):
        self.order, self.ops, self.session, self.fate = order, {}, {}, {}
        self.of, self.time, names = {}, {}, {}
        for op in history.ops:
            name = names.setdefault(op.txn, op.name)
            self.ops.setdefault(name, []).append(op)
            self.session[name] = op.session
            self.of[op.name] = name
        worst = lambda ops: next((s for s in ("fail", "unknown") if any(op.status == s for op in ops)), "ok")
        for name, ops in self.ops.items():
            self.fate[name] = worst(ops)
            starts = [op.time[0] for op in ops if op.time]
            ends = [op.time[1] for op in ops if op.time]
            done = self.fate[name] == "ok" and len(ends) == len(ops) and None not in ends
            self.time[name] = (min(starts) if len(starts) == len(ops) else None, max(ends) if done else None)
        self.initial = {op.key: op.write for op in history.init}
        self.is_list = {key for key, value in self.initial.items() if isinstance(value, tuple)}
        # The values that each transaction writes to each key, in program order; others read the last one.
        self.writes = defaultdict(lambda: defaultdict(list))
        for name, ops in self.ops.items():
            for op in ops:
                if op.kind in "wua":
                    self.writes[name][op.key].append(op.write)
        # External reads: operation, transaction, key, candidates, and for lists the external part.
        self.reads, self.internal, self.lists = {}, {}, {}
        for name, ops in self.ops.items():
            own = defaultdict(list)
            for op in ops:
                if op.kind in "ru":
                    self.read(name, op, own[op.key])
                if op.kind in "wua":
                    own[op.key].append(op.write)

    def read(self, name, op, own):
        if op.key in self.is_list:
            if own and op.read[len(op.read) - len(own):] != tuple(own):
                self.internal[op.name] = op
                return
            seen = op.read[:len(op.read) - len(own)]
            self.lists[op.name] = seen
            if seen == self.initial[op.key]:
                candidates = {INIT}
            else:
                candidates = {w for w in self.ops if w != name and self.fate[w] != "fail"
                              and same(self.last(w, op.key), seen[-1:])}
        elif own:
            if not same((own[-1],), (op.read,)):
                self.internal[op.name] = op
            return
        else:
            candidates = {w for w in self.ops if w != name and self.fate[w] != "fail"
                          and same(self.last(w, op.key), (op.read,))}
            if same((self.initial[op.key],), (op.read,)):
                candidates.add(INIT)
        self.reads[op.name] = candidates

    def last(self, name, key):
        return tuple(self.writes[name][key][-1:])

    def op(self, read):
        return next(op for op in self.ops[self.of[read]] if op.name == read)

    def sources(self, choice):
        """Returns the source of each read that has one candidate or a choice."""
        found = {}
        for read, candidates in self.reads.items():
            if read in choice:
                chosen = choice[read]
                chosen = INIT if chosen.startswith("init:") else self.of.get(chosen)
                if chosen not in candidates:
                    raise Wrong(f"{read} cannot read from {choice[read]}")
                found[read] = chosen
            elif len(candidates) == 1:
                found[read] = next(iter(candidates))
        return found

    def counting(self, sources):
        """Returns the transactions that count: an indeterminate one counts if a counting one reads from it."""
        counting = {name for name, fate in self.fate.items() if fate == "ok"}
        while True:
            more = set()
            for read, source in sources.items():
                if self.of[read] in counting:
                    more.add(source)
                    # Every append in a list counts.
                    key, shown = self.op(read).key, set(self.lists.get(read, ()))
                    more |= {w for w in self.ops if self.fate[w] == "unknown"
                             and shown & set(self.writes[w][key])}
            more = {name for name in more if self.fate.get(name) == "unknown"} - counting
            if not more:
                return counting
            counting |= more

    def brought(self, a, b):
        """Checks whether a is before b in the clients' order."""
        position = {name: i for i, name in enumerate(self.ops)}
        so = self.session[a] == self.session[b] and position[a] < position[b]
        end, start = self.time[a][1], self.time[b][0]
        rt = end is not None and start is not None and end < start
        return {"none": set(), "session": {"so"} if so else set(),
                "realtime": ({"so"} if so else set()) | ({"rt"} if rt else set())}[self.order]


def same(a, b):
    return a == b and [type(x) for x in a] == [type(x) for x in b]


# Consistent --------------------------------------------------------------------------------------

def check_order(level, txns, certificate):
    sources = txns.sources(certificate.get("wr", {}))
    counting = txns.counting(sources)
    order = certificate["order"]
    if len(set(order)) != len(order) or set(order) != counting:
        raise Wrong("the order does not contain every counting transaction exactly once")
    at = {name: i for i, name in enumerate(order)}
    for read in list(txns.reads) + list(txns.internal):
        if txns.of[read] in counting and read not in sources:
            raise Wrong(f"the source of {read} is unknown")
    wr = {(sources[read], txns.of[read]) for read in sources if txns.of[read] in counting} - {(INIT, n) for n in at}
    before = wr | {(a, b) for a in order for b in order if a != b and txns.brought(a, b)}
    for a, b in before:
        if at[a] >= at[b]:
            raise Wrong(f"{a} must come before {b}")
    writers = {key: [n for n in order if txns.writes[n][key]] for key in txns.initial}
    for read, seen in txns.lists.items():
        if txns.of[read] in counting:
            key = txns.op(read).key
            whole = txns.initial[key] + tuple(v for w in writers[key] for v in txns.writes[w][key])
            if whole[:len(seen)] != seen:
                raise Wrong(f"{read} is not a prefix of the version order")
    closed = {}
    for read, source in sources.items():
        reader = txns.of[read]
        if reader not in counting:
            continue
        for other in writers[txns.op(read).key]:
            if other in (source, reader) or source != INIT and at[other] < at[source]:
                continue
            # The other writer is later than the source, so the reader must not know it.
            if knows(level, txns, sources, order, before, writers, read, other, closed):
                raise Wrong(f"{read} reads from {source} and its transaction knows {other}")
    if level in ("pc", "si"):
        check_snapshots(level, txns, certificate.get("snapshots", []), sources, order, before, writers)


def check_snapshots(level, txns, snapshots, sources, order, before, writers):
    """Checks the number of earlier transactions that each transaction sees according to the certificate.

    The order alone proves the level, but a wrong snapshot is still a false claim."""
    if len(snapshots) != len(order) or any(sees > i for i, sees in enumerate(snapshots)):
        raise Wrong("the snapshots do not fit the order")
    at, sees = {name: i for i, name in enumerate(order)}, dict(zip(order, snapshots))
    for a, b in before:
        if at[a] >= sees[b]:
            raise Wrong(f"the snapshot of {b} lacks {a}")
    for read, source in sources.items():
        reader, key = txns.of[read], txns.op(read).key
        seen = [w for w in writers[key] if w != reader and at[w] < sees.get(reader, 0)]
        if reader in at and (seen or [INIT])[-1] != source:
            raise Wrong(f"{read} reads from {source}, which is not the last write in its snapshot")
    for key in writers if level == "si" else ():
        for a, b in zip(writers[key], writers[key][1:]):
            if at[a] >= sees[b]:
                raise Wrong(f"{b} writes {key} and does not see {a}, which wrote it before")


def reach(pairs, order, closed, what):
    """Returns the transitive closure of pairs that lead forward in an order."""
    if what not in closed:
        after = defaultdict(set)
        for a, b in pairs:
            after[a].add(b)
        for name in reversed(order):
            after[name] = set().union(after[name], *(after[b] for b in after[name]))
        closed[what] = after
    return closed[what]


def knows(level, txns, sources, order, before, writers, read, t2, closed):
    t3, at = txns.of[read], {name: i for i, name in enumerate(order)}
    if level == "rc":
        earlier = [op.name for op in txns.ops[t3]]
        return any(sources.get(r) == t2 for r in earlier[:earlier.index(read)])
    if level == "ra":
        return (t2, t3) in before
    if level == "tcc":
        return t3 in reach(before, order, closed, "B+")[t2]
    if level == "psi":
        ww = {(a, b) for key in writers.values() for i, a in enumerate(key) for b in key[i + 1:]}
        return t3 in reach(before | ww, order, closed, "(B|ww)+")[t2]
    if level == "ser":
        return at[t2] < at[t3]
    both = lambda a, b: any(txns.writes[a][key] and txns.writes[b][key] for key in txns.initial)
    return any(at[t2] <= at[t4] and ((t4, t3) in before or level == "si" and at[t4] < at[t3] and both(t4, t3))
               for t4 in order if t4 != t3)


# Violations --------------------------------------------------------------------------------------

def is_forbidden(level, txns, edges):
    """Checks whether a level forbids a cycle, by the relations of its edges and what precedes each rw."""
    relations = [edge["relation"] for edge in edges]
    previous = [relations[i - 1] for i, r in enumerate(relations) if r == "rw"]
    if not previous:
        return True                                        # B | ww has no cycle at any level
    client = {"so", "rt", "wr"}
    if level in ("rc", "ra"):
        if len(edges) != 2 or previous[0] not in client or len(previous) != 1:
            return False
        rw = edges[relations.index("rw")]
        wr = edges[1 - relations.index("rw")]
        names = [op.name for op in txns.ops[rw["from"]]]
        return level == "ra" or wr["relation"] == "wr" and names.index(wr["read"]) < names.index(rw["read"])
    if level == "tcc":
        return len(previous) == 1 and set(relations) <= client | {"rw"}
    if level == "pc":
        return all(p in client for p in previous)
    if level == "psi":
        return len(previous) == 1
    return level == "ser" or "rw" not in previous            # si: no two in a row


class Refutation:
    """The choices and assumptions of the current case."""

    def __init__(self, level, txns):
        self.level, self.txns, self.choice, self.known = level, txns, {}, set()

    def certificate(self, certificate):
        kind, txns = certificate["kind"], self.txns
        if kind == "bad-read":
            return bad_read(txns, certificate["pattern"], certificate["read"], certificate.get("other"))
        if kind == "cycle":
            return self.cycle(certificate["edges"])
        if kind != "cases":
            raise Wrong(f"{kind} does not prove a violation")
        branches, known = certificate["branches"], set(self.known)
        if "split" in certificate:
            (a, b), key = certificate["split"], certificate["key"]
            self.both_write(a, b, key)
            cases = [({}, {(a, b, key)}), ({}, {(b, a, key)})]
        else:
            read, sources = certificate["read"], certificate["sources"]
            txn = lambda w: INIT if w.startswith("init:") else txns.of.get(w)
            if read in self.choice or {txn(w) for w in sources} != txns.reads.get(read, set()):
                raise Wrong(f"the cases of {read} are not all its candidates")
            cases = [({read: w}, set()) for w in sources]
        if len(cases) != len(branches):
            raise Wrong("a case has no branch")
        for (choice, pairs), branch in zip(cases, branches):
            self.choice.update(choice)
            self.known = known | pairs
            self.certificate(branch)
            for read in choice:
                del self.choice[read]
        self.known = known

    def both_write(self, a, b, key):
        counting = self.txns.counting(self.txns.sources(self.choice))
        for name in (a, b):
            if name not in counting:
                raise Wrong(f"{name} does not count")
            if not self.txns.writes[name][key]:
                raise Wrong(f"{name} does not write {key}")
        if a == b:
            raise Wrong("a transaction is not before itself")

    def cycle(self, edges):
        if not edges or any(e["to"] != f["from"] for e, f in zip(edges, edges[1:] + edges[:1])):
            raise Wrong("the edges are not a cycle")
        for edge in edges:
            self.edge(edge)
        if not is_forbidden(self.level, self.txns, edges):
            raise Wrong(f"{self.level} allows a cycle of {', '.join(e['relation'] for e in edges)}")

    def edge(self, edge):
        a, b, relation, txns = edge["from"], edge["to"], edge["relation"], self.txns
        sources = txns.sources(self.choice)
        counting = txns.counting(sources)
        if a not in counting or b not in counting or a == b:
            raise Wrong(f"{a} {relation} {b}: one of them does not count")
        if relation in ("so", "rt"):
            if relation not in txns.brought(a, b):
                raise Wrong(f"{a} {relation} {b} does not hold")
        elif relation == "wr":
            if txns.of.get(edge["read"]) != b or sources.get(edge["read"]) != a:
                raise Wrong(f"{edge['read']} does not read from {a}")
        elif relation == "ww":
            self.ww(edge, a, b, edge["key"])
        elif relation == "rw":
            read, because = edge["read"], edge.get("because", [])
            source, key = sources.get(read), txns.op(read).key
            if txns.of[read] != a or source is None:
                raise Wrong(f"the source of {read} is unknown")
            if not txns.writes[b][key]:
                raise Wrong(f"{b} does not write {key}")
            if source == INIT:
                return
            ww = because[0] if because else {"from": source, "to": b, "relation": "ww", "key": key}
            if len(because) > 1 or (ww["from"], ww["to"], ww["relation"], ww["key"]) != (source, b, "ww", key):
                raise Wrong(f"{a} rw {b} does not follow")
            self.ww(ww, source, b, key)
        else:
            raise Wrong(f"the relation {relation}")

    def ww(self, edge, a, b, key):
        self.both_write(a, b, key)
        if (a, b, key) in self.known:
            return
        if edge.get("list") is not None:
            if not shows(self.txns, edge["list"], a, b, key):
                raise Wrong(f"{edge['list']} does not show {a} before {b}")
        elif edge.get("because"):
            known = set(self.known)
            self.known.add((b, a, key))
            self.cycle(edge["because"])
            self.known = known
        else:
            raise Wrong(f"{a} ww {b} has no reason")
        self.known.add((a, b, key))


def shows(txns, read, a, b, key):
    """Checks whether a list holds a's appends, and b's after them or not at all."""
    seen, op = txns.lists.get(read), txns.op(read)
    if seen is None or op.key != key or txns.fate[txns.of[read]] != "ok":
        return False
    first, second = txns.writes[a][key], txns.writes[b][key]
    if first[-1] not in seen:
        return False
    return second[0] not in seen or seen.index(first[-1]) < seen.index(second[0])


def bad_read(txns, pattern, read, other):
    op, name = txns.op(read), txns.of[read]
    if txns.fate[name] == "fail":
        raise Wrong(f"{read} was aborted")
    if pattern == "InternalRead":
        if read not in txns.internal:
            raise Wrong(f"{read} returns the last write of its transaction")
        return
    if pattern == "IncompatibleOrder":
        if not is_incompatible(txns, read, other or read):
            raise Wrong(f"the lists of {read} and {other} fit one version order")
        return
    if read in txns.internal:
        raise Wrong(f"{read} follows a write of its own transaction")
    values = list(txns.lists[read]) if op.key in txns.is_list else [op.read]
    if op.key not in txns.is_list and txns.reads[read]:
        raise Wrong(f"{read} may read from {min(txns.reads[read])}")
    for value in values:
        if op.key in txns.is_list and value in txns.initial[op.key]:
            continue
        wrote = [w for w in txns.ops if any(same((v,), (value,)) for v in txns.writes[w][op.key])]
        others = [w for w in wrote if w != name]
        live = [w for w in others if txns.fate[w] != "fail"]
        cut = live and value is values[-1] and all(not same(txns.last(w, op.key), (value,)) for w in live)
        found = ("ThinAirRead" if not wrote else "AbortedRead" if others and not live
                 else "FutureRead" if not others else "IntermediateRead" if cut else None)
        if found == pattern:
            return
    raise Wrong(f"{read} is not a case of {pattern}")


def is_incompatible(txns, read, other):
    a, b, key = txns.lists.get(read), txns.lists.get(other), txns.op(read).key
    if a is None or b is None or txns.op(other).key != key:
        return False
    short, long = sorted((a, b), key=len)
    if long[:len(short)] != short:
        return True
    # One list that separates, reorders or repeats the appends of a transaction.
    for seen in (a, b):
        rest = seen[len(txns.initial[key]):]
        if len(set(rest)) != len(rest) or seen[:len(txns.initial[key])] != txns.initial[key]:
            return True
        for name in txns.ops:
            own = [v for v in txns.writes[name][key] if v in rest]
            if own:
                start = rest.index(own[0])
                whole = txns.writes[name][key]
                if list(rest[start:start + len(whole)]) != whole[:len(rest) - start]:
                    return True
    return False


def check(history, result):
    level, certificate = result["model"], result["certificate"]
    via = result.get("via", level)
    txns = Transactions(history, result.get("order", "session"))
    if result["verdict"] == "consistent":
        if level not in WEAKER[via]:
            raise Wrong(f"{via} does not imply {level}")
        if certificate["kind"] != "order":
            raise Wrong(f"{certificate['kind']} does not prove consistency")
        return check_order(level, txns, certificate)
    if via not in WEAKER[level]:
        raise Wrong(f"a violation of {via} is not one of {level}")
    Refutation(via, txns).certificate(certificate)
