"""Pieces of work that machines can share, and the folder of their results.

A *unit* is a piece of work that always gives the same result: some files, a range of a large file of JSON
lines, some rows of a large table, some seeds, a pair of models. Its result is one Parquet file whose name
follows from the unit's number. The file is written under a temporary name and then moved. A unit that runs
twice, because a machine died or two machines did the same work, therefore has one result, and a unit whose
file exists is not run again.

The folder contains ``run.json``, which describes the computation; ``parts/``, with one file per unit, whose
metadata contains its sums; and at the end ``summary.json``. A run has a digest of everything on which its
results depend: settings, the content of models and objects in files, the sizes and times of inputs.
"""

from __future__ import annotations

import concurrent.futures
import functools
import hashlib
import json
import os
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type

from . import _native
from .errors import Error, ReadError
from .history import files_in
from .judging import court
from .tables import histories_of_table, is_table, read_table

#: Approximate size of the input of a unit, in bytes.
PIECE_BYTES = 16 << 20
#: Largest number of files of a unit.
PIECE_FILES = 2000
#: Assumed size of a row of a table in bytes, about that of a line of JSON lines.
ROW_BYTES = 64
#: Bytes that are read at a time when a remote file is cut.
BLOCK_BYTES = 8 << 20
#: Schemes of URIs of stores in which a file appears only when it is complete.
OBJECT_STORES = ("s3", "gs", "gcs", "abfs", "abfss")

Unit = Dict[str, Any]


class RunError(Error, ValueError):
    """A run cannot be started, continued or finished."""


# Inputs


def plan_inputs(
    paths: Iterable[Any], *, format: Optional[str] = None, piece: int = PIECE_BYTES
) -> List[Unit]:
    """Cuts inputs into units: large files of JSON lines and large tables by ranges, small files together."""
    if piece < 1:
        raise RunError(f"a piece of {piece} bytes is too small", hint="as in piece=16 << 20")
    units: List[Unit] = []
    files: List[str] = []
    stamps: List[Any] = []
    size = 0

    def flush() -> None:
        nonlocal files, stamps, size
        if files:
            units.append({"kind": "files", "files": files, "format": format, "stamps": stamps})
        files, stamps, size = [], [], 0

    for name, length, changed in _files(paths):
        cut: List[Unit] = []
        if _is_lines(name, format) and length > 2 * piece:
            cut = [
                {"kind": "range", "start": start, "end": end, "first": first, "lines_before": lines}
                for start, end, first, lines in _cut_lines(name, piece)
            ]
        elif name.partition("?")[0].endswith(".parquet") and length > piece // 4:
            cut = [
                {"kind": "rows", "start": start, "end": end, "first": first}
                for start, end, first in _cut_rows(name, max(1, piece // ROW_BYTES))
            ]
        if len(cut) > 1 or (cut and length > piece):
            flush()
            units += [{**unit, "file": name, "stamp": [length, changed]} for unit in cut]
            continue
        if files and (size + length > piece or len(files) >= PIECE_FILES):
            flush()
        files.append(name)
        stamps.append([length, changed])
        size += length
    flush()
    if not units:
        raise RunError("there are no inputs", hint="name files, folders or URIs such as s3://bucket/runs")
    return units


def _is_lines(name: str, format: Optional[str]) -> bool:
    """Checks whether a file consists of JSON lines and is not compressed."""
    plain = name.partition("?")[0] if "://" in name else name
    if plain.endswith((".gz", ".zst")):
        return False
    return format == "jsonl" or (format is None and plain.endswith((".jsonl", ".ndjson")))


def _cut_lines(name: str, piece: int) -> List[Tuple[int, int, int, int]]:
    """Cuts a file of JSON lines where a history ends; a remote file is read once for that."""
    if "://" not in name:
        return _native.split_jsonl(name, piece)
    cutter = _native.LineCutter(piece)
    with _opened(name) as file:
        while True:
            block = file.read(BLOCK_BYTES)
            if not block:
                return cutter.finish()
            cutter.feed(block)


def _cut_rows(name: str, rows: int) -> List[Tuple[int, int, int]]:
    """Cuts a Parquet file where a history ends: first row, row after the last, index of the first history.

    Only the column ``history`` is read. A file that cannot be cut is one piece, and one that cannot be read is none.
    """
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.parquet

    pieces: List[Tuple[int, int, int]] = []
    try:
        with _opened(name) as opened:
            file = pyarrow.parquet.ParquetFile(opened)
            total = file.metadata.num_rows
            if total <= rows or "history" not in file.schema_arrow.names:
                return [(0, total, 0)]
            start = first = histories = before = 0
            last: Any = None
            for group in range(file.num_row_groups):
                column = file.read_row_group(group, columns=["history"]).column(0)
                if pyarrow.types.is_dictionary(column.type):
                    column = column.cast(column.type.value_type)
                if not (_is_text(column.type) or pyarrow.types.is_integer(column.type)):
                    return [(0, total, 0)]
                if not len(column):
                    continue
                here, previous = column.slice(1), column.slice(0, len(column) - 1)
                differs = compute.fill_null(compute.not_equal(here, previous), False)
                one_missing = compute.xor(compute.is_null(here), compute.is_null(previous))
                changes = compute.indices_nonzero(compute.or_(differs, one_missing)).to_numpy()
                head = column[0].as_py()
                is_new = before == 0 or head != last
                # Rows of this group at which histories start, counted from the start of the file.
                starts = [before] if is_new else []
                found = changes.astype("int64") + (before + 1)
                while True:
                    # The next start of a history at which the piece is full.
                    if starts and starts[0] - start >= rows and starts[0] > 0:
                        cut, index = starts[0], histories
                    else:
                        at = int(found.searchsorted(max(start + rows, 1)))
                        if at >= len(found):
                            break
                        cut, index = int(found[at]), histories + len(starts) + at
                    pieces.append((start, cut, first))
                    start, first = cut, index
                histories += len(starts) + len(found)
                before += len(column)
                last = column[len(column) - 1].as_py()
            pieces.append((start, total, first))
            return pieces
    except (pyarrow.ArrowException, OSError):
        # The file is not cut, and its unit reports the error.
        return []


def _is_text(kind: Any) -> bool:
    import pyarrow

    checks = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pyarrow.types, check)(kind) for check in checks if hasattr(pyarrow.types, check))


def _opened(name: str) -> Any:
    """Opens a file for reading at any position, by its path or URI."""
    from pyarrow import fs

    if "://" not in name:
        return fs.LocalFileSystem().open_input_file(os.path.abspath(name))
    system, path = fs.FileSystem.from_uri(name)
    return system.open_input_file(path)


def _files(paths: Iterable[Any]) -> Iterator[Tuple[str, int, Optional[int]]]:
    """Lists the files of inputs, with their sizes and the times of their last changes."""
    for path in paths:
        name = os.fspath(path)
        if "://" in name:
            yield from _remote_files(name)
        elif os.path.isdir(name):
            for found in files_in(name):
                yield (found, *_stamp(found))
        elif os.path.exists(name):
            yield (name, *_stamp(name))
        else:
            raise ReadError(f"cannot read {name}: there is no such file or folder", source=name)


def _stamp(name: str) -> Tuple[int, Optional[int]]:
    # A folder may be one history, whose files change on their own.
    if not os.path.isfile(name):
        return 0, None
    found = os.stat(name)
    return found.st_size, found.st_mtime_ns


def _remote_files(uri: str) -> Iterator[Tuple[str, int, Optional[int]]]:
    import pyarrow
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
        found = system.get_file_info(path)
        is_missing = found.type == fs.FileType.NotFound
        inside = []
        if not is_missing and found.type != fs.FileType.File:
            inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    except (pyarrow.ArrowException, OSError) as error:
        raise ReadError(f"cannot read {uri}: {error}", source=uri) from error
    if is_missing:
        raise ReadError(f"cannot read {uri}: there is no such file or folder", source=uri)
    # Parts before the path, such as a host, and after it, such as an endpoint, are kept.
    plain, question, options = uri.partition("?")
    at = plain.rstrip("/").rfind(path.rstrip("/"))
    start = plain[:at] if at > 0 else plain.split("://", 1)[0] + "://"
    if found.type == fs.FileType.File:
        yield uri, found.size or 0, found.mtime_ns
        return
    for file in sorted(inside, key=lambda info: info.path):
        # Files such as _SUCCESS and .crc belong to the programs that wrote the folder.
        if file.type == fs.FileType.File and not file.base_name.startswith(("_", ".")):
            yield f"{start}{file.path}{question}{options}", file.size or 0, file.mtime_ns


def _range_histories(unit: Unit) -> List[Any]:
    """Reads the histories of a range of a file of JSON lines."""
    with _opened(unit["file"]) as file:
        file.seek(unit["start"])
        data = file.read(unit["end"] - unit["start"])
    return _native.read_bytes(data, unit["file"], "jsonl", unit["lines_before"])


def _row_histories(unit: Unit) -> List[Any]:
    """Reads the histories of some rows of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    try:
        with _opened(unit["file"]) as opened:
            file = pyarrow.parquet.ParquetFile(opened)
            groups: List[int] = []
            skipped = at = 0
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if at + rows > unit["start"] and at < unit["end"]:
                    skipped = at if not groups else skipped
                    groups.append(group)
                at += rows
            table = file.read_row_groups(groups)
    except (pyarrow.ArrowException, OSError) as error:
        raise ReadError(f"cannot read {unit['file']}: {error}", source=unit["file"]) from error
    table = table.slice(unit["start"] - skipped, unit["end"] - unit["start"])
    try:
        return histories_of_table(table, source=unit["file"])
    except ReadError as error:
        # Rows count from the start of the piece.
        place = f"{unit['file']}, rows from {unit['start']}"
        raise ReadError(f"{place}: {error.message}", hint=error.hint, source=unit["file"]) from None


def _file_histories(name: str, format: Optional[str]) -> List[Any]:
    """Returns the histories of a file, or its path if the native reader reads it."""
    if is_table(name):
        return read_table(name)
    if "://" not in name:
        return [name]
    with _opened(name) as file:
        data = file.read()
    return _native.read_bytes(data, name, format)


# Work


def run_unit(unit: Unit, settings: Dict[str, Any]) -> Any:
    """Computes the result of a unit as an Arrow table."""
    work = {
        "files": _judge_inputs,
        "range": _judge_inputs,
        "rows": _judge_inputs,
        "seeds": _judge_seeds,
        "fuzz": _fuzz,
        "pair": _contrast,
    }
    return work[unit["kind"]](unit, settings)


_TEXTS = ("source", "name", "digest", "model", "verdict", "pattern", "via", "error")


def _verdict_table(parts: List[Dict[str, Any]], extra: Tuple[str, ...]) -> Any:
    import pyarrow

    kinds = {
        **dict.fromkeys(_TEXTS, pyarrow.string()),
        "index": pyarrow.int64(),
        "sessions": pyarrow.int32(),
        "operations": pyarrow.int32(),
        "millis": pyarrow.float64(),
        **dict.fromkeys(extra, pyarrow.string()),
    }
    names = ["source", "index", "name", "digest", "sessions", "operations", "model", "verdict"]
    names += ["pattern", "via", "millis", *extra, "error"]
    columns: Dict[str, Any] = {}
    for name in names:
        arrays = []
        for part in parts:
            values = part.get(name)
            rows = len(part["error"])
            arrays.append(pyarrow.array([None] * rows if values is None else values, kinds[name]))
        columns[name] = pyarrow.chunked_array(arrays, kinds[name])
    return pyarrow.table(columns)


def _extra(settings: Dict[str, Any]) -> Tuple[str, ...]:
    return tuple(
        name
        for name, key in (("certificate", "certificates"), ("shrunk", "shrink"))
        if settings.get(key)
    )


def _court(settings: Dict[str, Any]) -> Any:
    return court(settings.get("models") or (), jobs=1, **settings.get("options", {}))


def _judged(judge: Any, items: Any, first: int, settings: Dict[str, Any], format: Any) -> Any:
    return judge.judge_table(
        items,
        format,
        certificates=bool(settings.get("certificates")),
        shrink=bool(settings.get("shrink")),
        first=first,
    )


def _judge_inputs(unit: Unit, settings: Dict[str, Any]) -> Any:
    judge = _court(settings)
    work: List[Tuple[str, Callable[[], List[Any]], int]]
    if unit["kind"] in ("range", "rows"):
        reader = _range_histories if unit["kind"] == "range" else _row_histories
        work = [(unit["file"], functools.partial(reader, unit), unit["first"])]
    else:
        format = unit.get("format")
        work = [
            (name, functools.partial(_file_histories, name, format), 0) for name in unit["files"]
        ]
    parts = []
    for name, histories, first in work:
        # An input that cannot be read becomes a row, and the other inputs of the unit are judged.
        try:
            parts.append(_judged(judge, histories(), first, settings, unit.get("format")))
        except _unreadable() as error:
            parts.append(_error_part(name, error))
    return _verdict_table(parts, _extra(settings))


def _unreadable() -> Tuple[Type[BaseException], ...]:
    """The exceptions that are caused by an input, and not by this program."""
    import pyarrow

    return (Error, OSError, UnicodeError, pyarrow.ArrowException)


def _error_part(name: str, error: BaseException) -> Dict[str, Any]:
    source = error.source if isinstance(error, Error) else None
    return {"source": [source or name], "error": [str(error) or type(error).__name__]}


def _generated(unit: Unit, settings: Dict[str, Any]) -> Iterator[Any]:
    from .generating import generate

    for seed in range(unit["start"], unit["end"]):
        yield generate(seed=seed, **settings["generator"])


def _judge_seeds(unit: Unit, settings: Dict[str, Any]) -> Any:
    judge = _court(settings)
    columns = judge.judge_table(
        list(_generated(unit, settings)),
        None,
        certificates=bool(settings.get("certificates")),
        shrink=bool(settings.get("shrink")),
    )
    models = len(columns["error"]) // max(1, unit["end"] - unit["start"])
    columns["index"] = [unit["start"] + row // max(1, models) for row in range(len(columns["error"]))]
    columns["source"] = ["generated"] * len(columns["error"])
    return _verdict_table([columns], _extra(settings))


def _fuzz(unit: Unit, settings: Dict[str, Any]) -> Any:
    """Compares the deciders with the reference evaluator; returns one row per model, and per disagreement."""
    import pyarrow

    judge = _court(settings)
    rows: List[Dict[str, Any]] = []
    counts: Dict[str, List[int]] = {}
    for seed, history in zip(range(unit["start"], unit["end"]), _generated(unit, settings)):
        for verdict in judge.judge(history):
            fast = verdict.verdict
            slow, _ = history.evaluate(
                verdict.model, settings.get("options", {}).get("order", "session")
            )
            compared = counts.setdefault(verdict.model, [0, 0])
            if "undecided" in (fast, slow):
                compared[1] += 1
                continue
            compared[0] += 1
            if fast != slow:
                rows.append(
                    {
                        "model": verdict.model,
                        "seed": seed,
                        "decider": fast,
                        "evaluator": slow,
                        "history": history.to_text(),
                    }
                )
    for model, (compared_count, undecided) in counts.items():
        rows.append({"model": model, "compared": compared_count, "undecided": undecided})
    schema = pyarrow.schema(
        [
            ("model", pyarrow.string()),
            ("compared", pyarrow.int64()),
            ("undecided", pyarrow.int64()),
            ("seed", pyarrow.int64()),
            ("decider", pyarrow.string()),
            ("evaluator", pyarrow.string()),
            ("history", pyarrow.string()),
        ]
    )
    return pyarrow.Table.from_pylist(rows, schema)


def _contrast(unit: Unit, settings: Dict[str, Any]) -> Any:
    import pyarrow

    from .models import contrast

    sides = contrast(unit["first"], unit["second"], jobs=1, **settings.get("contrast", {}))
    rows = [
        {
            "allows": side.allows,
            "forbids": side.forbids,
            "answer": side.answer,
            "operations": side.operations,
            "because": side.because,
            "history": None if side.history is None else side.history.to_text(),
        }
        for side in sides
    ]
    schema = pyarrow.schema(
        [
            ("allows", pyarrow.string()),
            ("forbids", pyarrow.string()),
            ("answer", pyarrow.string()),
            ("operations", pyarrow.int64()),
            ("because", pyarrow.string()),
            ("history", pyarrow.string()),
        ]
    )
    return pyarrow.Table.from_pylist(rows, schema)


# Sums


Sums = Dict[str, Any]


def _sums_of(table: Any) -> Sums:
    """Adds up the rows of a unit's result."""
    sums: Sums = {"rows": table.num_rows, "histories": 0, "errors": 0, "counts": {}}
    counts = sums["counts"]
    if "decider" in table.column_names:
        for row in table.to_pylist():
            line = counts.setdefault(row["model"], {"compared": 0, "undecided": 0, "different": 0})
            line["compared"] += row["compared"] or 0
            line["undecided"] += row["undecided"] or 0
            line["different"] += row["decider"] is not None
        return sums
    if "verdict" not in table.column_names:
        for row in table.group_by("answer").aggregate([([], "count_all")]).to_pylist():
            counts.setdefault("pairs", {})[row["answer"]] = row["count_all"]
        return sums
    grouped = table.group_by(["model", "verdict"]).aggregate([([], "count_all")]).to_pylist()
    for row in grouped:
        if row["model"] is None:
            sums["errors"] += row["count_all"]
        else:
            counts.setdefault(row["model"], {})[row["verdict"]] = row["count_all"]
    import pyarrow.compute as compute

    judged = table.select(["source", "index"]).filter(compute.is_valid(table.column("model")))
    sums["histories"] = judged.group_by(["source", "index"]).aggregate([]).num_rows
    return sums


def _add_sums(whole: Sums, part: Sums) -> None:
    for name in ("rows", "histories", "errors"):
        whole[name] += part[name]
    for model, line in part["counts"].items():
        known = whole["counts"].setdefault(model, {})
        for word, count in line.items():
            known[word] = known.get(word, 0) + count


# The folder of a run


class Run:
    """A run: its computation, its units, and the folder of its results."""

    def __init__(self, out: str, command: str, settings: Dict[str, Any], units: List[Unit]) -> None:
        self.out = out
        self.command = command
        self.settings = settings
        self.units = units
        self._digest: Optional[str] = None

    def __getstate__(self) -> Dict[str, Any]:
        # A worker needs the digest and its own unit, but not the other units.
        self.digest()
        return {**self.__dict__, "units": []}

    @property
    def _system(self) -> Tuple[Any, str]:
        from pyarrow import fs

        if "://" in self.out:
            found: Tuple[Any, str] = fs.FileSystem.from_uri(self.out)
            return found
        return fs.LocalFileSystem(), os.path.abspath(self.out)

    def digest(self) -> str:
        """A digest of everything on which the results depend."""
        if self._digest is None:
            options = self.settings.get("options", {})
            named = [*self.settings.get("models", ()), options.get("object")]
            content = [_content(name) for name in named if isinstance(name, str)]
            parts = [_native.__version__, self.command, self.settings, content, self.units]
            text = json.dumps(parts, sort_keys=True, default=_stable)
            self._digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._digest

    def open(self) -> None:
        """Creates the folder, or checks that it belongs to this run."""
        import pyarrow

        try:
            self._open()
        except (pyarrow.ArrowException, OSError) as error:
            raise RunError(f"cannot write to {self.out}: {error}") from error

    def _open(self) -> None:
        system, path = self._system
        known = self._read(f"{path}/run.json")
        if known is not None:
            if json.loads(known).get("digest") != self.digest():
                raise RunError(
                    f"{self.out} is of another run, or its inputs have changed since",
                    hint="name another folder, or give the same inputs and options to go on with it",
                )
            return
        system.create_dir(f"{path}/parts", recursive=True)
        description = {
            "command": self.command,
            "version": _native.__version__,
            "digest": self.digest(),
            "units": len(self.units),
            "settings": self.settings,
        }
        self._write(f"{path}/run.json", json.dumps(description, indent=1, default=_stable).encode())

    def _read(self, path: str) -> Optional[bytes]:
        from pyarrow import fs

        system, _ = self._system
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        with system.open_input_stream(path) as stream:
            data: bytes = stream.read()
        return data

    def _write(self, path: str, data: bytes) -> None:
        """Writes a file so that it appears only when it is complete."""
        system, _ = self._system
        scheme = self.out.partition("://")[0] if "://" in self.out else "file"
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        if scheme == "file":
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            return
        # An object of a store appears when it is complete; in other file systems a complete file is moved.
        is_store = scheme in OBJECT_STORES
        with system.open_output_stream(path if is_store else partial, compression=None) as stream:
            stream.write(data)
        if not is_store:
            system.move(partial, path)

    def part(self, number: int) -> str:
        """The path of a unit's result."""
        _, path = self._system
        return f"{path}/parts/part-{number:07}.parquet"

    def missing(self) -> List[int]:
        """The numbers of the units that have no result yet."""
        from pyarrow import fs

        system, path = self._system
        found = system.get_file_info(fs.FileSelector(f"{path}/parts", allow_not_found=True))
        there = {info.base_name for info in found}
        return [n for n in range(len(self.units)) if f"part-{n:07}.parquet" not in there]

    def work(self, number: int, unit: Optional[Unit] = None) -> Dict[str, Any]:
        """Computes a unit unless its result exists, and returns a row of figures."""
        import time

        import pyarrow
        import pyarrow.parquet

        path = self.part(number)
        if self._metadata(path) is not None:
            return {"unit": number, "seconds": 0.0}
        started = time.perf_counter()
        table = run_unit(self.units[number] if unit is None else unit, self.settings)
        marks = {
            "consistory.run": self.digest(),
            "consistory.unit": str(number),
            "consistory.sums": json.dumps(_sums_of(table)),
        }
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table.replace_schema_metadata(marks), sink, compression="zstd")
        self._write(path, sink.getvalue().to_pybytes())
        return {"unit": number, "seconds": time.perf_counter() - started}

    def _metadata(self, path: str) -> Optional[Dict[bytes, bytes]]:
        """Reads the metadata of a part, if it exists."""
        import pyarrow.parquet
        from pyarrow import fs

        system, _ = self._system
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        found: Optional[Dict[bytes, bytes]] = pyarrow.parquet.read_schema(
            path, filesystem=system
        ).metadata
        return found or {}

    def table(self) -> Any:
        """All results as one Arrow table, in the order of the units."""
        import pyarrow
        import pyarrow.parquet

        system, _ = self._system
        tables = []
        for number in range(len(self.units)):
            table = pyarrow.parquet.read_table(self.part(number), filesystem=system)
            tables.append(table.replace_schema_metadata(None))
        return pyarrow.concat_tables(tables)

    def finish(self) -> Dict[str, Any]:
        """Checks that every unit has its one result, and writes and returns the sums."""
        missing = self.missing()
        if missing:
            raise RunError(
                f"{len(missing)} of {len(self.units)} units have no result",
                hint="run the same command again to go on",
            )
        summary = self._sums()
        if self.command not in ("check", "campaign"):
            del summary["histories"]
        summary["units"] = len(self.units)
        summary["digest"] = self.digest()
        _, path = self._system
        self._write(f"{path}/summary.json", json.dumps(summary, indent=1).encode())
        return summary

    def _sums(self) -> Sums:
        """Adds up the sums in the metadata of all parts."""
        whole: Sums = {"rows": 0, "histories": 0, "errors": 0, "counts": {}}
        # Access to an object store is slow, so several parts are requested at a time.
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for number, marks in enumerate(pool.map(self._marks, range(len(self.units)))):
                path = self.part(number)
                if marks.get(b"consistory.run") != self.digest().encode():
                    raise RunError(
                        f"{path} is of another run", hint="remove it and run the command again"
                    )
                if marks.get(b"consistory.unit") != str(number).encode():
                    raise RunError(
                        f"{path} is the result of another unit",
                        hint="remove it and run the command again",
                    )
                _add_sums(whole, json.loads(marks[b"consistory.sums"]))
        return whole

    def _marks(self, number: int) -> Dict[bytes, bytes]:
        import pyarrow

        path = self.part(number)
        try:
            return self._metadata(path) or {}
        except (pyarrow.ArrowException, OSError) as error:
            raise RunError(
                f"{path} cannot be read: {error}", hint="remove it and run the command again"
            ) from error


def _content(name: str) -> Optional[str]:
    """Returns a digest of the file of a model or object, if it has one."""
    if not os.path.isfile(name):
        return None
    with open(name, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _stable(value: Any) -> Any:
    """Describes an object such as a class in the same way in every process."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "__fspath__"):
        return os.fspath(value)
    try:
        return [_stable(type(value)), vars(value)]
    except TypeError:
        return repr(value)
