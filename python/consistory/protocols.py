"""Coherence protocols in Murphi: every run explored, sequential consistency proved."""

from __future__ import annotations

import os
from typing import Any, List, NamedTuple, Optional, Union

from . import _native
from ._native import History
from .errors import ReadError


class Verification(NamedTuple):
    """The result of verifying a protocol."""

    #: The file or text.
    source: str
    #: ``consistent`` (proved), ``violation``, ``undecided``, ``unproved`` (there is nothing to prove) or,
    #: for the ordinary checks alone, ``holds``.
    verdict: str
    #: What is wrong, or why there is no verdict.
    because: Optional[str]
    #: Number of states explored.
    states: int
    #: Depth of the exploration.
    depth: int
    #: The rules of a shortest run to what is wrong.
    run: List[str]
    #: The history of that run, if it is not sequentially consistent.
    history: Optional[History]


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
    checks are made: invariants, errors and deadlocks.
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
