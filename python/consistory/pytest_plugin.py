"""The pytest fixture ``recorder``.

A test that uses the fixture records calls with it. When the test is over the recording is judged, and
the test fails if it violates the model: the failure shows the shrunk counterexample, and its picture is
written into the test's temporary folder, or into the folder that ``--consistory-draw`` names. If the
test has failed already, the counterexample is shown as a section of its failure. If the budget does not
suffice, the test fails too, because the verdict is unknown.

The marker states the models and the object::

    @pytest.mark.consistory("linearizability", object="queue")
    def test_queue(recorder):
        ...
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import pytest

from .errors import Undecided
from .recorder import Recorder


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("consistory")
    group.addoption(
        "--consistory-draw",
        metavar="DIR",
        default=None,
        help="folder for pictures of violations (default: the test's temporary folder)",
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        "consistory(*models, object=None, **options): what the recorder's history is judged by",
    )


class _Recording(NamedTuple):
    """The recording of a test, with the options of judging it."""

    recorder: Recorder
    models: Tuple[Any, ...]
    options: Dict[str, Any]
    picture: str

    def problem(self) -> Optional[str]:
        """Judges the recording, and returns a description of its violation, or ``None``."""
        if not len(self.recorder):
            return None
        try:
            self.recorder.expect(*self.models, draw=self.picture, **self.options)
        except (AssertionError, Undecided) as error:
            return str(error)
        return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Judges the recording of the test, as a part of the test."""
    outcome: Any = yield
    recording: Optional[_Recording] = getattr(item, "_consistory", None)
    if recording is None:
        return
    has_failed = outcome.excinfo is not None
    if has_failed and not issubclass(outcome.excinfo[0], (Exception, pytest.fail.Exception)):
        return  # skipped or interrupted
    try:
        problem = recording.problem()
        if problem is None:
            return
        if has_failed:
            item.add_report_section("call", "consistory", problem)
            return
        # The text is sufficient; a traceback through the fixture is of no use.
        pytest.fail(problem, pytrace=False)
    except BaseException as error:
        if not has_failed:
            _fail(outcome, error)


def _fail(outcome: Any, error: BaseException) -> None:
    """Makes an exception the result of the test."""
    if hasattr(outcome, "force_exception"):
        outcome.force_exception(error)
    else:
        outcome._excinfo = (type(error), error, error.__traceback__)


@pytest.fixture
def recorder(request: Any, tmp_path: Any) -> Iterator[Recorder]:
    """Records calls; the recording is judged when the test is over."""
    marker = request.node.get_closest_marker("consistory")
    models = marker.args if marker else ()
    options = dict(marker.kwargs) if marker else {}
    shared = Recorder(
        object=options.pop("object", None),
        failures=options.pop("failures", ()),
        init=options.pop("init", None),
        path=tmp_path / "recording.jsonl",
    )
    folder = request.config.getoption("--consistory-draw") or tmp_path
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.name)
    picture = os.path.join(folder, f"{name}.svg")
    request.node._consistory = _Recording(shared, models, options, picture)
    try:
        yield shared
    finally:
        request.node._consistory = None
        shared.close()
