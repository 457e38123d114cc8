"""Many machines: a real Ray cluster of local processes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import consistory

pytest.importorskip("ray")
pytest.importorskip("pyarrow")

from consistory import units  # noqa: E402


def make_file(path, count):
    """Writes named histories as JSON lines."""
    with open(path, "w", encoding="utf-8") as file:
        for seed, history in enumerate(
            consistory.generate("pso", count=count, operations=10, sessions=3, variables=3)
        ):
            for operation in history.operations:
                file.write(json.dumps({"history": str(seed), **operation}) + "\n")


def wanted(path):
    """Returns the verdicts computed without a cluster."""
    return [
        (report.index, report.digest, verdict.model, verdict.verdict)
        for report in consistory.check_many(path, ["sc", "tso"])
        for verdict in report
    ]


def found(table):
    rows = table.select(["index", "digest", "model", "verdict"]).to_pylist()
    return [tuple(row.values()) for row in rows]


def test_files_are_cut_where_a_history_ends(tmp_path):
    path = tmp_path / "all.jsonl"
    make_file(path, 200)
    whole = [(h.index, h.digest) for h in consistory.read(path)]
    for size in (1, 1000, 20_000, 10**9):
        pieces = consistory._native.split_jsonl(path, size)
        assert pieces[0][0] == 0 and pieces[-1][1] == path.stat().st_size
        assert all(a[1] == b[0] for a, b in zip(pieces, pieces[1:]))
        data = path.read_bytes()
        cut = [
            (first + h.index, h.digest)
            for start, end, first, _ in pieces
            for h in consistory._native.read_bytes(data[start:end], "piece", "jsonl")
        ]
        assert cut == whole
        assert all(data[:start].count(b"\n") == lines for start, _, _, lines in pieces)
        # A remote file is read in blocks, and is cut at the same positions.
        for block in (7, 1 << 20):
            cutter = consistory._native.LineCutter(size)
            for at in range(0, len(data), block):
                cutter.feed(data[at : at + block])
            assert cutter.finish() == pieces
    # Only a field of the line's own object names the history.
    tricky = tmp_path / "tricky.jsonl"
    with open(tricky, "w", encoding="utf-8") as file:
        for name in ("a", "b\\\"c", "history"):
            for op, value in (("write", 1), ("read", 1), ("read", 1)):
                line = {"session": "history", "op": op, "key": "history", "value": value}
                file.write(json.dumps({**line, "history": name}) + "\n")
            file.write(json.dumps({"final": {"history": 1}, "history": name}) + "\n")
    assert [first for _, _, first, _ in consistory._native.split_jsonl(tricky, 1)] == [0, 1, 2]
    assert len(consistory.read(tricky)) == 3
    nameless = tmp_path / "one.jsonl"
    nameless.write_text('{"session":0,"op":"write","key":"x","value":1}\n' * 3)
    assert len(consistory._native.split_jsonl(nameless, 1)) == 1


def test_a_run_goes_on_where_it_was_and_knows_its_folder(tmp_path):
    path = tmp_path / "all.jsonl"
    make_file(path, 60)
    settings = {"models": ["sc", "tso"], "options": {}}
    run = units.Run(str(tmp_path / "out"), "check", settings, units.plan_inputs([path], piece=4000))
    assert len(run.units) > 5
    run.open()
    run.work(0)
    assert run.missing() == list(range(1, len(run.units)))
    with pytest.raises(units.RunError, match="have no result"):
        run.finish()
    before = os.stat(run.part(0)).st_mtime_ns
    for number in range(len(run.units)):
        run.work(number)
    assert os.stat(run.part(0)).st_mtime_ns == before, "a unit with a result is not run again"
    summary = run.finish()
    assert summary["histories"] == 60 and summary["errors"] == 0
    assert found(run.table()) == wanted(path)
    other = units.Run(run.out, "check", {**settings, "models": ["cc"]}, run.units)
    with pytest.raises(units.RunError, match="another run"):
        other.open()
    os.replace(run.part(1), run.part(0))
    with pytest.raises(units.RunError):
        run.finish()


def judged(planned, models=("sc",)):
    """Runs units, and returns the verdicts on each history."""
    rows = []
    for unit in planned:
        rows += units.run_unit(unit, {"models": list(models)}).to_pylist()
    return rows


def test_large_tables_are_cut_where_a_history_ends(tmp_path):
    import pyarrow
    import pyarrow.parquet

    from consistory.tables import table_of_histories

    made = list(consistory.generate("pso", count=40, operations=9, sessions=2, variables=2))
    table = table_of_histories(made)
    names = table.column("history")
    kinds = [
        names,
        names.cast(pyarrow.int64()),
        names.dictionary_encode(),
        pyarrow.array([None if name in ("0", "39") else name for name in names.to_pylist()]),
    ]
    path = tmp_path / "all.parquet"
    for column in kinds:
        same = table.drop(["history"]).append_column("history", column)
        whole = [(at, h.digest) for at, h in enumerate(consistory.from_table(same))]
        assert len(whole) == 40
        for rows_per_group in (5, 9, 100):
            pyarrow.parquet.write_table(same, path, row_group_size=rows_per_group)
            for rows in (9, 20):
                cut = units._cut_rows(str(path), rows)
                assert cut[0][0] == 0 and cut[-1][1] == same.num_rows
                assert all(a[1] == b[0] and a[2] < b[2] for a, b in zip(cut, cut[1:]))
                assert len(cut) >= (40 if rows <= 9 else 1)
                found = [
                    (first + h.index, h.digest)
                    for start, end, first in cut
                    for h in units._row_histories({"file": str(path), "start": start, "end": end})
                ]
                assert found == whole, (rows_per_group, rows)
    planned = units.plan_inputs([path], piece=100)
    assert len(planned) > 10 and {unit["kind"] for unit in planned} == {"rows"}
    assert [(row["index"], row["digest"]) for row in judged(planned)] == whole
    # A table of one history is not cut, and a table that cannot be read gives one error.
    pyarrow.parquet.write_table(table.slice(0, 9).drop(["history"]), path)
    assert len(units.plan_inputs([path], piece=100)) == 1
    path.write_bytes(b"PAR1" + b"no table" * 100)
    [row] = judged(units.plan_inputs([path], piece=100))
    assert row["verdict"] is None and "all.parquet" in row["error"]


def test_remote_lines_are_cut_too_and_errors_have_their_lines(tmp_path):
    path = tmp_path / "all.jsonl"
    make_file(path, 50)
    wanted_rows = [(row["index"], row["digest"], row["verdict"]) for row in judged(units.plan_inputs([path]))]
    planned = units.plan_inputs([f"file://{path}"], piece=3000)
    assert len(planned) > 5 and {unit["kind"] for unit in planned} == {"range"}
    assert [(row["index"], row["digest"], row["verdict"]) for row in judged(planned)] == wanted_rows
    lines = path.read_text().splitlines()
    lines[333] = lines[333].replace('"op": ', '"opp": ')
    path.write_text("\n".join(lines) + "\n")
    rows = judged(units.plan_inputs([path], piece=3000))
    [wrong] = [row["error"] for row in rows if row["error"]]
    assert "all.jsonl:334:" in wrong, wrong


def test_a_run_does_not_go_on_with_other_inputs_or_models(tmp_path):
    path, model = tmp_path / "a.hist", tmp_path / "own.cat"
    path.write_text("t0: w(x,1)")
    model.write_text('"Per-key order" acyclic po & loc | wr as CyclicPerKey')

    def made():
        settings = {"models": [str(model)], "options": {}}
        return units.Run(str(tmp_path / "out"), "check", settings, units.plan_inputs([path]))

    made().open()
    made().open()
    model.write_text('"Something else" acyclic po | wr as CyclicPerKey')
    with pytest.raises(units.RunError, match="another run, or its inputs have changed"):
        made().open()
    model.write_text('"Per-key order" acyclic po & loc | wr as CyclicPerKey')
    made().open()
    path.write_text("t0: w(x,1) r(x,1)")
    with pytest.raises(units.RunError, match="another run, or its inputs have changed"):
        made().open()
    blocked = tmp_path / "file"
    blocked.write_text("")
    settings = {"models": ["sc"], "options": {}}
    with pytest.raises(units.RunError, match="cannot write to"):
        units.Run(str(blocked / "out"), "check", settings, units.plan_inputs([path])).open()


def test_sums_count_every_history_once(tmp_path):
    (tmp_path / "a.hist").write_text("--- a\nt0: w(x,1)\n--- b\nt0: enqueue(1) => null @1..2\n--- c\nt0: w(y,1)")
    (tmp_path / "b.hist").write_text("t0: nonsense(")
    settings = {"models": [], "options": {}}
    run = units.Run(str(tmp_path / "out"), "check", settings, units.plan_inputs([tmp_path]))
    run.open()
    for number in range(len(run.units)):
        run.work(number)
    summary = run.finish()
    assert (summary["histories"], summary["errors"]) == (3, 1)
    assert summary["rows"] == run.table().num_rows
    # Each kind of history has its own models.
    assert summary["counts"]["sc"] == {"consistent": 2}
    assert summary["counts"]["linearizability"] == {"consistent": 1}
    pathlib.Path(run.part(0)).write_bytes(b"cut off")
    with pytest.raises(units.RunError, match="cannot be read"):
        run.finish()


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path):
    from consistory import ray as cluster

    (tmp_path / "a.hist").write_text("t0: w(x,1)")
    for address in ("127.0.0.1:1", "ray://localhost:1", "127.0.0.1:99999"):
        with pytest.raises(units.RunError, match="cannot join the cluster at"):
            cluster.check(tmp_path, "sc", out=str(tmp_path / "out"), address=address)
    with pytest.raises(units.RunError, match="runs on one core"):
        cluster.check(tmp_path, "sc", out=str(tmp_path / "out"), jobs=4)
    with pytest.raises(units.RunError, match="nothing to do"):
        cluster.campaign("sc", generator={"memory": "sc"}, count=0, out=str(tmp_path / "out"))


def test_errors_are_rows_and_do_not_end_a_run(tmp_path):
    (tmp_path / "a.hist").write_text("t0: w(x,1)")
    (tmp_path / "b.hist").write_text("t0: nonsense(")
    settings = {"models": ["sc"], "options": {}, "certificates": True, "shrink": True}
    run = units.Run(str(tmp_path / "out"), "check", settings, units.plan_inputs([tmp_path]))
    run.open()
    for number in range(len(run.units)):
        run.work(number)
    assert run.finish()["errors"] == 1
    rows = run.table().to_pylist()
    assert rows[0]["verdict"] == "consistent" and json.loads(rows[0]["certificate"])["kind"]
    assert rows[1]["error"] and rows[1]["verdict"] is None


def test_an_input_that_cannot_be_read_costs_no_other(tmp_path):
    import pyarrow.parquet

    from consistory.tables import table_of_histories

    good = consistory.History.parse("t0: w(x,1)\nt1: r(x,1)")
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "c"):
        pyarrow.parquet.write_table(table_of_histories([good]), folder / f"{name}.parquet")
    (folder / "b.parquet").write_bytes(b"not a table")
    (folder / "d.hist").write_text(str(good))
    (folder / "_SUCCESS").write_text("")
    for place in (str(folder), f"file://{folder}"):
        planned = units.plan_inputs([place])
        assert len(planned) == 1
        rows = units.run_unit(planned[0], {"models": ["sc"]}).to_pylist()
        found = {os.path.basename(row["source"]): row["verdict"] for row in rows}
        consistent = dict.fromkeys(("a.parquet", "c.parquet", "d.hist"), "consistent")
        assert found == {**consistent, "b.parquet": None}, rows
    inputs = [good, folder / "b.parquet", folder / "a.parquet", tmp_path / "missing.parquet", good]
    judged = list(consistory.check_many(inputs, "sc", errors="yield"))
    kinds = [type(item).__name__ for item in judged]
    assert kinds == ["Report", "ReadError", "Report", "ReadError", "Report"]
    assert "b.parquet" in judged[1].source and "Parquet" in str(judged[1])
    with pytest.raises(consistory.ReadError, match="b.parquet"):
        list(consistory.check_many(inputs, "sc"))
    (folder / "b.parquet").unlink()
    assert [h.digest for h in consistory.read(folder)] == [good.digest] * 3
    assert len(list(consistory.check_many(folder, "sc"))) == 3


def patiently(start):
    """Starts a node; Ray gives it half a minute, which a busy machine may exceed."""
    for attempt in range(4):
        try:
            return start()
        except Exception:
            if attempt == 3:
                raise


class Nodes:
    """A cluster of three node processes on this machine, with one core each."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 10**8}
        self.cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.address = self.cluster.address
        self.nodes = [
            patiently(lambda: self.cluster.add_node(num_cpus=1, object_store_memory=10**8))
            for _ in range(2)
        ]

    def kill(self, node):
        """Kills a node's raylet and its workers with SIGKILL."""
        for info in node.all_processes.get("raylet", []):
            children = subprocess.run(
                ["ps", "--ppid", str(info.process.pid), "-o", "pid="], capture_output=True, text=True
            ).stdout.split()
            os.kill(info.process.pid, signal.SIGKILL)
            for child in children:
                try:
                    os.kill(int(child), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def close(self):
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes():
    started = Nodes()
    yield started
    import ray

    ray.shutdown()
    started.close()


def test_every_history_has_one_verdict_though_nodes_are_killed(tmp_path, nodes):
    import threading

    path = tmp_path / "all.jsonl"
    make_file(path, 1500)
    killed = []
    lock = threading.Lock()

    def progress(done, total):
        with lock:
            for at, share in enumerate((0.2, 0.5)):
                if len(killed) == at and done >= share * total:
                    nodes.kill(nodes.nodes[at])
                    killed.append(at)

    from consistory import ray as cluster

    results = cluster.check(
        path,
        ["sc", "tso"],
        out=str(tmp_path / "out"),
        address=nodes.address,
        piece=20_000,
        progress=progress,
    )
    assert killed == [0, 1], "two nodes were killed"
    assert found(results.table()) == wanted(path)
    assert results.summary["histories"] == 1500
    # A second call finds all results.
    again = cluster.check(path, ["sc", "tso"], out=str(tmp_path / "out"), piece=20_000)
    assert again.summary == results.summary


def test_datasets_and_uris_and_parquet(tmp_path, nodes):
    import pyarrow.parquet
    import ray

    from consistory import ray as cluster
    from consistory.tables import table_of_histories

    cluster.start(nodes.address)
    made = list(consistory.generate("pso", count=40, operations=8, sessions=2, variables=2))
    verdicts = [h.check("sc")[0].verdict for h in made]
    dataset = ray.data.from_items([{"text": str(history)} for history in made])
    rows = cluster.check(dataset, "sc").take_all()
    assert sorted(row["verdict"] for row in rows) == sorted(verdicts)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.hist").write_text(str(made[0]))
    (tmp_path / "in" / "1.hist").write_text("t0: nonsense(")
    files = ray.data.read_binary_files(str(tmp_path / "in"), include_paths=True)
    first, second = sorted(cluster.check(files, "sc").take_all(), key=lambda row: row["source"])
    assert first["verdict"] == verdicts[0] and first["source"].endswith("0.hist")
    assert "nonsense" in second["error"] and second["source"].endswith("1.hist")
    for file in (tmp_path / "in").iterdir():
        file.unlink()
    pyarrow.parquet.write_table(table_of_histories(made), tmp_path / "in" / "a.parquet")
    results = cluster.check(tmp_path / "in", "sc", out=str(tmp_path / "one"))
    assert results.table().column("verdict").to_pylist() == verdicts
    (tmp_path / "in" / "a.parquet").unlink()
    for number, history in enumerate(made):
        history.write(tmp_path / "in" / f"{number:03}.hist")
    results = cluster.check(f"file://{tmp_path}/in", "sc", out=f"file://{tmp_path}/two")
    assert results.to_frame()["verdict"].tolist() == verdicts
    assert results.dataset().count() == 40


def test_sweeps(tmp_path, nodes):
    from consistory import ray as cluster

    cluster.start(nodes.address)
    pairs = cluster.contrast(["sc", "tso", "pso"], out=str(tmp_path / "pairs"), bound=4)
    rows = pairs.table().to_pylist()
    assert len(rows) == 6 and {"separated", "implied"} == {row["answer"] for row in rows}
    generator = {"memory": "pso", "operations": 6, "sessions": 2, "variables": 2}
    campaign = cluster.campaign(
        "sc,tso", generator=generator, count=100, batch=30, out=str(tmp_path / "campaign")
    )
    table = campaign.table()
    assert table.column("index").to_pylist() == [seed for seed in range(100) for _ in range(2)]
    compared = cluster.fuzz(
        ["sc", "tso"], generator=generator, count=40, batch=20, out=str(tmp_path / "fuzz")
    )
    assert compared.summary["counts"]["sc"] == {"compared": 40, "undecided": 0, "different": 0}


def test_the_command_resumes_after_its_driver_was_killed(tmp_path):
    path = tmp_path / "all.jsonl"
    make_file(path, 600)
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "consistory.cluster", "check", str(path), "--model", "sc,tso",
        "--out", str(out), "--piece", "16000B",
    ]
    parts = out / "parts"
    for _ in range(4):  # Ray may not start in time on a busy machine
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while first.poll() is None and len(list(parts.glob("*.parquet"))) < 3:
            time.sleep(0.05)
        first.kill()
        first.wait()
        if list(parts.glob("*.parquet")):
            break
    kept = {p.name: p.stat().st_mtime_ns for p in parts.glob("*.parquet")}
    assert kept
    second = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, timeout=400)
    assert second.returncode == 1, second.stderr
    summary = json.loads(second.stdout)
    assert summary["histories"] == 600
    assert all((parts / name).stat().st_mtime_ns == at for name, at in kept.items())
    rows = []
    import pyarrow.parquet

    for part in sorted(parts.glob("*.parquet")):
        rows += found(pyarrow.parquet.read_table(part))
    assert rows == wanted(path)
    missing = subprocess.run(
        [*command[:4], str(tmp_path / "missing"), *command[5:-4], "--out", str(tmp_path / "no")],
        capture_output=True, text=True,
    )
    assert missing.returncode == 2 and "no such file" in missing.stderr
    assert pathlib.Path(out / "summary.json").exists()
