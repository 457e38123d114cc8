"""The package: reading, building and judging histories, and the attributes of verdicts."""

import concurrent.futures
import json
import pathlib
import pickle
import subprocess
import sys
import threading

import pytest

import consistory
from consistory import History

LOST = "t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)"
CORPUS = pathlib.Path(__file__).resolve().parents[2] / "corpus"


def test_a_verdict_says_what_is_wrong_and_why():
    report = History.parse(LOST).check("cc", "pso")
    assert [(v.model, v.verdict) for v in report] == [("cc", "violation"), ("pso", "consistent")]
    cc = report["CC"]
    assert cc.pattern == "WriteCOInitRead"
    assert "t1 read y=1" in cc.explanation and str(cc) == cc.explanation
    assert cc.certificate["kind"] == "cycle" and cc.certify()
    assert cc.draw().startswith("<svg")
    assert json.loads(cc.json())["verdict"] == "violation"
    assert report[-1].model == "pso" and report[-1].certificate["kind"] != "cycle"
    assert len(report.violations) == 1 and not report.is_consistent
    with pytest.raises(IndexError):
        report[2]
    with pytest.raises(consistory.ModelError) as unknown:
        report["sc"]
    assert "cc, pso" in unknown.value.hint


def test_without_a_model_the_strongest_satisfied_ones_are_reported():
    report = History.parse("t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)").check()
    assert "tso" in report.strongest and report["sc"].is_violation


def test_shrinking_leaves_the_smallest_part():
    history = History.parse("t0: w(x,1) w(y,1) w(z,5)\nt1: r(y,1) r(x,0) r(z,0)\nt2: w(a,1)")
    small = history.check("cc")[0].shrink()
    assert small.is_violation and small.is_minimal and len(small.history) == 4
    assert history.violation("cc").is_violation
    assert History.parse("t0: w(x,1)").violation("sc") is None


@pytest.mark.parametrize(
    "build",
    [
        lambda ops: History.from_operations(ops),
        lambda ops: History.from_table({k: [op.get(k) for op in ops] for k in _fields(ops)}),
        lambda ops: History.from_pandas(pytest.importorskip("pandas").DataFrame(ops)),
        lambda ops: History.from_arrow(_arrow(ops)),
        lambda ops: History.parse("\n".join(map(json.dumps, ops))),
    ],
)
@pytest.mark.parametrize("kind", ["registers", "transactions", "calls", "lists", "rmw"])
def test_every_way_to_build_a_history_gives_the_same(build, kind):
    """A missing return is None in a table, so calls have all their returns here."""
    operations = {
        "registers": History.parse(LOST).operations,
        "rmw": [
            {"session": 1, "op": "rmw", "key": "x", "read": 0, "value": 2},
            {"session": 1, "op": "fence"},
            {"session": 2, "op": "write", "key": "x", "value": 3, "status": "unknown"},
            {"session": 2, "op": "read", "key": "y", "value": 0, "start": 3, "end": 9},
        ],
        "transactions": consistory.generate(transactions="si", operations=60).operations,
        "lists": consistory.generate(transactions="si", lists=True, operations=40).operations,
        "calls": consistory.generate(object="queue", operations=40, pending=0.2).operations,
    }[kind]
    for call in operations:
        if "call" in call and "end" in call:
            call.setdefault("returns", None)
    wanted = History.parse("\n".join(map(json.dumps, operations)))
    built = build(operations)
    assert built.to_text() == wanted.to_text() and built == wanted and hash(built) == hash(wanted)


def _arrow(operations):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {k: [op.get(k) for op in operations] for k in _fields(operations)}
    try:
        return pyarrow.table(columns)
    except pyarrow.ArrowInvalid:
        pytest.skip("a column of Arrow holds lists or integers, not both")


def _fields(operations):
    names = {}
    for operation in operations:
        names.update(dict.fromkeys(operation))
    return names


def test_tables_of_random_histories_agree_with_json_lines(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    from consistory.tables import table_of_histories

    made = [consistory.generate("tso", operations=30, variables=3, seed=seed, rmws=0.1) for seed in range(50)]
    table = table_of_histories(made)
    assert [h.digest for h in consistory.from_table(table)] == [h.digest for h in made]
    assert [h.digest for h in consistory.from_table(table.to_pandas())] == [h.digest for h in made]
    pyarrow.parquet.write_table(table, tmp_path / "made.parquet", row_group_size=100)
    assert [h.name for h in consistory.read(tmp_path / "made.parquet")] == [str(i) for i in range(50)]
    checked = list(consistory.check_many([tmp_path / "made.parquet"], "sc"))
    assert [r[0].verdict for r in checked] == [h.check("sc")[0].verdict for h in made]


def test_initial_and_final_values():
    history = History.from_operations(
        [{"session": 0, "op": "read", "key": "x", "value": 5}], init={"x": 5}, final={"x": 5}, name="n"
    )
    assert history.name == "n" and "init: x=5" in str(history) and "final: x=5" in str(history)
    table = History.from_table(
        {"session": [0], "op": ["read"], "key": ["x"], "value": [5]}, init={"x": 5}, final={"x": 5}
    )
    assert table.check("sc")[0].is_consistent


def test_files_are_read_in_every_format(tmp_path):
    histories = consistory.read(CORPUS / "histories")
    assert len(histories) > 20
    made = consistory.generate("sc", operations=12, sessions=2)
    for name in ("a.hist", "a.jsonl", "a.axe", "a.plume"):
        made.write(tmp_path / name)
        [back] = consistory.read(tmp_path / name)
        assert len(back) == 12, name
    assert consistory.read(tmp_path / "a.hist")[0] == made
    jepsen = tmp_path / "jepsen.edn"
    jepsen.write_text(
        "{:type :invoke, :f :write, :value 1, :process 0, :time 1, :index 0}\n"
        "{:type :ok, :f :write, :value 1, :process 0, :time 2, :index 1}\n"
        "{:type :invoke, :f :read, :value nil, :process 1, :time 3, :index 2}\n"
        "{:type :ok, :f :read, :value 2, :process 1, :time 4, :index 3}\n"
    )
    [recorded] = consistory.read(jepsen)
    assert recorded.check("linearizability", object="register")[0].is_violation


def test_errors_have_a_place_and_a_hint(tmp_path):
    with pytest.raises(consistory.ReadError) as error:
        History.parse("t0: w(x,1) wrote(")
    assert error.value.line == 1 and error.value.column and "-->" in str(error.value)
    assert isinstance(error.value, ValueError)
    with pytest.raises(consistory.ReadError) as error:
        History.from_operations([{"session": 0, "op": "reed", "key": "x", "value": 1}])
    assert "read" in error.value.hint and error.value.source == "operations"
    with pytest.raises(consistory.ReadError) as error:
        History.from_table({"session": [0], "op": ["reed"], "key": ["x"], "value": [1]})
    assert "row 0" in str(error.value)
    with pytest.raises(consistory.ReadError, match="unknown column 'vale'"):
        History.from_table({"session": [0], "op": ["read"], "key": ["x"], "vale": [1]})
    with pytest.raises(consistory.ReadError, match="not integers|not an integer"):
        History.from_table({"session": [0], "op": ["read"], "key": ["x"], "value": [1.5]})
    with pytest.raises(consistory.ModelError) as error:
        History.parse(LOST).check("scc")
    assert "sc" in error.value.hint
    with pytest.raises(consistory.DoesNotApply):
        History.parse("t0: push(1) @1..2").check("sc")
    with pytest.raises(consistory.ReadError):
        consistory.read(tmp_path / "missing.hist")
    with pytest.raises(consistory.ReadError, match="histories where one"):
        History.parse("--- a\nt0: w(x,1)\n--- b\nt0: w(x,1)")
    again = pickle.loads(pickle.dumps(error.value))
    assert str(again) == str(error.value) and type(again) is type(error.value)


@pytest.mark.parametrize(
    "wrong, kind",
    [
        (lambda h: h.check(5), consistory.ModelError),
        (lambda h: h.check(None), consistory.ModelError),
        (lambda h: h.check("sc", jobs=-1), consistory.ModelError),
        (lambda h: h.check("sc", jobs=0), consistory.ModelError),
        (lambda h: h.check("sc", memory=-1), consistory.ModelError),
        (lambda h: h.check("sc", budget=-1), consistory.ModelError),
        (lambda h: h.check("sc", budget=float("nan")), consistory.ModelError),
        (lambda h: h.check("sc", bugdet=1), TypeError),
        (lambda h: h.check("sc", engine="fast"), consistory.ModelError),
        (lambda h: h.check("linearizability", object="no such"), consistory.ObjectError),
        (lambda h: consistory.Definition("name", 5), TypeError),
        (lambda h: consistory.generate(operations=-1), consistory.ModelError),
        (lambda h: consistory.generate(sessions=2**40), consistory.ModelError),
        (lambda h: consistory.generate(object="no such"), consistory.ModelError),
        (lambda h: consistory.verify("missing.m"), consistory.ReadError),
        (lambda h: consistory.litmus.outcomes("missing.litmus", "sc"), consistory.ReadError),
        (lambda h: consistory.litmus.contrast("sc", "tso", bound=0), consistory.ModelError),
        (lambda h: h.write("history.nonsense"), consistory.FormatError),
        (lambda h: h.to_text("nonsense"), consistory.FormatError),
        (lambda h: consistory.read("missing.parquet"), consistory.ReadError),
        (lambda h: History.from_table({"session": [0], "call": ["f"], "args": ["1,2"]}), consistory.ReadError),
    ],
)
def test_wrong_inputs_are_named(wrong, kind):
    with pytest.raises(kind) as error:
        wrong(History.parse(LOST))
    assert str(error.value)


def test_a_verdict_is_not_a_condition():
    report = History.parse(LOST).check("sc", "pso")
    for wrong in (report, report[0]):
        with pytest.raises(TypeError, match="neither true nor false"):
            assert wrong
    assert "sc" in report and "PSO" in report and "tso" not in report
    assert [verdict.model for verdict in report[::-1]] == ["pso", "sc"]
    assert [verdict.model for verdict in reversed(report)] == ["pso", "sc"]


def test_one_stream_of_a_court_leaves_the_others_alone():
    court = consistory.court("sc")
    hard = [consistory.generate("sc", operations=3000, sessions=20, variables=30, seed=s) for s in range(6)]
    first, second = court.judge_many(hard), court.judge_many(hard)
    assert next(first)[0].is_consistent and next(second)[0].is_consistent
    first.close()
    assert [report[0].verdict for report in second] == ["consistent"] * 5
    assert court.judge(hard[0])[0].is_consistent


def test_tables_with_times_and_other_types_of_their_own():
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    calls = {
        "session": ["a", "b", "b"],
        "call": ["write", "read", "read"],
        "args": [[1], [], []],
        "returns": [None, 1, None],
    }
    start, end = [1_000, 2_000, 3_000], [1_500, 2_500, None]
    wanted = History.from_table({**calls, "start": start, "end": end})
    kept = [operation for operation in wanted.operations]
    times = pandas.to_datetime(pandas.Series(start), unit="ns")
    ends = pandas.to_datetime(pandas.Series(end), unit="ns")
    frame = pandas.DataFrame({**calls, "start": times, "end": ends})
    zoned = frame.assign(
        start=frame.start.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        end=frame.end.dt.tz_localize("UTC"),
    )
    spans = frame.assign(start=frame.start - pandas.Timestamp(0), end=frame.end - pandas.Timestamp(0))
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    for table in (frame, zoned, spans, arrow):
        assert History.from_table(table).operations == kept
    slow = frame.assign(start=frame.start.astype("datetime64[s]"), end=frame.end.astype("datetime64[s]"))
    assert [call["start"] for call in History.from_table(slow).operations] == [0, 0, 0]
    plain = {"session": [0, 0], "op": ["write", "read"], "key": ["x", "x"]}
    for dtype, values in (("uint64", [2**63, 1]), ("float64", [1e30, 1.0])):
        frame = pandas.DataFrame(plain).assign(value=pandas.Series(values, dtype=dtype))
        for table in (frame, pyarrow.Table.from_pandas(frame, preserve_index=False)):
            with pytest.raises(consistory.ReadError, match="64 bits|value"):
                History.from_table(table)
    nullable = pandas.DataFrame(plain).assign(value=pandas.array([1, None], dtype="Int64"))
    categories = pandas.DataFrame(plain).astype({"op": "category", "key": "category"}).assign(value=[1, None])
    for table in (nullable, categories, pyarrow.table({**plain, "value": [1, None]})):
        # A missing value is the initial one.
        assert History.from_table(table).operations[1]["value"] == 0
    if hasattr(pyarrow, "string_view"):
        views = pyarrow.table({**plain, "value": ["a", "a"]})
        views = views.set_column(1, "op", views.column("op").cast(pyarrow.string_view()))
        views = views.set_column(3, "value", views.column("value").cast(pyarrow.string_view()))
        assert History.from_table(views).check("sc")[0].is_consistent


def test_a_compressed_file_is_written_and_read(tmp_path):
    history = History.parse(LOST)
    history.write(tmp_path / "a.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert consistory.read(tmp_path / "a.jsonl.gz") == [history]


def test_a_missing_package_is_named():
    program = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'ray', 'numpy'):\n    sys.modules[name] = None\n"
        "import consistory\n"
        "report = consistory.History.parse('t0: w(x,1)').check('sc')\n"
        "for call in (report.to_frame, lambda: consistory.read('a.parquet')):\n"
        "    try:\n        call()\n"
        "    except consistory.MissingPackage as error:\n        print(error.hint)\n"
        "print(consistory.History.from_table({'session': [0], 'op': ['read'], 'key': ['x'], 'value': [0]}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pandas, pyarrow, history = done.stdout.split("\n", 2)
    assert "pip install pandas" in pandas and "pip install pyarrow" in pyarrow, done.stderr
    assert history.strip() == "0: r(x,0)"
    cluster = program.split("import consistory\n")[0] + (
        "from consistory.cluster import main\n"
        "sys.exit(main(['check', 'a.hist', '--model', 'sc', '--out', 'out']))\n"
    )
    done = subprocess.run([sys.executable, "-c", cluster], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install" in done.stderr, done.stderr


def test_histories_can_be_pickled_and_compared():
    history = consistory.generate("cm", operations=20)
    assert pickle.loads(pickle.dumps(history)) == history
    report = history.check("sc")
    for kept in (report, report[0]):
        with pytest.raises(TypeError, match="json"):
            pickle.dumps(kept)
    assert history != History.parse(LOST) and len({history, pickle.loads(pickle.dumps(history))}) == 1


def test_check_many_streams_in_order_and_from_a_generator():
    pulled = []

    def endless():
        seed = 0
        while True:
            pulled.append(seed)
            yield consistory.generate("tso", operations=8, sessions=2, variables=2, seed=seed)
            seed += 1

    stream = consistory.check_many(endless(), "sc", jobs=2)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(next, consistory.check_many(endless(), "sc")).result().index == 0
    verdicts = [next(stream)[0].verdict for _ in range(500)]
    wanted = [
        consistory.generate("tso", operations=8, sessions=2, variables=2, seed=s).check("sc")[0].verdict
        for s in range(500)
    ]
    assert verdicts == wanted and {"consistent", "violation"} == set(verdicts)
    assert len(pulled) < 5000, "it is read only as far as it is needed"
    stream.close()


def test_check_many_of_files_agrees_with_one_by_one(tmp_path):
    made = list(consistory.generate("pso", count=300, operations=10, sessions=3, variables=3))
    (tmp_path / "all.hist").write_text("\n".join(f"---\n{h}" for h in made))
    (tmp_path / "bad.hist").write_text("t0: nonsense(")
    reports = list(consistory.check_many(tmp_path / "all.hist", ["sc", "tso"], jobs=2))
    assert [r.index for r in reports] == list(range(300))
    assert [r.digest for r in reports] == [h.digest for h in made]
    assert [[v.verdict for v in r] for r in reports] == [
        [v.verdict for v in h.check("sc", "tso")] for h in made
    ]
    with pytest.raises(consistory.ReadError):
        list(consistory.check_many([tmp_path / "bad.hist"], "sc"))
    both = list(
        consistory.check_many([tmp_path / "bad.hist", made[0]], "sc", errors="yield")
    )
    assert isinstance(both[0], consistory.ReadError) and both[1][0].model == "sc"
    with pytest.raises(TypeError):
        list(consistory.check_many([1], "sc"))

    def failing():
        yield made[0]
        raise KeyError("mine")

    stream = consistory.check_many(failing(), "sc")
    assert next(stream)[0].model == "sc"
    with pytest.raises(KeyError, match="mine"):
        next(stream)


def test_the_lock_is_not_held_while_histories_are_judged():
    history = consistory.generate("sc", operations=20_000, sessions=8, variables=50)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(None)
            done.wait(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    history.check("sc", "tso")
    done.set()
    thread.join()
    assert len(ticks) > 1


def test_models_and_objects_of_ones_own(tmp_path):
    coherence = consistory.Definition(
        "coherence", '"Per-key order" acyclic po & loc | wr as CyclicPerKey'
    )
    verdict = History.parse("t0: w(x,1) r(x,1)\nt1: r(x,1) r(x,0)").check(coherence)[0]
    assert verdict.model == "coherence" and verdict.is_consistent
    with pytest.raises(consistory.DefinitionError) as error:
        History.parse(LOST).check(consistory.Definition("broken", "acyclic po |"))
    assert error.value.line == 1
    queue = History.parse("t0: enqueue(1) @1..2\nt1: dequeue() => 2 @3..4")
    assert queue.check("linearizability", object="queue")[0].is_violation
    assert queue.check(object="queue", axioms="vis >= po")[0].model == "vis >= po"


class Account:
    """A bank account that cannot be overdrawn."""

    def __init__(self):
        self.money = 0
        self.seen = {}

    def deposit(self, amount):
        self.money += amount

    def withdraw(self, amount):
        if amount > self.money:
            return False
        self.money -= amount
        return True

    @consistory.reads
    def balance(self):
        return self.money


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0

    def add(self, amount):
        self.n += amount

    def get(self):
        return self.n


class Listed(list):
    """A list whose state is an attribute; its items never change."""

    total = 0

    def add(self, amount):
        self.total += amount

    def get(self):
        return self.total


class Lock:
    def __init__(self):
        self.held = False

    def lock(self):
        if self.held:
            raise consistory.Impossible
        self.held = True

    def unlock(self):
        self.held = False


class Buggy:
    def call(self):
        raise ZeroDivisionError("in the model")


def test_a_python_class_is_an_object():
    good = History.parse(
        "t0: deposit(5) => null @1..4 balance() => 2 @7..8\nt1: withdraw(3) => true @2..6"
    )
    assert good.check("linearizability", object=Account)[0].is_consistent
    bad = History.parse(
        "t0: deposit(5) => null @1..2\nt1: withdraw(3) => true @3..6\nt2: withdraw(3) => true @4..5"
    )
    verdict = bad.check("linearizability", object=Account)[0]
    assert verdict.is_violation and verdict.certify()
    assert len(verdict.shrink().history) == 3
    rich = Account()
    rich.money = 10
    assert bad.check("linearizability", object=rich)[0].is_consistent
    slotted = History.parse("t0: add(2) => null @1..2\nt1: get() => 2 @3..4\nt1: get() => 1 @5..6")
    for kind in (Slotted, Listed):
        assert slotted.check("linearizability", object=kind)[0].is_violation
    held = History.parse("t0: lock() => null @1..2\nt1: lock() => null @3..4")
    assert held.check("linearizability", object=Lock)[0].is_violation
    with pytest.raises(ZeroDivisionError, match="in the model"):
        History.parse("t0: call() => null @1..2").check("linearizability", object=Buggy)
    with pytest.raises(consistory.ObjectError, match="steal"):
        History.parse("t0: steal() => null @1..2").check("linearizability", object=Account)


def test_a_python_class_agrees_with_the_ready_object():
    for seed in range(30):
        history = consistory.generate(object="counter", operations=12, sessions=3, plants=seed % 2, seed=seed)
        methods = {op["call"] for op in history.operations}
        ready = history.check("linearizability", object="counter")[0].verdict

        class Counter:
            def __init__(self):
                self.n = 0

        for method in methods:
            setattr(Counter, method, _COUNTER[method])
        assert history.check("linearizability", object=Counter)[0].verdict == ready, seed


def _increment(self):
    self.n += 1


def _read(self):
    return self.n


def _get_and_increment(self):
    self.n += 1
    return self.n - 1


def _add(self, amount):
    self.n += amount


def _increment_and_get(self):
    self.n += 1
    return self.n


_COUNTER = {
    "add": _add,
    "incrementAndGet": _increment_and_get,
    "increment": _increment,
    "inc": _increment,
    "read": _read,
    "get": _read,
    "getAndIncrement": _get_and_increment,
}


def test_transactions_take_an_order():
    history = consistory.generate(transactions="ser", anomalies=["write-skew"], operations=20)
    report = history.check("si", "ser", order="none")
    assert report["ser"].is_violation and report["si"].is_consistent
    with pytest.raises(consistory.ModelError, match="no order"):
        history.check("si", order="global")


def test_the_reference_evaluator_agrees():
    for seed in range(20):
        history = consistory.generate("pso", operations=7, sessions=3, variables=2, seed=seed)
        for model in ("cc", "sc", "tso", "pso"):
            assert history.evaluate(model)[0] == history.check(model)[0].verdict


def test_contrast_finds_store_buffering():
    allowed, converse = consistory.contrast("tso", "sc", bound=4)
    assert allowed.answer == "separated" and len(allowed.history) == 4
    assert allowed.history.check("tso")[0].is_consistent and allowed.verdict.is_violation
    assert converse.answer == "implied" and converse.because
    levels = consistory.contrast("si", "ser")
    assert {side.answer for side in levels} == {"separated", "implied"}
    with pytest.raises(consistory.ModelError):
        consistory.contrast("si", "tso")


def test_litmus_outcomes():
    sb = "X=1; r1=Y // Y=1; r2=X"
    tso, sc = consistory.litmus.outcomes(sb, "tso"), consistory.litmus.outcomes(sb, "sc")
    assert len(tso) == len(sc) + 1
    [extra] = [o for o in tso if o not in list(sc)]
    assert set(extra.values()) == {0} and extra in tso
    assert len(consistory.litmus.outcomes(sb, "tso", style="operational")) == len(tso)
    tests = sorted((CORPUS / "litmus").rglob("*.litmus"))
    assert consistory.litmus.outcomes(tests[0], "sc").test
    passing = CORPUS / "executions" / "aarch64" / "MP.litmus"
    arm = consistory.litmus.outcomes(passing, "aarch64")
    assert arm.condition == "allowed" and {"1:X0": 1, "1:X2": 0} in arm and len(arm) == 4
    with pytest.raises(consistory.ModelError, match="cannot run"):
        consistory.litmus.outcomes(passing, "tso")
    [difference] = consistory.litmus.contrast("tso", "sc", bound=4)
    assert difference.only_left and not difference.only_right
    with pytest.raises(consistory.ModelError):
        consistory.litmus.outcomes(sb, "tsoo")
    with pytest.raises(consistory.ReadError):
        consistory.litmus.outcomes("X=1; r1= // Y", "tso")


def test_verify_proves_and_refutes_protocols():
    proved = consistory.verify(CORPUS / "protocols" / "serial.m")
    assert proved.verdict == "consistent" and proved.states > 0
    with pytest.raises(consistory.ReadError) as error:
        consistory.verify("var x : boolean;\nrule nonsense")
    assert error.value.line == 2


def test_reports_are_shown_in_notebooks_and_frames():
    pytest.importorskip("pandas")
    report = History.parse(LOST).check("cc", "sc")
    page = report._repr_html_()
    assert page.startswith("<iframe srcdoc=") and "&lt;script" in page and 'srcdoc="<' not in page
    assert report[0]._repr_html_().startswith("<iframe")
    outcomes = consistory.litmus.outcomes("X=1; r1=Y // Y=1; r2=X", "tso")._repr_html_()
    assert outcomes.count("<tr>") == 5 and "4 outcomes under tso" in outcomes
    assert consistory.contrast("tso", "sc", bound=4)[0]._repr_html_().count("<iframe") == 1
    broken = consistory.verify(CORPUS / "protocols" / "store-buffers.m")
    assert broken.verdict == "violation" and "<ol><li>" in broken._repr_html_()
    assert report.html().startswith("<!doctype html>") and "violation" in report[0].shrink().html()
    frame = report.to_frame()
    assert list(frame["verdict"]) == ["violation", "violation"] and "digest" in frame
    assert len(consistory.to_frame([report, report])) == 4
    assert list(report.history.to_frame()["session"]) == ["t0", "t0", "t1", "t1"]


def test_undecided_is_not_an_exception():
    history = consistory.generate("sc", operations=3000, sessions=40, variables=3, values=2)
    verdict = history.check("sc", budget=0.0)[0]
    assert verdict.verdict == "undecided" and verdict.certificate is None and not verdict.certify()


def test_the_digest_is_that_of_the_command_line():
    report = History.parse(LOST).check("sc")
    assert json.loads(report.json())["digest"] == report.digest == report.history.digest


def test_an_interrupt_ends_a_long_judgement():
    program = (
        "import consistory, os, signal, threading\n"
        "h = consistory.generate('sc', operations=20000, sessions=60, variables=5, values=3)\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    h.check('sc', budget=600)\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() in ("interrupted", ""), done.stderr


def test_docstrings_and_their_examples():
    import doctest

    for module in (consistory, consistory.litmus, sys.modules["consistory.recorder"]):
        assert module.__doc__
        failed, _ = doctest.testmod(module)
        assert failed == 0
    for name in consistory.__all__:
        thing = getattr(consistory, name)
        assert name == "__version__" or thing.__doc__, name
