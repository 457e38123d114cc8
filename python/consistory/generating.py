"""Generated histories."""

from __future__ import annotations

from typing import Any, Iterator, Optional, overload

from . import _native
from ._native import History
from .errors import ModelError


@overload
def generate(
    memory: Optional[str] = None,
    *,
    object: Optional[str] = None,
    transactions: Optional[str] = None,
    count: None = None,
    seed: int = 0,
    **options: Any,
) -> History: ...


@overload
def generate(
    memory: Optional[str] = None,
    *,
    object: Optional[str] = None,
    transactions: Optional[str] = None,
    count: int,
    seed: int = 0,
    **options: Any,
) -> Iterator[History]: ...


def generate(
    memory: Optional[str] = None,
    *,
    object: Optional[str] = None,
    transactions: Optional[str] = None,
    count: Optional[int] = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """Generates a history, or an iterator over ``count`` histories with consecutive seeds.

    ``memory``: a simulated memory that clients use, ``sc`` (the default), ``tso``, ``pso``, ``ccv``,
    ``cm`` or ``broken``. ``object``: a linearizable object that clients call, such as ``queue``.
    ``transactions``: the isolation level of a simulated store, such as ``si``.

    Options of all: ``sessions``, ``operations``, ``reads``. Of memories: ``variables``, ``rmws``,
    ``fences``, ``skew``, ``values``, ``lag``, ``plants``, ``distance``. Of objects: ``pending``,
    ``plants``, ``distance``. Of transactions: ``keys``, ``size``, ``lists``, ``skew``, ``aborted``,
    ``indeterminate``, ``times``, ``lag``, ``anomalies``, ``order``.
    """
    if sum(kind is not None for kind in (memory, object, transactions)) > 1:
        raise ModelError("give either a memory, an object or transactions")
    if count is not None:
        return _many(memory, object, transactions, count, seed, options)
    return _one(memory, object, transactions, seed, options)


def _one(
    memory: Optional[str],
    object: Optional[str],
    transactions: Optional[str],
    seed: int,
    options: Any,
) -> History:
    try:
        if object is not None:
            return _native.generate_calls(object, seed=seed, **options)
        if transactions is not None:
            return _native.generate_transactions(transactions, seed=seed, **options)
        return _native.generate_memory(memory or "sc", seed=seed, **options)
    except OverflowError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in {"seed": seed, **options}.items())
        raise ModelError(f"a number is out of range among {given}") from error


def _many(
    memory: Optional[str],
    object: Optional[str],
    transactions: Optional[str],
    count: int,
    seed: int,
    options: Any,
) -> Iterator[History]:
    for number in range(count):
        yield _one(memory, object, transactions, seed + number, options)
