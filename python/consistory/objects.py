"""Objects of one's own as Python classes.

A class stands for the sequential object: a new instance is its initial state, and its public methods
are its calls. A method may change the instance; the search restores the instance before each call. A
method that is not possible in a state, such as locking a lock that is held, raises ``Impossible``.

The classes must be importable or at least picklable, and their methods must depend on nothing but the
instance and the arguments.
"""

from __future__ import annotations

import inspect
import marshal
import pickle
from typing import Any, Callable, List, Optional, Tuple, TypeVar

from .errors import DefinitionError, Impossible

_F = TypeVar("_F", bound=Callable[..., Any])


def reads(method: _F) -> _F:
    """Declares that a method never changes the instance, which makes searches faster."""
    method.__consistory_reads__ = True  # type: ignore[attr-defined]
    return method


def freeze(value: Any) -> Any:
    """Returns a form of a value that is equal exactly if the values are, for ``marshal``."""
    if value is None or isinstance(value, (bool, int, str, bytes, float)):
        return (type(value).__name__, value)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(freeze(item) for item in value))
    if isinstance(value, (set, frozenset)):
        return ("set", tuple(sorted(marshal.dumps(freeze(item), 2) for item in value)))
    if isinstance(value, dict):
        pairs = [(marshal.dumps(freeze(key), 2), freeze(item)) for key, item in value.items()]
        # The order of a plain dictionary is part of what iteration returns, so it counts.
        return ("dict", tuple(pairs))
    slots = getattr(value, "__dict__", None)
    if slots is not None:
        return (type(value).__qualname__, freeze(slots))
    return ("pickle", pickle.dumps(value, 4))


class Adapter:
    """What the search calls: states as pairs of a key and a pickled instance."""

    def __init__(self, made: Any) -> None:
        if inspect.isclass(made):
            kind, self._first = made, None
            try:
                inspect.signature(made).bind()
            except TypeError as error:
                raise DefinitionError(
                    f"the class {made.__name__} cannot be made without arguments: {error}",
                    hint="hand over an instance instead, which is then the initial state",
                ) from None
        else:
            kind, self._first = type(made), made
        self._kind = kind
        self.name = kind.__name__
        self.methods: List[Tuple[str, List[str], bool]] = []
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if name.startswith("_"):
                continue
            self.methods.extend(_methods(kind, name, method))
        if not self.methods:
            raise DefinitionError(
                f"the class {kind.__name__} has no public methods",
                hint="every method without a leading underscore is a call of the object",
            )

    def _kept(self, instance: Any) -> Tuple[bytes, bytes]:
        return marshal.dumps(freeze(instance), 2), pickle.dumps(instance, 4)

    def initial(self) -> Tuple[bytes, bytes]:
        return self._kept(self._kind() if self._first is None else self._first)

    def invoke(
        self, state: bytes, method: str, args: Tuple[Any, ...]
    ) -> Optional[Tuple[Tuple[bytes, bytes], Any]]:
        instance = pickle.loads(state)
        try:
            returned = getattr(instance, method)(*args)
        except Impossible:
            return None
        return self._kept(instance), returned


def _methods(kind: type, name: str, method: Any) -> List[Tuple[str, List[str], bool]]:
    """Lists a method once for each number of arguments that it takes."""
    is_read = bool(getattr(method, "__consistory_reads__", False))
    names: List[str] = []
    required = 0
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY):
            if parameter.default is parameter.empty:
                raise DefinitionError(
                    f"{kind.__name__}.{name} takes {parameter}, which a history cannot express",
                    hint="use plain parameters; a call has a list of arguments",
                )
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        names.append(parameter.name)
        if parameter.default is parameter.empty:
            required = len(names)
    return [(name, names[:count], is_read) for count in range(required, len(names) + 1)]


def adapt(made: Any) -> Adapter:
    """Makes what the search calls of a class or an instance."""
    return Adapter(made)
