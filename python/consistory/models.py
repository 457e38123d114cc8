"""The catalogue of models, and histories that separate them."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional

from . import _native
from ._native import History


def models() -> Dict[str, str]:
    """The ids of all models, with the family of each."""
    return dict(_native.MODELS)


class Separation(NamedTuple):
    """Whether one model allows a history that another forbids.

    - ``allows``: The model that allows.
    - ``forbids``: The model that forbids.
    - ``answer``: ``separated``, ``implied`` (it is proved that no history separates them), ``none`` up to the bound,
      or ``undecided``.
    - ``history``: A smallest such history.
    - ``operations``: Number of operations of the history, or the bound up to which there is none.
    - ``because``: The proof that there is none, or the reason of an undecided answer.
    """

    allows: str
    forbids: str
    answer: str
    history: Optional[History]
    operations: Optional[int]
    because: Optional[str]

    @property
    def verdict(self) -> Any:
        """The verdict of the model that forbids the history, or ``None``."""
        return None if self.history is None else self.history.check(self.forbids)[0]

    def _repr_html_(self) -> str:
        if self.history is None:
            return f"<p><b>{self.allows}</b> allows nothing that {self.forbids} forbids: {self.answer}</p>"
        return f"<p>{self.allows} allows and {self.forbids} forbids:</p>{self.verdict._repr_html_()}"


def contrast(
    first: str,
    second: str,
    *,
    bound: int = 7,
    sessions: Optional[int] = None,
    variables: Optional[int] = None,
    fences: bool = False,
    rmws: bool = False,
    order: str = "session",
    budget: float = 60.0,
    jobs: Optional[int] = None,
) -> List[Separation]:
    """Searches for smallest histories that one of two models allows and the other forbids.

    The models are two of registers, or two isolation levels: ids or paths of definition files. The first
    answer concerns histories that ``first`` allows and ``second`` forbids, the other one the converse.
    """
    names = [os.fspath(name) for name in (first, second)]
    found = _native.contrast(
        names[0],
        names[1],
        bound=bound,
        sessions=sessions,
        variables=variables,
        fences=fences,
        rmws=rmws,
        order=order,
        budget=budget,
        jobs=jobs,
    )
    return [
        Separation(
            side["allows"],
            side["forbids"],
            side["answer"],
            side.get("history"),
            side.get("operations"),
            side.get("because"),
        )
        for side in found
    ]
