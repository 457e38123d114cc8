"""Coherence protocols in Murphi: explores every run, and proves sequential consistency."""

from __future__ import annotations

import os
from html import escape
from typing import Any, List, NamedTuple, Optional, Union

from . import _native
from ._native import History
from .errors import ReadError


class Verification(NamedTuple):
    """The result of verifying a protocol.

    - ``source``: The file or text.
    - ``verdict``: ``consistent`` (proved), ``violation``, ``undecided``, ``unproved`` (there is nothing to
      prove) or, for the ordinary checks alone, ``holds``.
    - ``because``: The error, or the reason why there is no verdict.
    - ``states``: Number of states explored.
    - ``depth``: Depth of the exploration.
    - ``run``: The rules of a shortest run to the error.
    - ``history``: The history of that run, if it is not sequentially consistent.
    """

    source: str
    verdict: str
    because: Optional[str]
    states: int
    depth: int
    run: List[str]
    history: Optional[History]

    def _repr_html_(self) -> str:
        """Shows the verdict, the run, and the report on its history."""
        because = "" if self.because is None else f": {escape(self.because)}"
        run = "".join(f"<li>{escape(rule)}</li>" for rule in self.run)
        shown = (
            f"<p><b>{escape(self.source)}</b> {self.verdict}{because} "
            f"({self.states} states, depth {self.depth})</p>"
        )
        if run:
            shown += f"<ol>{run}</ol>"
        if self.history is not None:
            shown += self.history.check("sc")[0]._repr_html_()
        return shown


def verify(
    protocol: Union[str, "os.PathLike[str]"],
    *,
    plain: bool = False,
    symmetry: bool = True,
    deadlock: bool = True,
    budget: float = 60.0,
    memory: int = 4 << 30,
    jobs: Optional[int] = None,
) -> Verification:
    """Proves that every run of a protocol is sequentially consistent, or finds one that is not.

    ``protocol`` is the path of a description in Murphi, or its text. With ``plain`` only the ordinary
    checks are performed: invariants, errors and deadlocks.
    """
    name = os.fspath(protocol)
    if isinstance(protocol, os.PathLike) or "\n" not in name:
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                text, source = file.read(), name
        except OSError as error:
            raise ReadError(
                f"cannot read {name}: {error.strerror or error}",
                source=name,
                hint="a protocol is the path of its description, or its text",
            ) from error
    else:
        text, source = name, "protocol"
    found: Any = _native.verify(
        text,
        source,
        plain=plain,
        symmetry=symmetry,
        deadlock=deadlock,
        budget=budget,
        memory=memory,
        jobs=jobs,
    )
    return Verification(**found)
