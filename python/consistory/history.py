"""Histories from files, texts, Python objects and tables."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from . import _native
from ._native import History
from .errors import ReadError, package
from .tables import histories_of_table, is_table, read_table, tables_in

PathLike = Union[str, "os.PathLike[str]"]


def _restore(text: str, source: str, index: int) -> History:
    return History._placed(text, source, index)


def read_all(
    paths: Union[PathLike, Iterable[PathLike]], *, format: Optional[str] = None
) -> Iterator[History]:
    """Reads the histories of files and folders one by one, when they are requested.

    The format and a compression by gzip or zstd are detected. Parquet and Feather files are read as
    tables. A malformed file raises ``ReadError`` with all its positions and yields none of its histories.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    for path in paths:
        name = os.fspath(path)
        if is_table(name):
            yield from read_table(name)
        elif os.path.isdir(name) and tables_in(name):
            yield from read_all(files_in(name), format=format)
        else:
            yield from _native.read([name], format)


def files_in(folder: str) -> List[str]:
    """Returns the paths of a folder's histories: its tables, then the files of the native reader."""
    tables = tables_in(folder)
    try:
        others = _native.inputs([folder])
    except ReadError:
        if not tables:
            raise
        others = []
    return tables + others


def read(path: PathLike, *, format: Optional[str] = None) -> List[History]:
    """Reads all histories of a file or folder, in any format that ``consistory check`` reads.

    Jepsen's ``history.edn``, ``results.json`` and log files are among them; ``docs/formats.md`` has the
    list.
    """
    return list(read_all(path, format=format))


def _line(operation: Mapping[str, Any]) -> str:
    try:
        return json.dumps(operation, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise ReadError(
            f"an operation cannot be written down: {error}",
            hint="values are None, booleans, integers, strings and lists of these",
        ) from None


def _number(value: Any) -> Any:
    """Converts objects that represent a number or a list, such as the scalars of numpy."""
    if hasattr(value, "__index__"):
        return value.__index__()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a value of a history")


def _from_operations(
    operations: Iterable[Mapping[str, Any]],
    *,
    init: Optional[Mapping[str, Any]] = None,
    final: Optional[Mapping[str, Any]] = None,
    name: Optional[str] = None,
) -> History:
    """Builds a history from dictionaries with the fields of JSON lines.

    Consecutive operations of a ``session`` are in program order. ``init`` and ``final`` contain the values
    of keys at the beginning and at the end.

    >>> History.from_operations([
    ...     {"session": "t0", "op": "write", "key": "x", "value": 1},
    ...     {"session": "t1", "op": "read", "key": "x", "value": 1},
    ... ])
    <consistory.History: 2 operations in 2 sessions>
    """
    named: Dict[str, Any] = {} if name is None else {"history": name}
    lines: List[str] = []
    if init:
        lines.append(_line({**named, "init": {str(key): value for key, value in init.items()}}))
    for number, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise ReadError(
                f"operation {number} is a {type(operation).__name__}, not a dictionary",
                hint='as in {"session": "t0", "op": "write", "key": "x", "value": 1}',
            )
        lines.append(_line({**named, **operation}))
    if final:
        lines.append(_line({**named, "final": {str(key): value for key, value in final.items()}}))
    return History.parse("\n".join(lines), "jsonl", "operations")


def _operations(self: History) -> List[Dict[str, Any]]:
    """The operations as dictionaries with the fields of JSON lines, in the order of the sessions."""
    lines = (json.loads(line) for line in self.to_text("jsonl").splitlines())
    operations = []
    for line in lines:
        line.pop("history", None)
        if "session" in line:
            operations.append(line)
    return operations


def _to_frame(self: History) -> Any:
    """The operations as a pandas frame, with one row per operation."""
    return package("pandas", "tables").DataFrame(self.operations)


def _from_table(
    table: Any,
    *,
    init: Optional[Mapping[str, Any]] = None,
    final: Optional[Mapping[str, Any]] = None,
) -> History:
    """Builds one history from a pandas frame, an Arrow table, or columns by name.

    The columns have the names of the fields of JSON lines: ``session``, ``op``, ``key``, ``value``,
    ``read``, ``call``, ``args``, ``returns``, ``start``, ``end``, ``txn``, ``status``.
    """
    histories = histories_of_table(table, init=init, final=final)
    if len(histories) != 1:
        raise ReadError(
            f"there are {len(histories)} histories where one is expected",
            hint="`consistory.from_table` returns all of a table's histories",
        )
    return histories[0]


def _check(self: History, *models: Any, **options: Any) -> Any:
    """Judges the history by models and returns a report, a sequence of verdicts.

    Without a model it is judged by every model that applies, and ``report.strongest`` contains the strongest
    satisfied ones. The options are those of ``consistory.Court``.
    """
    from .judging import court

    return court(models, **options).judge(self)


def _violation(self: History, *models: Any, **options: Any) -> Any:
    """The verdict of the first model that is violated, shrunk, or ``None``."""
    for verdict in _check(self, *models, **options):
        if verdict.is_violation:
            return verdict.shrink()
    return None


def _write(self: History, path: PathLike, *, format: Optional[str] = None) -> None:
    """Writes the history to a file; the format is that of the extension unless it is given.

    If the name ends in ``.gz``, the file is compressed.
    """
    name = os.fspath(path)
    is_compressed = name.endswith(".gz")
    extension = os.path.splitext(name[: -len(".gz")] if is_compressed else name)[1].lstrip(".")
    known = {"ndjson": "jsonl", "txt": "hist", "": "hist", "bincode": "dbcop-binary"}
    data = self.to_bytes(format or known.get(extension, extension))
    with open(name, "wb") as file:
        file.write(gzip.compress(data, mtime=0) if is_compressed else data)


def _html(self: History) -> str:
    """Shows the history as text."""
    from html import escape

    text = self.to_text() if len(self) <= 2000 else repr(self)
    return f"<pre>{escape(text)}</pre>"


def from_texts(texts: Sequence[str], **options: Any) -> List[History]:
    """Parses one history from each text."""
    return [History.parse(text, **options) for text in texts]


for _name, _method in {
    "from_operations": staticmethod(_from_operations),
    "from_table": staticmethod(_from_table),
    "from_pandas": staticmethod(_from_table),
    "from_arrow": staticmethod(_from_table),
    "operations": property(_operations),
    "to_frame": _to_frame,
    "check": _check,
    "violation": _violation,
    "write": _write,
    "_repr_html_": _html,
}.items():
    setattr(History, _name, _method)
