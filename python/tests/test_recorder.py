"""The recorder: threads, tasks, processes, the pytest fixture and Hypothesis."""

import asyncio
import contextlib
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import consistory
from consistory import Recorder


class Stale:
    """A register whose reads return an old value for a while."""

    def __init__(self):
        self.value, self.cache = 0, 0

    def write(self, value):
        self.value = value

    def read(self):
        seen, self.cache = self.cache, self.value
        return seen


def test_threads_are_sessions_and_a_stale_read_is_found():
    recorder = Recorder(object="register(0)")
    service = Stale()
    write, read = recorder.record(service.write), recorder.record(service.read)
    write(1)
    read_value = []
    thread = threading.Thread(target=lambda: read_value.append(read()))
    thread.start()
    thread.join()
    assert read_value == [0] and len(recorder) == 2 and len(recorder.history.sessions) == 2
    with pytest.raises(consistory.Violation) as error:
        recorder.expect()
    # A register's calls are judged as its reads and writes.
    assert "Smallest part" in str(error.value) and "w(register,1)" in str(error.value)
    assert error.value.verdict.is_violation and isinstance(error.value, AssertionError)


def test_concurrent_calls_overlap_and_are_linearizable():
    recorder = Recorder(object="counter")
    lock, count = threading.Lock(), [0]

    @recorder.record(name="increment")
    def increment():
        with lock:
            count[0] += 1

    @recorder.record(name="read")
    def read():
        with lock:
            return count[0]

    threads = [
        threading.Thread(target=lambda: [increment() if n % 2 else read() for n in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recorder) == 200 and recorder.expect().is_consistent


def test_exceptions_are_indeterminate_unless_they_are_failures():
    recorder = Recorder(object="register(0)", failures=(KeyError,))

    @recorder.record
    def write(value):
        if value == 1:
            raise TimeoutError
        if value == 2:
            raise KeyError

    for value, error in ((1, TimeoutError), (2, KeyError)):
        with pytest.raises(error):
            write(value)
    write(3)
    statuses = [call.get("status", "ok") for call in recorder.operations]
    assert statuses == ["unknown", "fail", "ok"]
    assert "end" not in recorder.operations[0]
    sessions = [call["session"] for call in recorder.operations]
    assert sessions[0] != sessions[2], "a session that lost a call goes on under another name"
    recorder.clear()
    assert len(recorder) == 0


def test_asyncio_tasks_are_sessions():
    recorder = Recorder(object="register(0)")
    value = [0]

    @recorder.record
    async def write(new):
        await asyncio.sleep(0.001)
        value[0] = new
        await asyncio.sleep(0.001)

    @recorder.record
    async def read():
        await asyncio.sleep(0)
        return value[0]

    async def client(number):
        for turn in range(5):
            await write(10 * number + turn)
            await read()

    async def everything():
        await asyncio.gather(*(client(number) for number in range(1, 4)))

    asyncio.run(everything())
    assert len(recorder) == 30 and len(recorder.history.sessions) == 3
    assert recorder.expect().is_consistent


def _client(recorder, path, number):
    for turn in range(5):
        with recorder.call("write", 10 * number + turn):
            path.write_text(str(10 * number + turn))
        time.sleep(0.001)


def test_processes_share_a_file(tmp_path):
    recorder = Recorder.shared(object="register(0)")
    assert pickle.loads(pickle.dumps(recorder))._path == recorder._path
    with pytest.raises(TypeError, match="shared"):
        pickle.dumps(Recorder())
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_client, args=(recorder, tmp_path / "value", number))
        for number in (1, 2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(recorder) == 10 and len(recorder.history.sessions) == 2
    assert recorder.expect().is_consistent
    recorder.close()


FORKED = """
import multiprocessing, sys, time
import consistory

def child(recorder, write):
    write(2)
    with recorder.call("read") as call:
        call.returns = 2

def refused(recorder):
    try:
        with recorder.call("write", 1):
            pass
    except consistory.ReadError as error:
        assert "another process" in error.message and "shared" in error.hint
        sys.exit(7)

context = multiprocessing.get_context("fork")
recorder = consistory.Recorder(object="register(0)", path=sys.argv[1])
write = recorder.record(lambda value: time.sleep(0.2), name="write")
write(1)
other = context.Process(target=child, args=(recorder, write))
other.start()
write(3)
other.join()
assert len(recorder) == 4, recorder.operations
assert len(recorder.history.sessions) == 2, recorder.operations
# A recorder that keeps calls in memory would lose those of the child.
other = context.Process(target=refused, args=(consistory.Recorder(),))
other.start()
other.join()
assert other.exitcode == 7
print("fine")
"""


def test_a_forked_process_has_sessions_of_its_own(tmp_path):
    # In a separate process, since a process with threads of other tests must not be forked.
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "calls.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout == "fine\n", done.stderr


def test_values_are_recorded_as_they_were():
    recorder = Recorder(object="set")
    members = [1]
    with recorder.call("add", members) as call:
        members.append(2)
        call.returns = members
    members.append(3)
    [kept] = recorder.operations
    assert kept["args"] == [[1]] and kept["returns"] == [1, 2]


def test_calls_inside_calls_are_concurrent_with_them():
    recorder = Recorder(object="register(0)")
    with recorder.call("write", 1):
        with recorder.call("write", 2):
            pass
        with recorder.call("read") as call:
            call.returns = 2
    with recorder.call("read") as call:
        call.returns = 1
    first, inside, read, last = recorder.operations
    assert first["session"] == last["session"] != inside["session"] == read["session"]
    assert recorder.expect("linearizability").is_consistent
    # Also when two threads are given the same session.
    shared = Recorder(object="register(0)")
    started, over = threading.Barrier(2), threading.Barrier(2)

    def client(value):
        with shared.call("write", value, session="both"):
            started.wait()
            over.wait()

    threads = [threading.Thread(target=client, args=(value,)) for value in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(call["session"] for call in shared.operations) == ["both", "both+1"]
    assert shared.expect("linearizability").is_consistent


def test_what_cannot_be_recorded_is_said_at_once_and_loses_no_call():
    recorder = Recorder(object="register(0)")

    @recorder.record
    def read(key):
        return {"a": 1}

    with pytest.raises(consistory.ReadError, match="return of read is of the type dict") as error:
        read("x")
    assert "returns=" in error.value.hint
    assert recorder.operations[0]["status"] == "unknown"
    with pytest.raises(consistory.ReadError, match="an argument of read is of the type bytes"):
        read(b"x")
    assert len(recorder) == 1, "the call was not made"
    numpy = pytest.importorskip("numpy")
    with recorder.call("write", numpy.int64(3), numpy.bool_(True), [numpy.array([1, 2])]):
        pass
    assert recorder.operations[-1]["args"] == [3, True, [[1, 2]]]
    with pytest.raises(TypeError, match="generator"):

        @recorder.record
        def rows():
            yield 1

    import collections

    queue = collections.deque()
    put = recorder.record(queue.append, name="enqueue")
    put(5)
    assert recorder.operations[-1]["args"] == [5]


def test_an_undecided_recording_is_not_a_pass():
    class Account:
        """An object for which every order of calls leads to a different state."""

        def __init__(self):
            self.log = []

        def note(self, number):
            self.log.append(number)

        def sum(self):
            return sum(place * number for place, number in enumerate(self.log))

    recorder = Recorder(object=Account)
    with contextlib.ExitStack() as running:
        for number in range(40):
            running.enter_context(recorder.call("note", number))
        with recorder.call("sum") as call:
            call.returns = -1
    with pytest.raises(consistory.Undecided, match="undecided under linearizability") as error:
        recorder.expect(budget=0.2)
    assert "budget=" in error.value.hint


def test_the_context_manager_takes_names_and_returns():
    recorder = Recorder(object="queue")
    with recorder.call("enqueue", 1, session="a"):
        pass
    with recorder.call("dequeue", session="b") as call:
        call.returns = 7
    assert recorder.history.sessions == ["a", "b"]
    with pytest.raises(consistory.Violation):
        recorder.expect("linearizability")


PLUGIN = """
import pytest

@pytest.mark.consistory("linearizability", object="register(0)")
def test_good(recorder):
    with recorder.call("write", 1):
        pass

@pytest.mark.consistory("linearizability", object="register(0)")
def test_bad(recorder):
    with recorder.call("write", 1):
        pass
    for _ in range(5):
        with recorder.call("read") as call:
            call.returns = 0

def test_silent(recorder):
    pass

@pytest.mark.consistory("linearizability", object="register(0)")
def test_both(recorder):
    test_bad(recorder)
    assert recorder is None, "a failure of its own"

@pytest.mark.consistory("linearizability", object="register(0)")
def test_skipped(recorder):
    test_bad(recorder)
    pytest.skip("not today")

@pytest.mark.consistory("linearizability", object="no such object")
def test_wrong_name(recorder):
    with recorder.call("write", 1):
        pass
"""


def test_the_fixture_fails_a_test_with_the_counterexample_and_its_picture(pytester):
    pytester.makepyfile(textwrap.dedent(PLUGIN))
    result = pytester.runpytest_subprocess("--consistory-draw=pictures", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=3, skipped=1)
    result.stdout.fnmatch_lines(["*violate linearizability*", "*Smallest part*", "*w(register,1)*"])
    result.stdout.fnmatch_lines(["*a failure of its own*", "*consistory*", "*violate linearizability*"])
    result.stdout.fnmatch_lines(["*no such object*"])
    assert (pytester.path / "pictures" / "test_bad.svg").read_text().startswith("<svg")


def test_hypothesis_finds_and_shrinks_a_wrong_service():
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import settings
    from hypothesis.stateful import rule, run_state_machine_as_test

    from consistory.stateful import RecordedMachine

    class Service(RecordedMachine):
        object = "register(0)"

        def __init__(self):
            super().__init__()
            self.service = Stale()
            self.recorded_write = self.recorder.record(self.service.write)
            self.recorded_read = self.recorder.record(self.service.read)

        @rule(value=hypothesis.strategies.integers(1, 5))
        def write(self, value):
            self.recorded_write(value)

        @rule()
        def read(self):
            self.recorded_read()

    quick = settings(max_examples=50, stateful_step_count=6, deadline=None, database=None)
    with pytest.raises(consistory.Violation) as error:
        run_state_machine_as_test(Service, settings=quick)
    assert len(error.value.verdict.history) == 2
