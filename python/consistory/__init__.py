"""A court for histories: decides whether the recorded behaviour of a concurrent system is allowed by
its consistency model, and shows why.

>>> import consistory
>>> history = consistory.History.parse("t0: w(x,1) w(y,1)\\nt1: r(y,1) r(x,0)")
>>> [(verdict.model, verdict.verdict) for verdict in history.check("cc", "pso")]
[('cc', 'violation'), ('pso', 'consistent')]

Every verdict has a certificate that an independent checker has accepted. ``docs/python.md`` is the
guide, ``docs/cluster.md`` is about many machines.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from . import errors, litmus
from ._native import Court, History, Report, Verdict, __version__
from .errors import (
    DefinitionError,
    DoesNotApply,
    Error,
    FormatError,
    Impossible,
    InternalError,
    MissingPackage,
    ModelError,
    ObjectError,
    ReadError,
    Undecided,
    Violation,
)
from .generating import generate
from .history import from_texts, read, read_all
from .judging import Definition, check, check_many, court, to_frame
from .models import Separation, contrast, models
from .objects import reads
from .protocols import Verification, verify
from .recorder import Recorder


def from_table(
    table: Any,
    *,
    init: Optional[Mapping[str, Any]] = None,
    final: Optional[Mapping[str, Any]] = None,
) -> List[History]:
    """Builds all histories of a pandas frame, an Arrow table, or columns by name.

    Consecutive rows with the same ``history`` are one history; ``init`` and ``final`` apply to each.
    """
    from .tables import histories_of_table

    return histories_of_table(table, init=init, final=final)


__all__ = [
    "Court",
    "Definition",
    "DefinitionError",
    "DoesNotApply",
    "Error",
    "FormatError",
    "History",
    "Impossible",
    "InternalError",
    "MissingPackage",
    "ModelError",
    "ObjectError",
    "ReadError",
    "Recorder",
    "Report",
    "Separation",
    "Undecided",
    "Verdict",
    "Verification",
    "Violation",
    "__version__",
    "check",
    "check_many",
    "contrast",
    "court",
    "errors",
    "from_table",
    "from_texts",
    "generate",
    "litmus",
    "models",
    "read",
    "read_all",
    "reads",
    "to_frame",
    "verify",
]
