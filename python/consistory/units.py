"""Pieces of work that machines can share, and the folder that their results go to.

A *unit* is a piece of work that always gives the same result: some files, a range of a large file, some
seeds, a pair of models. Its result is one Parquet file whose name follows from the unit's number, written
beside its place and then moved there. A unit that runs twice, because a machine died or two did the same
work, therefore has one result, and a unit whose file is there is not run again.

The folder has ``run.json``, which says what is computed; ``parts/``, a file per unit; and at the end
``summary.json``.
"""

from __future__ import annotations

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
from .tables import is_table, read_table

#: About how many bytes of input a unit has.
PIECE_BYTES = 16 << 20
#: The most files of a unit.
PIECE_FILES = 2000

Unit = Dict[str, Any]


class RunError(Error, ValueError):
    """A run cannot be started, continued or finished."""


# Inputs


def plan_inputs(
    paths: Iterable[Any], *, format: Optional[str] = None, piece: int = PIECE_BYTES
) -> List[Unit]:
    """Cuts inputs into units: large files of JSON lines by ranges, small files together."""
    units: List[Unit] = []
    files: List[str] = []
    size = 0

    def flush() -> None:
        nonlocal files, size
        if files:
            units.append({"kind": "files", "files": files, "format": format})
        files, size = [], 0

    for name, length in _files(paths):
        is_lines = format == "jsonl" or (format is None and name.endswith((".jsonl", ".ndjson")))
        if is_lines and length > 2 * piece and "://" not in name:
            flush()
            for start, end, first in _native.split_jsonl(name, piece):
                units.append(
                    {"kind": "range", "file": name, "start": start, "end": end, "first": first}
                )
            continue
        if files and (size + length > piece or len(files) >= PIECE_FILES):
            flush()
        files.append(name)
        size += length
    flush()
    if not units:
        raise RunError("there are no inputs", hint="name files, folders or URIs such as s3://bucket/runs")
    return units


def _files(paths: Iterable[Any]) -> Iterator[Tuple[str, int]]:
    for path in paths:
        name = os.fspath(path)
        if "://" in name:
            yield from _remote_files(name)
        elif os.path.isdir(name):
            for found in files_in(name):
                yield found, os.path.getsize(found) if os.path.isfile(found) else 0
        elif os.path.exists(name):
            yield name, os.path.getsize(name)
        else:
            raise ReadError(f"cannot read {name}: there is no such file or folder", source=name)


def _remote_files(uri: str) -> Iterator[Tuple[str, int]]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    # What stands before the path, such as a host, and after it, such as an endpoint, is kept.
    plain, question, options = uri.partition("?")
    at = plain.rstrip("/").rfind(path.rstrip("/"))
    start = plain[:at] if at > 0 else plain.split("://", 1)[0] + "://"
    found = system.get_file_info(path)
    if found.type == fs.FileType.NotFound:
        raise ReadError(f"cannot read {uri}: there is no such file or folder", source=uri)
    if found.type == fs.FileType.File:
        yield uri, found.size or 0
        return
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    for file in sorted(inside, key=lambda info: info.path):
        # Names such as _SUCCESS and .crc are those of the programs that wrote the folder.
        if file.type == fs.FileType.File and not file.base_name.startswith(("_", ".")):
            yield f"{start}{file.path}{question}{options}", file.size or 0


def _range_histories(unit: Unit) -> List[Any]:
    """Reads the histories of a range of a file of JSON lines."""
    with open(unit["file"], "rb") as file:
        file.seek(unit["start"])
        data = file.read(unit["end"] - unit["start"])
    return _native.read_bytes(data, unit["file"], "jsonl")


def _file_histories(name: str, format: Optional[str]) -> List[Any]:
    """Returns the histories of a file, or its path if the native reader reads it."""
    if is_table(name):
        return read_table(name)
    if "://" not in name:
        return [name]
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(name)
    with system.open_input_stream(path, compression=None) as stream:
        data = stream.read()
    return _native.read_bytes(data, name, format)


# Work


def run_unit(unit: Unit, settings: Dict[str, Any]) -> Any:
    """Computes the result of a unit as an Arrow table."""
    work = {
        "files": _judge_inputs,
        "range": _judge_inputs,
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
    if unit["kind"] == "range":
        work = [(unit["file"], functools.partial(_range_histories, unit), unit["first"])]
    else:
        format = unit.get("format")
        work = [
            (name, functools.partial(_file_histories, name, format), 0) for name in unit["files"]
        ]
    parts = []
    for name, histories, first in work:
        # An input that cannot be read is a row, and the other inputs of the unit are judged.
        try:
            parts.append(_judged(judge, histories(), first, settings, unit.get("format")))
        except _unreadable() as error:
            parts.append(_error_part(name, error))
    return _verdict_table(parts, _extra(settings))


def _unreadable() -> Tuple[Type[BaseException], ...]:
    """The exceptions that are about an input, and not about this program."""
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
    """Compares the deciders with the reference evaluator; a row per model, and per disagreement."""
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


# The folder of a run


class Run:
    """A run: what is computed, in which units, and where the results are."""

    def __init__(self, out: str, command: str, settings: Dict[str, Any], units: List[Unit]) -> None:
        self.out = out
        self.command = command
        self.settings = settings
        self.units = units

    @property
    def _system(self) -> Tuple[Any, str]:
        from pyarrow import fs

        if "://" in self.out:
            found: Tuple[Any, str] = fs.FileSystem.from_uri(self.out)
            return found
        return fs.LocalFileSystem(), os.path.abspath(self.out)

    def digest(self) -> str:
        """A digest of everything that the results depend on."""
        text = json.dumps(
            [_native.__version__, self.command, self.settings, self.units], sort_keys=True, default=str
        )
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def open(self) -> None:
        """Creates the folder, or finds out that it is of this very run."""
        system, path = self._system
        known = self._read(f"{path}/run.json")
        if known is not None:
            if json.loads(known)["digest"] != self.digest():
                raise RunError(
                    f"{self.out} is of another run",
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
        self._write(f"{path}/run.json", json.dumps(description, indent=1, default=str).encode())

    def _read(self, path: str) -> Optional[bytes]:
        from pyarrow import fs

        system, _ = self._system
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        with system.open_input_stream(path) as stream:
            data: bytes = stream.read()
        return data

    def _write(self, path: str, data: bytes) -> None:
        """Writes a file so that it is there as a whole, or not at all."""
        system, _ = self._system
        if "://" in self.out:
            # An object appears when it is complete.
            with system.open_output_stream(path, compression=None) as stream:
                stream.write(data)
            return
        partial = f"{path}.{uuid.uuid4().hex}.partial"
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

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

    def work(self, number: int) -> Dict[str, Any]:
        """Computes a unit unless its result is there, and returns a line of figures."""
        import time

        import pyarrow
        import pyarrow.parquet

        system, _ = self._system
        path = self.part(number)
        if self._read_footer(path) is not None:
            return {"unit": number, "seconds": 0.0}
        started = time.perf_counter()
        table = run_unit(self.units[number], self.settings)
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(
            table.replace_schema_metadata({"consistory.run": self.digest(), "unit": str(number)}),
            sink,
            compression="zstd",
        )
        self._write(path, sink.getvalue().to_pybytes())
        return {"unit": number, "seconds": time.perf_counter() - started}

    def _read_footer(self, path: str) -> Optional[Any]:
        import pyarrow.parquet
        from pyarrow import fs

        system, _ = self._system
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        return pyarrow.parquet.read_schema(path, filesystem=system).metadata

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
        summary["units"] = len(self.units)
        summary["digest"] = self.digest()
        _, path = self._system
        self._write(f"{path}/summary.json", json.dumps(summary, indent=1).encode())
        return summary

    def _sums(self) -> Dict[str, Any]:
        import pyarrow.parquet

        system, _ = self._system
        counts: Dict[str, Dict[str, int]] = {}
        histories = errors = rows = 0
        seen = set()
        for number in range(len(self.units)):
            path = self.part(number)
            table = pyarrow.parquet.read_table(path, filesystem=system)
            marked = table.schema.metadata or {}
            if marked.get(b"consistory.run") != self.digest().encode():
                raise RunError(f"{path} is of another run", hint="remove it and run the command again")
            if int(marked.get(b"unit", b"-1")) in seen:
                raise RunError(f"{path} is the result of a unit that is there twice")
            seen.add(int(marked.get(b"unit", b"-1")))
            rows += table.num_rows
            column, word = ("model", "verdict") if "verdict" in table.column_names else ("answer", None)
            if "decider" in table.column_names:
                for row in table.to_pylist():
                    line = counts.setdefault(row["model"], {"compared": 0, "undecided": 0, "different": 0})
                    line["compared"] += row["compared"] or 0
                    line["undecided"] += row["undecided"] or 0
                    line["different"] += row["decider"] is not None
                continue
            if word is None:
                for answer in table.column("answer").to_pylist():
                    line = counts.setdefault("pairs", {})
                    line[answer] = line.get(answer, 0) + 1
                continue
            grouped = table.group_by([column, word]).aggregate([([], "count_all")]).to_pylist()
            for row in grouped:
                count = row["count_all"]
                if row["model"] is None:
                    errors += count
                    continue
                line = counts.setdefault(row["model"], {})
                line[row["verdict"]] = line.get(row["verdict"], 0) + count
        if counts and self.command in ("check", "campaign"):
            histories = max(sum(line.values()) for line in counts.values())
        return {"rows": rows, "histories": histories, "errors": errors, "counts": counts}
