"""The pytest fixture ``recorder``.

A test that uses the fixture records calls with it. When the test is over the recording is judged, and
the test fails if it violates the model: the failure shows the shrunk counterexample, and its picture is
written into the test's temporary folder, or into the folder that ``--consistory-draw`` names.

The marker says what to judge by::

    @pytest.mark.consistory("linearizability", object="queue")
    def test_queue(recorder):
        ...
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterator

import pytest

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


@pytest.fixture
def recorder(request: Any, tmp_path: Any) -> Iterator[Recorder]:
    """Records calls; what they did is judged when the test is over."""
    marker = request.node.get_closest_marker("consistory")
    models = marker.args if marker else ()
    options = dict(marker.kwargs) if marker else {}
    failures = options.pop("failures", ())
    init = options.pop("init", None)
    shared = Recorder(
        object=options.pop("object", None),
        failures=failures,
        init=init,
        path=tmp_path / "recording.jsonl",
    )
    yield shared
    try:
        if len(shared):
            folder = request.config.getoption("--consistory-draw") or tmp_path
            name = re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.name)
            try:
                shared.expect(*models, draw=os.path.join(folder, f"{name}.svg"), **options)
            except AssertionError as error:
                # The text says it all; a traceback through the fixture says nothing.
                pytest.fail(str(error), pytrace=False)
    finally:
        shared.close()
