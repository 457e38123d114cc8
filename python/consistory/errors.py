"""The exceptions of the package, with positions and hints."""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, Optional


class Error(Exception):
    """An error of reading, judging or writing.

    ``str(error)`` is the whole message, with the affected lines and the hint.

    - ``message``: The error in one line.
    - ``hint``: The remedy.
    - ``source``: The affected file or text.
    - ``index``: The index of the history in its source, counted from 0.
    - ``line``: The line of the first position, counted from 1.
    - ``column``: The column of the first position, counted from 1.
    - ``places``: All positions: dictionaries of ``source``, ``line``, ``column``, ``text``, ``message``,
      ``hint``.
    """

    message: str
    hint: Optional[str]
    source: Optional[str]
    index: Optional[int]
    line: Optional[int]
    column: Optional[int]
    places: List[Dict[str, Any]]

    def __init__(
        self,
        message: str,
        *,
        hint: Optional[str] = None,
        source: Optional[str] = None,
        index: Optional[int] = None,
        rendered: Optional[str] = None,
        places: Optional[List[Dict[str, Any]]] = None,
    ) -> None:
        self.message = message
        self.hint = hint
        self.index = index
        self.places = places or []
        first = self.places[0] if self.places else {}
        self.source = source or first.get("source")
        self.line = first.get("line")
        self.column = first.get("column")
        self.rendered = rendered
        if rendered:
            text = rendered.rstrip()
        elif hint:
            text = f"{message}\n  = help: {hint}"
        else:
            text = message
        super().__init__(text)

    def __reduce__(self) -> Any:
        parts = {
            "hint": self.hint,
            "source": self.source,
            "index": self.index,
            "rendered": self.rendered,
            "places": self.places,
        }
        return _rebuild, (type(self), self.message, parts)


def _rebuild(kind: type, message: str, parts: Dict[str, Any]) -> Error:
    error: Error = kind(message, **parts)
    return error


class ReadError(Error, ValueError):
    """A file, text or table is not a history."""


class FormatError(Error, ValueError):
    """A format is not known, or a history cannot be written in it."""


class ModelError(Error, ValueError):
    """A model, order, memory or other name is not known."""


class DefinitionError(Error, ValueError):
    """A user-defined model or object has errors."""


class ObjectError(Error, ValueError):
    """A history does not fit an object, or its object is ambiguous."""


class DoesNotApply(Error, ValueError):
    """A model does not apply to a history."""


class Undecided(Error):
    """The budget ran out before there was a verdict."""


class InternalError(Error, RuntimeError):
    """A defect of consistory; please report it."""


class Violation(Error, AssertionError):
    """A recorded history violates the model that a test asks for.

    ``verdict`` is the verdict on the shrunk history.
    """

    verdict: Any = None


class MissingPackage(Error, ImportError):
    """A required package is not installed."""


def package(name: str, extra: str) -> Any:
    """Imports a package that only some functions need; ``extra`` is the extra that brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"this needs the package {name.partition('.')[0]}: {error}",
            hint=f"pip install {name.partition('.')[0]}, or the extra {extra} of consistory",
        ) from error


class Impossible(Exception):
    """Raised by a method of an object's class: the call is not possible in this state."""
