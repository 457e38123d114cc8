"""User-defined objects as Python classes.

A class represents the sequential object: a new instance is its initial state, and its public methods
are its calls. A method may change the instance; the search restores the instance before each call. A
method that is not possible in a state, such as locking a lock that is held, raises ``Impossible``.

The attributes of an instance must be picklable, and the methods must depend on nothing but the instance
and the arguments. The class itself may be defined anywhere, also in a function or a notebook, unless it
has slots, a built-in base, or custom pickling: then it must be importable.
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
    """Returns a canonical form of a value, for ``marshal``; different values have different forms.

    Equal values of the usual types have equal forms. Those of other types may have several forms, which only
    costs the search some time.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, float):
        return (kind.__name__, value)
    if kind in (list, tuple):
        return (kind.__name__, tuple(freeze(item) for item in value))
    if kind in (set, frozenset):
        return ("set", tuple(sorted(marshal.dumps(freeze(item), 2) for item in value)))
    if kind is dict:
        pairs = [(marshal.dumps(freeze(key), 2), freeze(item)) for key, item in value.items()]
        # The order of a dictionary affects iteration, so it is part of the form.
        return ("dict", tuple(pairs))
    if _is_plain(kind):
        return (kind.__qualname__, freeze(vars(value)))
    return ("pickle", pickle.dumps(value, 4))


class _Plain:
    """A class whose instances have no state except their attributes."""


def _is_plain(kind: type) -> bool:
    """Checks whether the state of an instance consists of its attributes."""
    own_ways = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__new__")
    same = all(getattr(kind, name, None) == getattr(_Plain, name, None) for name in own_ways)
    has_slots = any("__slots__" in vars(base) for base in kind.__mro__[:-1])
    return same and not has_slots and kind.__basicsize__ == _Plain.__basicsize__


class Adapter:
    """The interface for the search: states as pairs of a key and a pickled instance."""

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
        self._is_plain = _is_plain(kind)
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
        kept = vars(instance) if self._is_plain else instance
        return marshal.dumps(freeze(instance), 2), pickle.dumps(kept, 4)

    def _restored(self, state: bytes) -> Any:
        kept = pickle.loads(state)
        if not self._is_plain:
            return kept
        instance = object.__new__(self._kind)
        vars(instance).update(kept)
        return instance

    def initial(self) -> Tuple[bytes, bytes]:
        return self._kept(self._kind() if self._first is None else self._first)

    def invoke(
        self, state: bytes, method: str, args: Tuple[Any, ...]
    ) -> Optional[Tuple[Tuple[bytes, bytes], Any]]:
        instance = self._restored(state)
        try:
            returned = getattr(instance, method)(*args)
        except Impossible:
            return None
        return self._kept(instance), returned


def _methods(kind: type, name: str, method: Any) -> List[Tuple[str, List[str], bool]]:
    """Lists a method once for each number of arguments that it accepts."""
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
    """Builds the adapter of a class or an instance."""
    return Adapter(made)
