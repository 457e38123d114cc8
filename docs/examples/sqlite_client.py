#!/usr/bin/env python3
"""A complete client: everything that `consistory test --command` may ask for, on a SQLite file.

    consistory test --command docs/examples/sqlite_client.py --workload list-append

The first argument is the file; the default is one in the run's folder, which is removed in the end.
"""
import json, os, sqlite3, sys

TABLES = """
create table if not exists registers(k text primary key, v integer);
create table if not exists lists(k text primary key, v text);
create table if not exists elements(v integer primary key);
create table if not exists queue(id integer primary key autoincrement, v integer);
"""
WRITE = "insert into registers values (?, ?) on conflict (k) do update set v = excluded.v"
APPEND = "insert into lists values (?, ?) on conflict (k) do update set v = v || ',' || excluded.v"


def value(db, sql, *args):
    row = db.execute(sql, args).fetchone()
    return row[0] if row else None


def step(db, workload, kind, key, argument):
    """Performs one step of a transaction and returns what it read."""
    if kind == "r" and workload == "list-append":
        text = value(db, "select v from lists where k = ?", key)
        return [int(item) for item in text.split(",")] if text else []
    if kind == "r":
        return value(db, "select v from registers where k = ?", key)
    if kind == "update":  # reads a register, then overwrites it
        old = value(db, "select v from registers where k = ?", key)
        db.execute(WRITE, (key, argument))
        return old
    db.execute(APPEND if kind == "append" else WRITE, (key, argument))
    return argument


def perform(db, workload, request):
    """Performs a request, inside a transaction, and returns the fields of the answer."""
    op, key = request["op"], request.get("key")
    if op == "txn":
        steps = [[kind, key, step(db, workload, kind, key, argument)]
                 for kind, key, argument in request["steps"]]
        return {"steps": steps}
    if op == "read":
        return {"value": value(db, "select v from registers where k = ?", key)}
    if op == "write":
        db.execute(WRITE, (key, request["value"]))
    elif op == "cas" and request["old"] is None:
        sql = "insert into registers values (?, ?) on conflict do nothing"
        return {"value": db.execute(sql, (key, request["new"])).rowcount == 1}
    elif op == "cas":
        sql = "update registers set v = ? where k = ? and v = ?"
        return {"value": db.execute(sql, (request["new"], key, request["old"])).rowcount == 1}
    elif op == "add":
        db.execute("insert into elements values (?)", (request["value"],))
    elif op == "members":
        return {"value": [row[0] for row in db.execute("select v from elements")]}
    elif op == "enqueue":
        db.execute("insert into queue(v) values (?)", (request["value"],))
    elif op == "dequeue":
        row = db.execute("select id, v from queue order by id limit 1").fetchone()
        if row:
            db.execute("delete from queue where id = ?", (row[0],))
        return {"value": row[1] if row else None}
    return {}


def main():
    init = json.loads(sys.stdin.readline())
    default = os.path.join(os.environ.get("CONSISTORY_FOLDER", "."), "example.db")
    file = sys.argv[1] if len(sys.argv) > 1 else default
    db = sqlite3.connect(file, timeout=0.5, isolation_level=None)
    db.executescript("pragma synchronous = off;" + TABLES)
    print(json.dumps({"type": "ok"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"id": request["id"]}
        try:
            db.execute("begin immediate")
            answer.update(perform(db, init["workload"], request))
            db.execute("commit")
            answer["type"] = "ok"
        except sqlite3.Error as error:  # SQLite has undone it, or will now
            if db.in_transaction:
                db.execute("rollback")
            answer.update(type="fail", error=str(error))
        print(json.dumps(answer), flush=True)


main()
