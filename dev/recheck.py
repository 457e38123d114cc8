#!/usr/bin/env python3
"""Checks certificates of registers and transactions again, directly by the definitions.

    consistory check HISTORIES --model cc,ccv,cm,sc,tso --format json > verdicts.jsonl
    dev/recheck.py verdicts.jsonl

    consistory check HISTORIES --model rc,ra,tcc,pc,psi,si,ser --format json > levels.jsonl
    dev/recheck.py levels.jsonl

This program shares only the text of the definitions (docs/models.md) with Consistory: it has
its own reader of `.hist` and JSON lines (`recheck_reading.py`), evaluates relations as plain sets of pairs,
and is meant to be read in ten minutes: the models of registers are here, from `Facts` on, and isolation
levels in `recheck_levels.py`. It is simple and slow: histories of more than 400 operations are skipped.

It checks `order` (CC, CCv, SC), `orders` (CM) and `witness` (TSO) of consistent histories;
`cycle`, `cases` and `thin-air-read` of violations of CC, CCv, CM, SC and TSO. Every edge of a cycle
must follow from the rules of its model. Verdicts of other models are counted as skipped.

Exit code: 0 if all checked verdicts are correct, 1 if one is wrong, 2 if an input cannot
be read or nothing was checked.
"""

import json
import sys

import recheck_levels
from recheck_levels import LEVELS, Wrong
from recheck_reading import Skip, read_histories

MAX_OPERATIONS = 400
# A violation of the first model is one of the second. Each line is a theorem of docs/models.md.
IMPLIES = {"cc": {"cc", "ccv", "cm", "sc"}, "ccv": {"ccv", "sc"}, "cm": {"cm", "sc"},
           "sc": {"sc"}, "tso": {"tso", "sc"}}

# Relations, as sets of pairs of names ------------------------------------------------------------

def closure(pairs):
    after = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)
    closed = set()
    for start in after:
        stack, seen = list(after[start]), set()
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(after.get(node, ()))
        closed |= {(start, node) for node in seen}
    return closed


def is_acyclic(pairs):
    return all(a != b for a, b in closure(pairs))


class Facts:
    """A history with a choice of the source of each read."""

    def __init__(self, history, choice):
        self.history = history
        certain = [op for op in history.ops if op.status == "ok"]
        maybe = [op for op in history.ops if op.status == "unknown" and op.kind in "wu"]
        writers = history.init + [op for op in certain + maybe if op.kind in "wu"]
        self.by_name = {op.name: op for op in history.init + history.ops}
        # Candidates of each read; a read of unknown status is ignored.
        self.candidates = {}
        for op in certain:
            if op.kind in "ru":
                self.candidates[op.name] = {w.name for w in writers if w.key == op.key
                                            and w.write == op.read and type(w.write) is type(op.read)
                                            and w.name != op.name}
        self.source = {}
        for read, sources in self.candidates.items():
            chosen = choice.get(read)
            if chosen is None and len(sources) == 1:
                chosen = next(iter(sources))
            if chosen is not None:
                if chosen not in sources:
                    raise Wrong(f"{read} cannot read from {chosen}")
                self.source[read] = chosen
        counting = {op.name for op in certain} | {op.name for op in history.init}
        counting |= {w for w in self.source.values()}
        self.ops = [op for op in history.init + history.ops if op.name in counting]
        self.names = counting
        self.wr = {(w, r) for r, w in self.source.items() if r in counting}
        self.po = {(a.name, b.name) for a in self.ops for b in self.ops
                   if (a.session is None and b.session is not None)
                   or (a.session is not None and a.session == b.session and a.index < b.index)}
        self.writes = {op.name: op.key for op in self.ops if op.kind in "wu"}
        self.reads = {op.name: op.key for op in self.ops if op.kind in "ru"}

    def complete(self):
        missing = [read for read in self.candidates if read not in self.source]
        if missing:
            raise Wrong(f"the source of {missing[0]} is unknown")

    def rw(self, order):
        return {(r, b) for w, r in self.wr for a, b in order
                if a == w and b != r and self.writes.get(b) == self.writes[w]}

    def poloc(self):
        key = lambda n: self.by_name[n].key
        return {(a, b) for a, b in self.po if key(a) is not None and key(a) == key(b)}

    def ppo(self):
        kind = {op.name: op.kind for op in self.ops}
        def kept(a, b):
            if kind[a] != "w" or kind[b] != "r" or self.by_name[a].session is None:
                return True
            one, two = self.by_name[a], self.by_name[b]
            return any(op.kind in "fu" and op.session == one.session
                       and one.index < op.index < two.index for op in self.ops)
        return {(a, b) for a, b in self.po if kept(a, b)}

    def wre(self):
        session = lambda n: self.by_name[n].session
        return {(a, b) for a, b in self.wr if session(a) is None or session(a) != session(b)}


# Consistent --------------------------------------------------------------------------------------

def positions(facts, order, names):
    if len(set(order)) != len(order) or set(order) != {n for n in names if not n.startswith("init:")}:
        raise Wrong("the order does not contain every operation exactly once")
    return {name: i for i, name in enumerate(order)}


def extends(at, pairs, what):
    for a, b in pairs:
        if not a.startswith("init:") and at[a] >= at[b]:
            raise Wrong(f"{a} must come before {b} ({what})")


def replay(facts, order, reads):
    holds = {op.key: op.name for op in facts.history.init}
    for name in order:
        if name in reads and holds[facts.reads[name]] != facts.source[name]:
            raise Wrong(f"{name} reads from {facts.source[name]}, and {holds[facts.reads[name]]} is last")
        if name in facts.writes:
            holds[facts.writes[name]] = name
    return holds


def check_consistent(model, history, certificate):
    facts = Facts(history, certificate.get("wr", {}))
    facts.complete()
    kind = certificate["kind"]
    if history.final and model != "sc":
        raise Skip("final values")
    if kind == "order" and model in ("cc", "ccv", "sc"):
        at = positions(facts, certificate["order"], facts.names)
        extends(at, facts.po, "po")
        extends(at, facts.wr, "wr")
        if model == "sc":
            holds = replay(facts, certificate["order"], facts.reads)
            for key, last in history.final.items():
                if facts.by_name[holds[key]].write != last:
                    raise Wrong(f"{key} does not end with {last}")
            return
        co = closure(facts.po | facts.wr)
        if any((b, a) in co for a, b in facts.rw(co)):
            raise Wrong("co ; rw[co] has a cycle")
        if model == "ccv":
            for read, source in facts.source.items():
                past = [w for w, key in facts.writes.items() if key == facts.reads[read] and (w, read) in co]
                rank = lambda w: at.get(w, -1)
                if max(past, key=rank) != source:
                    raise Wrong(f"{read} does not take the last write of its causal past")
    elif kind == "orders" and model == "cm":
        co = closure(facts.po | facts.wr)
        for session in history.sessions:
            own = [op.name for op in facts.ops if op.session == session]
            if not own:
                continue
            order = certificate["orders"].get(session)
            if order is None:
                raise Wrong(f"session {session} has no order")
            past = {a for a, b in co if b == own[-1]} | {own[-1]}
            at = positions(facts, order, past)
            extends(at, {(a, b) for a, b in co if a in past and b in past}, "co")
            replay(facts, order, {read for read in facts.reads if facts.by_name[read].session == session})
    elif kind == "witness" and model == "tso":
        ww = set()
        for key in {op.key for op in history.init}:
            order = certificate["ww"].get(key, [f"init:{key}"])
            writers = {w for w, k in facts.writes.items() if k == key}
            if len(order) != len(set(order)) or set(order) != writers or order[0] != f"init:{key}":
                raise Wrong(f"the store order of {key} does not contain every write exactly once")
            ww |= {(a, b) for i, a in enumerate(order) for b in order[i + 1:]}
        rest = facts.wre() | ww | facts.rw(ww)
        for local in (facts.ppo(), facts.poloc()):
            if not is_acyclic(local | rest):
                raise Wrong("the store order leads to a cycle")
    else:
        raise Skip(f"{kind} of {model}")


# Violations --------------------------------------------------------------------------------------

class Rules:
    """The edges that a model's rules allow, given earlier conclusions."""

    def __init__(self, model, facts, assumed, observer=None):
        self.model, self.facts, self.assumed, self.observer = model, facts, assumed, observer
        self.co, self.proved = closure(facts.po | facts.wr), set()

    def path(self, edges, start, end, local):
        """Checks that edges lead from one operation to another, each following from the rules."""
        here = start
        for edge in edges:
            if edge["from"] != here:
                raise Wrong(f"the premises break off at {here}")
            self.edge(edge, local)
            here = edge["to"]
        if here != end:
            raise Wrong(f"the premises lead to {here}, not to {end}")

    def edge(self, edge, local):
        a, b, relation = edge["from"], edge["to"], edge["relation"]
        because = edge.get("because", [])
        facts = self.facts
        basic = {"po": facts.po, "wr": facts.wr, "ppo": facts.ppo, "poloc": facts.poloc, "wre": facts.wre}
        if relation in basic:
            pairs = basic[relation]
            if relation not in local:
                raise Wrong(f"{relation} does not belong to this part of {self.model}")
            if (a, b) not in (pairs() if callable(pairs) else pairs):
                raise Wrong(f"{a} {relation} {b} does not hold")
            return
        derived = {"cc": (), "ccv": (), "cm": ("hb",), "sc": ("ww", "rw", "cf"), "tso": ("ww", "rw", "cf")}
        if relation not in derived[self.model] and not edge.get("last"):
            raise Wrong(f"{relation} does not belong to {self.model}")
        if not because and (a, b, relation) in self.proved:
            return  # A derivation is written where it is first used.
        if relation == "ww":
            self.same_key(a, b)
            if not because:
                initial = a.startswith("init:")
                in_po = self.model == "tso" and (a, b) in facts.po
                if not (initial or in_po or (a, b) in self.assumed):
                    raise Wrong(f"{a} ww {b} has no reason")
                return
            self.any_part(because, a, b)
        elif relation == "rw":
            # a reads from w, and w comes before b, so a comes before b.
            source = facts.source.get(a)
            if not because:
                raise Wrong(f"{a} rw {b} has no premises")
            first, rest = because[0], because[1:]
            if (first["from"], first["to"], first["relation"]) != (source, a, "wr") or source is None:
                raise Wrong(f"{a} rw {b} starts with what {a} reads from")
            self.same_key(source, b)
            if a == b:
                raise Wrong(f"{a} rw {b} relates an operation to itself")
            self.any_part(rest, source, b)
        elif relation in ("cf", "hb"):
            # a comes before r, which reads from b, so a comes before b.
            if not because:
                raise Wrong(f"{a} {relation} {b} has no premises")
            rest, last = because[:-1], because[-1]
            read = last["to"]
            if last["relation"] != "wr" or facts.source.get(read) != b or last["from"] != b:
                raise Wrong(f"{a} {relation} {b} ends with a read of {b}")
            self.same_key(a, b)
            if a == b:
                raise Wrong(f"{a} {relation} {b} relates an operation to itself")
            if relation == "hb":
                seen = self.observer
                if seen is None or not (read == seen or (read, seen) in facts.po and
                                        facts.by_name[read].session == facts.by_name[seen].session):
                    raise Wrong(f"{read} is not a read of the observer's session")
            self.any_part(rest, a, read)
        else:
            raise Skip(f"the relation {relation}")
        self.proved.add((a, b, relation))

    def any_part(self, edges, start, end):
        """Checks premises in any of the model's parts."""
        self.in_one_part(lambda local: self.path(edges, start, end, local))

    def in_one_part(self, check):
        """Runs a check with the basic relations of the model; TSO has two sets of them, one of which must succeed."""
        parts = ({"ppo", "wre"}, {"poloc", "wre"}) if self.model == "tso" else ({"po", "wr"},)
        reasons = []
        for local in parts:
            try:
                return check(local)
            except Wrong as wrong:
                reasons.append(str(wrong))
        raise Wrong("; ".join(reasons))

    def same_key(self, a, b):
        writes = self.facts.writes
        if a not in writes or writes.get(a) != writes.get(b):
            raise Wrong(f"{a} and {b} do not write one key")


def check_violation(model, history, certificate, choice, assumed):
    kind = certificate["kind"]
    facts = Facts(history, choice)
    if kind == "thin-air-read":
        if facts.candidates.get(certificate["read"]) != set():
            raise Wrong(f"{certificate['read']} reads a value that was written")
    elif kind == "cases" and "read" in certificate:
        read, sources = certificate["read"], certificate["sources"]
        if set(sources) != facts.candidates.get(read, set()) or len(sources) != len(certificate["branches"]):
            raise Wrong(f"the cases of {read} are not all its candidates")
        for source, branch in zip(sources, certificate["branches"]):
            check_violation(model, history, branch, {**choice, read: source}, assumed)
    elif kind == "cases" and "split" in certificate and model in ("sc", "tso"):
        a, b = certificate["split"]
        Rules(model, facts, assumed).same_key(a, b)
        if len(certificate["branches"]) != 2:
            raise Wrong("a split has two branches")
        for pair, branch in zip(((a, b), (b, a)), certificate["branches"]):
            check_violation(model, history, branch, choice, assumed | {pair})
    elif kind == "cycle":
        check_cycle(model, facts, certificate, assumed)
    else:
        raise Skip(f"{kind} of {model}")


def check_cycle(model, facts, certificate, assumed):
    edges = certificate["edges"]
    if not edges or any(e["to"] != f["from"] for e, f in zip(edges, edges[1:] + edges[:1])):
        raise Wrong("the edges are not a cycle")
    relations = [edge["relation"] for edge in edges]
    rules = Rules(model, facts, assumed, certificate.get("observer"))
    if relations in (["po", "wr"], ["wr", "po"]):
        return [rules.edge(edge, {"po", "wr"}) for edge in edges]      # FutureRead: every model
    if model == "tso":
        return rules.in_one_part(lambda local: [rules.edge(edge, local) for edge in edges])
    extra = [r for r in relations if r not in ("po", "wr")]
    # CC, and every model above it, forbids one rw[co] in a cycle; CCv any number of cf[co].
    allowed = extra in ([], ["rw"]) or model == "sc" or (model == "ccv" and set(extra) == {"cf"}) \
        or (model == "cm" and set(extra) == {"hb"})
    if not allowed:
        raise Wrong(f"{model} does not forbid a cycle of {', '.join(relations)}")
    causal = model in ("cc", "ccv") or extra in ([], ["rw"]) and model == "cm"
    for edge in edges:
        if causal and edge["relation"] in ("rw", "cf"):
            edge = dict(edge, last=True)
        rules.edge(edge, {"po", "wr"})
    if model == "cm" and extra and extra != ["rw"]:
        seen = certificate.get("observer")
        past = {a for a, b in rules.co if b == seen} | {seen}
        if any(edge["from"] not in past or edge["to"] not in past for edge in edges):
            raise Wrong("the cycle leaves the observer's causal past")


# The verdicts of a file --------------------------------------------------------------------------

def no_duplicates(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("a key occurs twice")
    return found


def check_result(history, result):
    model = result["model"]
    certificate = result.get("certificate")
    if result["verdict"] == "undecided" or certificate is None:
        raise Skip("undecided")
    if len(history.ops) > MAX_OPERATIONS:
        raise Skip("large histories")
    if model in LEVELS:
        return recheck_levels.check(history, result)
    history.registers_only()
    if result["verdict"] == "consistent":
        if "via" in result and result["via"] != model:
            raise Skip("consistent by another model")
        return check_consistent(model, history, certificate)
    by = result.get("via", model)
    if by not in IMPLIES:
        raise Skip(f"the model {by}")
    if model not in IMPLIES[by] and certificate["kind"] != "thin-air-read":
        raise Skip(f"{model} by way of {by}")
    if history.final and certificate["kind"] != "thin-air-read":
        raise Skip("final values")
    check_violation(by, history, certificate, {}, frozenset())


def main(paths):
    checked, wrong, skipped, unreadable, known = 0, 0, {}, 0, {}
    for path in paths:
        for line in sys.stdin if path == "-" else open(path, encoding="utf-8"):
            try:
                report = json.loads(line, object_pairs_hook=no_duplicates)
                source, index = report["source"], report["index"]
                if source not in known:
                    known = {source: read_histories(source)}
                history = known[source][index]
            except Wrong as reason:
                print(f"{path}: {reason}")
                wrong += 1
                continue
            except Skip as reason:
                skipped[str(reason)] = skipped.get(str(reason), 0) + 1
                continue
            except (OSError, ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
                print(f"{path}: cannot read a line or its history: {error!r}")
                unreadable += 1
                continue
            for result in report["results"]:
                try:
                    check_result(history, result)
                    checked += 1
                except Skip as reason:
                    skipped[str(reason)] = skipped.get(str(reason), 0) + 1
                except (Wrong, KeyError, IndexError, TypeError) as reason:
                    print(f"{source} [{index}] {result.get('model')}: rejected: {reason}")
                    wrong += 1
    print(f"{checked} accepted, {wrong} rejected, {sum(skipped.values())} skipped, {unreadable} unreadable")
    return 1 if wrong else 2 if unreadable or not checked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["-"]))
