"""Litmus tests: small programs, and the outcomes that memory models allow.

>>> from consistory import litmus
>>> [both] = [o for o in litmus.outcomes("X=1; r1=Y // Y=1; r2=X", "tso") if set(o.values()) == {0}]
"""

from __future__ import annotations

import os
from html import escape
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

from . import _native
from .errors import ModelError, ReadError, package


class Outcomes:
    """The outcomes of a test under a model: a sequence of dictionaries from names to values.

    - ``test``: The name of the test.
    - ``model``: The id of the memory model.
    - ``condition``: The result of the test's condition: ``allowed``, ``forbidden``, ``holds``, ``fails``,
      ``undefined`` (a test of C with undefined behaviour) or ``None``.
    - ``program``: The program as a table, with one column per thread.
    """

    def __init__(self, found: Dict[str, Any], model: str) -> None:
        self.test: str = found["test"]
        self.model = model
        self.condition: Optional[str] = found["condition"]
        self.program: str = found["program"]
        self._outcomes: List[Dict[str, Any]] = found["outcomes"]

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self._outcomes)

    def __getitem__(self, at: int) -> Dict[str, Any]:
        return self._outcomes[at]

    def __contains__(self, outcome: object) -> bool:
        """Whether an outcome has all the values of a dictionary."""
        if not isinstance(outcome, dict):
            return False
        return any(all(o.get(k) == v for k, v in outcome.items()) for o in self._outcomes)

    def __repr__(self) -> str:
        condition = f", {self.condition}" if self.condition else ""
        return f"<consistory.litmus.Outcomes {self.test} under {self.model}: {len(self)}{condition}>"

    def _repr_html_(self) -> str:
        """Shows the program and the outcomes as a table."""
        names = list(dict.fromkeys(name for outcome in self._outcomes for name in outcome))
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(o.get(name, '')))}</td>" for name in names) + "</tr>"
            for o in self._outcomes
        )
        condition = f": {self.condition}" if self.condition else ""
        return (
            f"<pre>{escape(self.program)}</pre><table><tr>{head}</tr>{rows}</table>"
            f"<p>{len(self)} outcomes under {escape(self.model)}{condition}</p>"
        )

    def to_frame(self) -> Any:
        """The outcomes as a pandas frame."""
        return package("pandas", "tables").DataFrame(self._outcomes)


class Difference(NamedTuple):
    """A smallest program that separates two memory models.

    - ``program``: The program as a table, with one column per thread.
    - ``accesses``: Number of its accesses.
    - ``only_left``: The outcomes that only the first model allows.
    - ``only_right``: The outcomes that only the second model allows.
    """

    program: str
    accesses: int
    only_left: List[Dict[str, int]]
    only_right: List[Dict[str, int]]


def outcomes(
    test: Union[str, "os.PathLike[str]"],
    model: str,
    *,
    style: str = "axiomatic",
    budget: float = 60.0,
) -> Outcomes:
    """Finds every outcome of a test under a memory model.

    ``test`` is a program such as ``X=1; r1=Y // Y=1; r2=X``, the text of a ``.litmus`` test, or the
    path of one; tests of instruction sets and of C are run as candidate executions, under models such as
    ``aarch64`` or ``rc11``, or the path of a model in cat. ``style`` is ``axiomatic``, ``operational`` or
    ``definition``.
    """
    text, source = _text(test)
    return Outcomes(_native.outcomes(text, model, style=style, budget=budget, source=source), model)


def _text(test: Union[str, "os.PathLike[str]"]) -> "tuple[str, str]":
    name = os.fspath(test)
    if isinstance(test, os.PathLike) or (name.endswith(".litmus") and "\n" not in name):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                return file.read(), name
        except OSError as error:
            raise ReadError(f"cannot read {name}: {error.strerror or error}", source=name) from error
    return name, "test"


def contrast(
    left: str,
    right: str,
    *,
    bound: int = 4,
    style: str = "axiomatic",
    all: bool = False,
    fences: bool = True,
    dependencies: bool = False,
    budget: float = 60.0,
    jobs: Optional[int] = None,
) -> List[Difference]:
    """Finds the smallest program that separates two memory models, or all minimal ones.

    The list is empty if no program of up to ``bound`` accesses separates them.
    """
    if bound < 1:
        raise ModelError(f"the bound {bound} is not a number of accesses", hint="it is 1 or more")
    found = _native.contrast_litmus(
        left,
        right,
        bound=bound,
        style=style,
        all=all,
        fences=fences,
        dependencies=dependencies,
        budget=budget,
        jobs=jobs,
    )
    return [
        Difference(line["program"], line["accesses"], line["only_left"], line["only_right"])
        for line in found
    ]
