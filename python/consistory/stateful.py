"""Hypothesis's stateful tests, judged as histories.

``RecordedMachine`` is a ``RuleBasedStateMachine`` whose rules record their calls; when a run is over the
recording is judged. Rules that start threads or tasks record real concurrency, and Hypothesis shrinks
the sequence of rules while the failure shows the shrunk history.
"""

from __future__ import annotations

from typing import Any, Tuple

from hypothesis.stateful import RuleBasedStateMachine

from .recorder import Recorder


class RecordedMachine(RuleBasedStateMachine):
    """A state machine whose recorded calls are judged at the end of each run.

    Set ``object`` and ``models`` in the class, and record calls with ``self.recorder``.

    - ``object``: The object whose calls are recorded, as in ``check``.
    - ``models``: The models that the history must satisfy.
    """

    object: Any = None
    models: Tuple[Any, ...] = ("linearizability",)

    def __init__(self) -> None:
        super().__init__()
        self.recorder = Recorder(object=type(self).object)

    def teardown(self) -> None:
        """Judges the recording of the run."""
        super().teardown()
        if len(self.recorder):
            self.recorder.expect(*type(self).models)
        self.recorder.close()
