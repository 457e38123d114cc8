"""A recorder for Python services: the calls of each client, with their times and returns.

Every call becomes a call of a history, with times from one clock (``time.monotonic_ns``, which all
threads and processes of a machine share). A call that raises is recorded as indeterminate, because
its effect is unknown, unless the exception is one of ``failures``: then the call did not
take effect and is ignored.

Sessions are threads or asyncio tasks unless the caller names them. A session has one call at a time, so
a session whose call is indeterminate continues under another name, and a call inside another
call of its session is recorded under another name too.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import json
import os
import tempfile
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Type, TypeVar, overload

from ._native import History, Report, Verdict
from .errors import ReadError, Undecided, Violation
from .history import _from_operations

_F = TypeVar("_F", bound=Callable[..., Any])


class Call:
    """A call that is being recorded; set ``returns`` to its return value.

    - ``returns``: The return value of the call; assign it inside the block.
    - ``status``: ``ok``, ``fail`` (it did not take effect) or ``unknown``.
    """

    __slots__ = ("returns", "status", "_line", "_place")

    def __init__(self, line: Dict[str, Any], place: int) -> None:
        self.returns: Any = None
        self.status = "ok"
        self._line, self._place = line, place


class Recorder:
    """Records calls from threads, asyncio tasks and processes.

    >>> recorder = Recorder()
    >>> @recorder.record
    ... def read(key): ...
    >>> with recorder.call("write", "x", 1):
    ...     pass
    >>> len(recorder.history)
    1

    With ``path`` every call is appended to a file, and recorders of several processes may share it: the
    file is opened for appending and each line is one write. ``Recorder.shared()`` creates such a file.
    A recorder can be pickled if it has a path.

    - ``object``: The object whose calls are recorded, as in ``check``.
    - ``failures``: Exceptions after which a call did not take effect.
    - ``init``: Initial values, in the form that the object expects.
    """

    def __init__(
        self,
        *,
        object: Any = None,
        path: Optional["os.PathLike[str] | str"] = None,
        failures: Tuple[Type[BaseException], ...] = (),
        init: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.object = object
        self.failures = tuple(failures)
        self.init = init
        self._path = None if path is None else os.fspath(path)
        self._file: Optional[int] = None
        self._is_temporary = False
        self._calls: List[Dict[str, Any]] = []
        self._lock = threading.Lock()
        self._local = threading.local()
        self._tasks: "Dict[int, str]" = {}
        self._numbers = itertools.count()
        self._lost: Dict[str, int] = {}
        #: For each session the indices of its running calls; there are several if calls are nested.
        self._running: Dict[str, Set[int]] = {}
        self._process = os.getpid()

    @classmethod
    def shared(cls, **options: Any) -> "Recorder":
        """Creates a recorder that several processes can write to, with a temporary file."""
        handle, path = tempfile.mkstemp(prefix="consistory-", suffix=".jsonl")
        os.close(handle)
        recorder = cls(path=path, **options)
        recorder._is_temporary = True
        return recorder

    def __getstate__(self) -> Dict[str, Any]:
        if self._path is None:
            raise TypeError(
                "a recorder without a path stays in its process; use Recorder.shared() or path="
            )
        return {
            "object": self.object,
            "path": self._path,
            "failures": self.failures,
            "init": self.init,
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    # Recording

    @overload
    def record(
        self,
        function: _F,
        *,
        name: Optional[str] = None,
        session: Optional[Callable[..., Any]] = None,
        args: Optional[Callable[..., Any]] = None,
        returns: Optional[Callable[[Any], Any]] = None,
    ) -> _F: ...

    @overload
    def record(
        self,
        function: None = None,
        *,
        name: Optional[str] = None,
        session: Optional[Callable[..., Any]] = None,
        args: Optional[Callable[..., Any]] = None,
        returns: Optional[Callable[[Any], Any]] = None,
    ) -> Callable[[_F], _F]: ...

    def record(
        self,
        function: Optional[Callable[..., Any]] = None,
        *,
        name: Optional[str] = None,
        session: Optional[Callable[..., Any]] = None,
        args: Optional[Callable[..., Any]] = None,
        returns: Optional[Callable[[Any], Any]] = None,
    ) -> Any:
        """Decorates a function, method or coroutine function: each of its calls is recorded.

        ``name`` is the method in the history, the function's name unless it is given. ``args`` and
        ``session`` compute what is recorded from the arguments; ``returns`` from what was returned.
        Without ``args`` all positional and named arguments are recorded in order, ``self`` left out.
        Values are copied when they are recorded, so the service may change them later.
        """
        if function is None:
            return functools.partial(
                self.record, name=name, session=session, args=args, returns=returns
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator, which is not one call; use `with recorder.call(...)`"
            )
        method = name or getattr(function, "__name__", None)
        if method is None:
            raise TypeError(f"{function!r} has no name; give one with name=")
        try:
            signature = inspect.signature(function)
        except ValueError:  # some built-in functions have no signature
            signature = inspect.Signature(
                [
                    inspect.Parameter("given", inspect.Parameter.VAR_POSITIONAL),
                    inspect.Parameter("named", inspect.Parameter.VAR_KEYWORD),
                ]
            )
        parameters = list(signature.parameters)
        skipped = 1 if parameters and parameters[0] in ("self", "cls") else 0

        def shown(given: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Any]:
            who = None if session is None else session(*given, **named)
            if args is not None:
                listed = args(*given, **named)
                return (tuple(listed) if isinstance(listed, (list, tuple)) else (listed,)), who
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            values: List[Any] = []
            for parameter, value in list(bound.arguments.items())[skipped:]:
                kind = signature.parameters[parameter].kind
                if kind is inspect.Parameter.VAR_POSITIONAL:
                    values.extend(value)
                elif kind is inspect.Parameter.VAR_KEYWORD:
                    values.extend(value.values())
                else:
                    values.append(value)
            return tuple(values), who

        def finished(call: Call, result: Any) -> Any:
            call.returns = result if returns is None else returns(result)
            return result

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded(*given: Any, **named: Any) -> Any:
                listed, who = shown(given, named)
                with self.call(method, *listed, session=who) as call:
                    return finished(call, await function(*given, **named))

        else:

            @functools.wraps(function)
            def recorded(*given: Any, **named: Any) -> Any:
                listed, who = shown(given, named)
                with self.call(method, *listed, session=who) as call:
                    return finished(call, function(*given, **named))

        return recorded

    @contextlib.contextmanager
    def call(self, method: str, *args: Any, session: Any = None) -> Iterator[Call]:
        """Records a ``with`` block as one call.

        Assign the return value to the attribute ``returns`` of the block's object. Arguments and
        returns are ``None``, booleans, integers, strings and lists of these; anything else raises
        ``ReadError``, for arguments before the block is entered.
        """
        if self._path is None and os.getpid() != self._process:
            raise ReadError(
                f"a call of {method} in another process than the recorder's, which would be lost",
                hint="`Recorder.shared()` or path= makes a recorder for several processes",
            )
        listed = _recorded(list(args), f"an argument of {method}", "args")
        who = self._session() if session is None else str(session)
        with self._lock:
            running = self._running.setdefault(who, set())
            place = next(number for number in itertools.count() if number not in running)
            running.add(place)
            lost = self._lost.get(who, 0)
        # A session has one call at a time.
        named = (f"{who}.{lost}" if lost else who) + (f"+{place}" if place else "")
        made = Call({"session": named, "call": method, "args": listed}, place)
        made._line["start"] = time.monotonic_ns()
        try:
            yield made
        except BaseException as error:
            made.status = "fail" if isinstance(error, self.failures) else "unknown"
            self._add(made, who)
            raise
        self._add(made, who)

    def _add(self, call: Call, who: str) -> None:
        end = time.monotonic_ns()
        line = call._line
        problem: Optional[ReadError] = None
        if call.status == "ok":
            try:
                line["returns"] = _recorded(call.returns, f"the return of {line['call']}", "returns")
            except ReadError as error:
                # The call has taken effect, but its return is unknown.
                call.status, problem = "unknown", error
        if call.status != "ok":
            line["status"] = call.status
        if call.status != "unknown":
            line["end"] = end
        with self._lock:
            running = self._running.get(who, set())
            running.discard(call._place)
            if not running:
                self._running.pop(who, None)
            if call.status == "unknown":
                # The session continues under another name, since this call may still be running.
                self._lost[who] = self._lost.get(who, 0) + 1
        self._write(line)
        if problem is not None:
            raise problem

    def _write(self, line: Dict[str, Any]) -> None:
        if self._path is None:
            with self._lock:
                self._calls.append(line)
            return
        text = json.dumps(line, allow_nan=False) + "\n"
        with self._lock:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(self._file, text.encode())

    def _session(self) -> str:
        """Returns the name of the current thread or task."""
        prefix = f"p{os.getpid()}-" if self._path is not None else ""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is not None:
            name = getattr(task, "_consistory_session", None)
            if name is None:
                with self._lock:
                    name = self._tasks.get(id(task))
                    if name is None:
                        name = f"{prefix}task{next(self._numbers)}"
                        self._tasks[id(task)] = name
                        task.add_done_callback(lambda done: self._tasks.pop(id(done), None))
            return str(name)
        # A forked process has its parent's names, and needs different ones.
        process, local_name = getattr(self._local, "name", (None, ""))
        if process != os.getpid():
            with self._lock:
                local_name = f"{prefix}thread{next(self._numbers)}"
            self._local.name = (os.getpid(), local_name)
        return str(local_name)

    # The recorded calls

    @property
    def operations(self) -> List[Dict[str, Any]]:
        """The recorded calls as the fields of JSON lines, ordered by their starts."""
        if self._path is None:
            with self._lock:
                calls = list(self._calls)
        else:
            calls = []
            if os.path.exists(self._path):
                with open(self._path, encoding="utf-8") as file:
                    for number, text in enumerate(file):
                        if not text.endswith("\n"):
                            break  # a process was killed while it wrote
                        try:
                            calls.append(json.loads(text))
                        except ValueError:
                            raise ReadError(
                                f"{self._path}:{number + 1}: not a recorded call",
                                hint="only recorders may write to the file",
                            ) from None
        calls.sort(key=lambda call: call["start"])
        return calls

    @property
    def history(self) -> History:
        """The recorded calls as a history."""
        return _from_operations(self.operations, init=self.init)

    def __len__(self) -> int:
        return len(self.operations)

    def clear(self) -> None:
        """Removes all recorded calls."""
        with self._lock:
            self._calls.clear()
            self._lost.clear()
        if self._path is not None and os.path.exists(self._path):
            os.truncate(self._path, 0)

    def close(self) -> None:
        """Closes the file, and removes it if it is a temporary one."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
        if self._is_temporary and self._path is not None and os.path.exists(self._path):
            os.remove(self._path)

    # Judging

    def check(self, *models: Any, **options: Any) -> Report:
        """Judges the recorded history, by default for linearizability."""
        options.setdefault("object", self.object)
        report: Report = self.history.check(*(models or ("linearizability",)), **options)
        return report

    def expect(
        self, *models: Any, draw: Optional["os.PathLike[str] | str"] = None, **options: Any
    ) -> Report:
        """Judges the recorded history, and raises ``Violation`` with the shrunk counterexample.

        With ``draw`` the picture of the counterexample is written to this file. If the budget does not
        suffice, ``Undecided`` is raised.
        """
        report = self.check(*models, **options)
        for verdict in report:
            if verdict.is_violation:
                raise violation(verdict, len(report.history), draw)
        for verdict in report:
            if not verdict.is_consistent:
                raise Undecided(
                    f"{len(report.history)} recorded operations are undecided under {verdict.model}: "
                    f"{verdict.summary}",
                    hint="budget= gives it more seconds, and shorter recordings are decided sooner",
                )
        return report


def _recorded(value: Any, what: str, option: str) -> Any:
    """Returns a copy of a value for the record, which later changes do not affect."""
    kind = type(value)
    if value is None or kind is int or kind is str or kind is bool:
        return value
    if kind is list or kind is tuple:
        return [_recorded(item, what, option) for item in value]
    if hasattr(value, "tolist"):  # scalars and arrays of numpy
        converted = value.tolist()
        if type(converted) is not kind:
            return _recorded(converted, what, option)
    if isinstance(value, str):
        return str.__str__(value)  # the text of a string enumeration
    if isinstance(value, (list, tuple)):
        return [_recorded(item, what, option) for item in value]
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise ReadError(
        f"{what} is of the type {kind.__name__}, which a history cannot express: {value!r:.60}",
        hint=f"{option}= of `record` says what to record instead, such as a number or a text",
    )


def violation(
    verdict: Verdict, operations: int, draw: Optional["os.PathLike[str] | str"] = None
) -> Violation:
    """Creates the exception of a verdict: the shrunk history, its violation, its picture."""
    small = verdict.shrink()
    text = [
        f"{operations} recorded operations violate {verdict.model} ({verdict.pattern})",
        "",
        "Smallest part that still violates it:",
        "",
        *("    " + line for line in str(small.history).splitlines()),
        "",
        small.explanation.rstrip(),
    ]
    if draw is not None:
        path = os.fspath(draw)
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(small.draw())
        text += ["", f"Drawn in {path}"]
    error = Violation(text[0], rendered="\n".join(text))
    error.verdict = small
    return error
