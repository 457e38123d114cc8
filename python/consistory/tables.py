"""Histories from tables: pandas frames, Arrow tables, Parquet files.

The native part takes columns in three forms: 64-bit integers as bytes, texts as codes into a
dictionary, and lists of Python objects. This module converts columns of pandas and Arrow to these forms.
Columns of integers and texts cost a few nanoseconds per row; others cost a Python object per row.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._native import History
from .errors import ReadError, package

#: The columns that a table may have.
COLUMNS = (
    "history",
    "session",
    "op",
    "key",
    "value",
    "read",
    "call",
    "args",
    "returns",
    "start",
    "end",
    "txn",
    "status",
)
#: Columns whose texts are names, which occur often.
_NAMES = ("history", "session", "op", "key", "call", "txn", "status")
#: Columns that may contain times of the table's own type, which are converted to nanoseconds.
_TIMES = ("start", "end")

Column = Tuple[Any, ...]


def _is_arrow(table: Any) -> bool:
    return hasattr(table, "__arrow_c_stream__") and not hasattr(table, "iloc")


def histories_of_table(
    table: Any,
    *,
    init: Optional[Mapping[str, Any]] = None,
    final: Optional[Mapping[str, Any]] = None,
    source: Optional[str] = None,
) -> List[History]:
    """Builds the histories of a table: consecutive rows with one ``history`` are one.

    ``init`` and ``final`` hold for every history. A missing ``value`` is the key's initial value; a
    missing ``returns`` is ``None`` if the call returned, and unknown otherwise.
    """
    rows: int
    columns: Any
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        rows, columns = len(table), _pandas_columns(table)
    elif _is_arrow(table) or type(table).__module__.startswith("pyarrow"):
        rows, columns = _arrow_columns(table)
    elif isinstance(table, Mapping):
        named = {str(name): list(column) for name, column in table.items()}
        lengths = {len(column) for column in named.values()}
        if len(lengths) > 1:
            raise ReadError(f"the columns have different lengths: {sorted(lengths)}")
        rows = lengths.pop() if lengths else 0
        _refuse_unknown(list(named))
        columns = {name: ("objects", _objects(name, column)) for name, column in named.items()}
    else:
        raise TypeError(
            "a table is a pandas frame, an Arrow table or a dictionary of columns, "
            f"not {type(table).__name__}"
        )
    columns["init"] = dict(init) if init else None
    columns["final"] = dict(final) if final else None
    columns["source"] = source
    return History._from_columns(rows, columns)


#: File extensions of tables.
TABLE_ENDINGS = (".parquet", ".feather", ".arrow")


def is_table(name: Any) -> bool:
    """Checks whether a path or URI is that of a table, by its extension."""
    if not isinstance(name, (str, os.PathLike)):
        return False
    text = os.fspath(name)
    return isinstance(text, str) and text.partition("?")[0].endswith(TABLE_ENDINGS)


def tables_in(folder: str) -> List[str]:
    """Returns the paths of the tables in a folder and its subfolders, in the order of their names."""
    return sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(TABLE_ENDINGS)
    )


def read_table(path: str, **options: Any) -> List[History]:
    """Reads the histories of a Parquet or Feather file, by its path or URI."""
    pyarrow = package("pyarrow", "tables")
    feather, parquet = package("pyarrow.feather", "tables"), package("pyarrow.parquet", "tables")
    fs = package("pyarrow.fs", "tables")
    try:
        system, name = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
        with system.open_input_file(name) as file:
            if name.endswith(".parquet"):
                table = parquet.read_table(file)
            else:
                table = feather.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise ReadError(f"cannot read {path}: {error}", source=path) from error
    try:
        return histories_of_table(table, source=path, **options)
    except ReadError as error:
        raise ReadError(f"{path}: {error.message}", hint=error.hint, source=path) from None


def _refuse_unknown(names: List[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise ReadError(
            f"unknown column {unknown[0]!r}",
            hint=f"columns are {', '.join(COLUMNS)}; leave the others out",
        )


def _objects(name: str, column: List[Any]) -> List[Any]:
    """Converts Python objects to values: floats that represent missing or whole numbers are replaced."""

    def value(cell: Any) -> Any:
        if isinstance(cell, float):
            if cell != cell:
                return None
            if cell.is_integer():
                return int(cell)
            raise ReadError(
                f"{cell} in the column {name!r} is not an integer",
                hint="write fractions as strings",
            )
        if hasattr(cell, "tolist"):
            return cell.tolist()
        if name == "args" and isinstance(cell, str):
            try:
                return json.loads(cell)
            except ValueError:
                raise ReadError(
                    f"{cell!r} in the column 'args' is not a list",
                    hint="a list of Python, or the text of one in JSON such as [1, 2]",
                ) from None
        return cell

    return [value(cell) for cell in column]


def _pandas_columns(frame: Any) -> Dict[str, Column]:
    import pandas

    _refuse_unknown([str(name) for name in frame.columns])
    columns: Dict[str, Column] = {}
    for name in frame.columns:
        series = frame[name]
        columns[str(name)] = _pandas_column(pandas, str(name), series)
    return columns


def _pandas_column(pandas: Any, name: str, series: Any) -> Column:
    kind, missing = series.dtype.kind, series.isna()
    has_missing = bool(missing.any())
    if kind in "mM" and name in _TIMES:
        # Times of any unit and zone are converted to nanoseconds.
        plain = series.dt.tz_convert(None) if getattr(series.dt, "tz", None) is not None else series
        wide = plain.to_numpy().astype("datetime64[ns]" if kind == "M" else "timedelta64[ns]")
        valid = (~missing).to_numpy().astype("uint8").tobytes() if has_missing else None
        return ("ints", wide.view("<i8").tobytes(), valid)
    if kind in "iuf" and name not in _NAMES:
        if kind == "f" and not ((series == series.round()) | missing).all():
            raise ReadError(
                f"the column {name!r} has numbers that are not integers",
                hint="write fractions as strings",
            )
        filled = series.fillna(0) if has_missing else series
        if kind in "uf" and len(filled) and not -(2**63) <= min(filled) <= max(filled) < 2**63:
            raise ReadError(f"the column {name!r} has numbers beyond 64 bits", hint="write them as strings")
        valid = (~missing).to_numpy().astype("uint8").tobytes() if has_missing else None
        return ("ints", filled.to_numpy().astype("<i8").tobytes(), valid)
    if name in _NAMES:
        codes, found = pandas.factorize(series)
        return ("codes", codes.astype("<i4").tobytes(), _names(name, list(found)))
    return ("objects", _objects(name, list(series)))


def _names(name: str, found: List[Any]) -> List[Any]:
    """Converts the values of a dictionary to names; numbers become texts."""
    return [
        str(int(cell))
        if not isinstance(cell, (str, bool)) and (hasattr(cell, "__index__") or isinstance(cell, float))
        else cell
        for cell in found
    ]


def _arrow_columns(table: Any) -> Tuple[int, Dict[str, Column]]:
    pyarrow = package("pyarrow", "tables")
    if not isinstance(table, pyarrow.Table):
        table = pyarrow.table(table)
    _refuse_unknown(list(table.column_names))
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = _arrow_column(pyarrow, name, table.column(name))
        except pyarrow.ArrowException as error:
            raise ReadError(f"the column {name!r} cannot be read: {error}") from error
    return table.num_rows, columns


def _arrow_column(pyarrow: Any, name: str, column: Any) -> Column:
    import pyarrow.compute as compute

    types = pyarrow.types
    kind = column.type
    if types.is_null(kind):
        return ("objects", [None] * len(column))
    if name in _TIMES and types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("ns", kind.tz)).cast(pyarrow.int64())
        kind = column.type
    if name in _TIMES and types.is_duration(kind):
        column = column.cast(pyarrow.duration("ns")).cast(pyarrow.int64())
        kind = column.type
    if getattr(types, "is_string_view", lambda kind: False)(kind):
        column = column.cast(pyarrow.large_string())
        kind = column.type
    if types.is_integer(kind) and name not in _NAMES:
        whole = column.cast(pyarrow.int64())
        valid = None
        if whole.null_count:
            valid = compute.is_valid(whole).combine_chunks()
            valid = valid.cast(pyarrow.uint8()).to_numpy(zero_copy_only=False).tobytes()
            whole = whole.fill_null(0)
        return ("ints", whole.to_numpy().tobytes(), valid)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    if is_text or (name in _NAMES and types.is_integer(kind)):
        encoded = column if types.is_dictionary(kind) else column.dictionary_encode()
        encoded = encoded.unify_dictionaries().combine_chunks()
        if hasattr(encoded, "chunk"):
            encoded = encoded.chunk(0) if encoded.num_chunks else None
        if encoded is None or len(encoded) == 0:
            return ("codes", b"", [])
        codes = encoded.indices.fill_null(-1).cast(pyarrow.int32())
        found = encoded.dictionary.to_pylist()
        found = _names(name, found) if name in _NAMES else _objects(name, found)
        return ("codes", codes.to_numpy(zero_copy_only=False).tobytes(), found)
    return ("objects", _objects(name, column.to_pylist()))


def table_of_histories(histories: Any) -> Any:
    """Builds one Arrow table of histories, with one row per operation, in the columns that are read back.

    Values are integers if all of them are, and texts of JSON otherwise.
    """
    pyarrow = package("pyarrow", "tables")
    rows: List[Dict[str, Any]] = []
    for number, history in enumerate(histories):
        name = history.name if history.name is not None else str(number)
        rows.extend({"history": name, **operation} for operation in history.operations)
    names = [name for name in COLUMNS if any(name in row for row in rows)]
    return pyarrow.table({name: [row.get(name) for row in rows] for name in names})
