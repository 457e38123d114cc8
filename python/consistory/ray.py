"""Many machines: histories judged on a Ray cluster, and sweeps over models, bounds and seeds.

Without a cluster Ray is started on this machine. Every piece of work writes one Parquet file (see
``consistory.units``), so if a machine dies only its current pieces are lost, and a run whose
driver died continues when the same call is made again.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional

from .errors import package
from .units import PIECE_BYTES, Run, RunError, plan_inputs

Progress = Callable[[int, int], None]
#: Time limit for the head to answer.
CONNECT_SECONDS = 10.0


def start(address: Optional[str] = None, **options: Any) -> None:
    """Joins the cluster at an address, or starts Ray on this machine, unless it is running."""
    ray = package("ray", "cluster")
    if ray.is_initialized():
        return
    options.setdefault("logging_level", "WARNING")
    options.setdefault("log_to_driver", False)
    if address is None:
        options.setdefault("include_dashboard", False)
    if address is not None:
        _try_address(address)
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        what = "start Ray" if address is None else f"join the cluster at {address}"
        raise RunError(
            f"cannot {what}: {error}",
            hint=None if address is None else "`ray status` on its head says whether it runs",
        ) from error


def _try_address(address: str) -> None:
    """Tries to connect to a head by its host and port, which Ray itself does for minutes."""
    plain = address.partition("://")[2] or address
    host, colon, port = plain.rpartition(":")
    if not colon or not port.isdigit():
        return  # such as auto
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RunError(
            f"cannot join the cluster at {address}: {error}",
            hint="`ray status` on its head says whether it runs; the address is HOST:PORT, or auto",
        ) from error


def check(
    inputs: Any,
    models: Any = (),
    *,
    out: Optional[str] = None,
    address: Optional[str] = None,
    format: Optional[str] = None,
    certificates: bool = False,
    shrink: bool = False,
    piece: int = PIECE_BYTES,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Any:
    """Judges histories on a Ray cluster.

    ``inputs`` are paths or URIs of files and folders, in any format that ``consistory.read`` reads,
    Parquet among them; then ``out`` is the folder, or URI, of the results, and ``Results`` are returned.
    The folder must be one that every machine sees.

    Or ``inputs`` is a Ray dataset whose rows have a column ``text`` or ``bytes``, each the content of one
    input, and maybe ``path``, where it comes from; ``ray.data.read_binary_files`` makes such a dataset.
    Then a dataset of verdicts is returned, and nothing runs until it is asked for.

    ``certificates`` and ``shrink`` add columns. The other options are those of ``consistory.court``.
    """
    settings = {
        "models": _names(models),
        "options": options,
        "certificates": certificates,
        "shrink": shrink,
    }
    if hasattr(inputs, "map_batches"):
        given = {"settings": settings, "format": format}
        return inputs.map_batches(_judge_rows, fn_kwargs=given, batch_format="pyarrow")
    if out is None:
        raise RunError("there is no folder for the results", hint="name one with out=")
    _try_court(settings)
    paths = [inputs] if isinstance(inputs, (str, bytes)) or hasattr(inputs, "__fspath__") else inputs
    units = plan_inputs(paths, format=format, piece=piece)
    return _conduct(Run(str(out), "check", settings, units), address, progress)


def contrast(
    models: Optional[Iterable[str]] = None,
    *,
    out: str,
    address: Optional[str] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> "Results":
    """Contrasts every pair of models; without any, of all models of registers and all levels."""
    from ._native import MODELS

    if models is None:
        families = ("registers", "transactions")
        groups = [[m for m, family in MODELS if family == wanted] for wanted in families]
    else:
        groups = [list(models)]
    units = [
        {"kind": "pair", "first": group[i], "second": group[j]}
        for group in groups
        for i in range(len(group))
        for j in range(i + 1, len(group))
    ]
    return _conduct(Run(str(out), "contrast", {"contrast": options}, units), address, progress)


def campaign(
    models: Any = (),
    *,
    generator: Dict[str, Any],
    count: int,
    out: str,
    seed: int = 0,
    batch: int = 2000,
    address: Optional[str] = None,
    certificates: bool = False,
    shrink: bool = False,
    progress: Optional[Progress] = None,
    **options: Any,
) -> "Results":
    """Generates histories, as ``consistory.generate`` does, and judges them."""
    settings = {
        "models": _names(models),
        "options": options,
        "generator": generator,
        "certificates": certificates,
        "shrink": shrink,
    }
    _try_court(settings)
    _try_generator(generator)
    units = _seeds("seeds", seed, count, batch)
    return _conduct(Run(str(out), "campaign", settings, units), address, progress)


def fuzz(
    models: Any,
    *,
    generator: Dict[str, Any],
    count: int,
    out: str,
    seed: int = 0,
    batch: int = 200,
    address: Optional[str] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> "Results":
    """Compares the deciders with the reference evaluator on generated histories."""
    settings = {"models": _names(models), "options": options, "generator": generator}
    _try_court(settings)
    _try_generator(generator)
    units = _seeds("fuzz", seed, count, batch)
    return _conduct(Run(str(out), "fuzz", settings, units), address, progress)


class Results:
    """The results of a finished run.

    - ``summary``: The sums: for each model how many histories are consistent, violate it or are undecided.
    """

    def __init__(self, run: Run, summary: Dict[str, Any]) -> None:
        self._run = run
        self.summary = summary

    @property
    def out(self) -> str:
        """The folder of the results."""
        return self._run.out

    def table(self) -> Any:
        """All rows as one Arrow table, in the order of the inputs."""
        return self._run.table()

    def to_frame(self) -> Any:
        """All rows as one pandas frame."""
        return self.table().to_pandas()

    def dataset(self) -> Any:
        """The rows as a Ray dataset."""
        import ray

        return ray.data.read_parquet(f"{self._run.out}/parts")

    def __repr__(self) -> str:
        return f"<consistory.ray.Results {self._run.out}: {self.summary['counts']}>"


def _try_court(settings: Dict[str, Any]) -> None:
    """Builds the court that every machine will build, so that a wrong name is an error here."""
    from .units import _court

    if "jobs" in settings["options"]:
        raise RunError(
            "a piece of work runs on one core, so there is no jobs=",
            hint="Ray gives every core a piece; piece= and batch= say how large they are",
        )
    _court(settings)


def _names(models: Any) -> List[str]:
    if isinstance(models, str):
        models = models.split(",")
    names = list(models)
    if not all(isinstance(name, str) for name in names):
        raise RunError("models are ids or paths of definition files that every machine sees")
    return names


def _try_generator(generator: Dict[str, Any]) -> None:
    from .generating import generate

    generate(**generator)


def _seeds(kind: str, seed: int, count: int, batch: int) -> List[Dict[str, Any]]:
    if count < 1 or batch < 1:
        raise RunError(f"there is nothing to do: {count} histories, {batch} per piece")
    ends = range(seed, seed + count, batch)
    return [{"kind": kind, "start": s, "end": min(s + batch, seed + count)} for s in ends]


def _judge_rows(batch: Any, settings: Dict[str, Any], format: Optional[str]) -> Any:
    """Judges the rows of a batch; runs on a worker."""
    from ._native import parse_texts, read_bytes
    from .units import _court, _error_part, _extra, _judged, _unreadable, _verdict_table

    names = batch.column_names
    if "text" not in names and "bytes" not in names:
        raise RunError(
            f"the dataset has the columns {', '.join(names)}, but neither text nor bytes",
            hint="a row is one input: its text, or its bytes as ray.data.read_binary_files has them",
        )
    judge = _court(settings)
    is_text = "text" in names
    inputs = batch.column("text" if is_text else "bytes").to_pylist()
    sources = batch.column("path").to_pylist() if "path" in names else [None] * len(inputs)
    parts = []
    for number, (data, source) in enumerate(zip(inputs, sources)):
        source = source or f"row {number}"
        try:
            read = parse_texts if is_text else read_bytes
            histories = read(data, source=source, format=format)
            parts.append(_judged(judge, histories, 0, settings, None))
        except _unreadable() as error:
            parts.append(_error_part(source, error))
    return _verdict_table(parts, _extra(settings))


def _work(row: Dict[str, Any], run: Run) -> Dict[str, Any]:
    return run.work(int(row["unit"]), json.loads(row["work"]))


def _conduct(run: Run, address: Optional[str], progress: Optional[Progress]) -> Results:
    """Runs the units without a result, and adds up all sums."""
    import ray

    run.open()
    missing = run.missing()
    total = len(run.units)
    done = total - len(missing)
    if progress is not None:
        progress(done, total)
    while missing:
        start(address)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        # Each unit is a task: if a machine dies, one unit per core is lost.
        dataset: Any = ray.data.from_items(
            [{"unit": number, "work": json.dumps(run.units[number])} for number in missing],
            override_num_blocks=len(missing),
        )
        # Ray Data runs tasks whose machine died again, however often that happens.
        judged = dataset.map(_work, fn_kwargs={"run": run}, num_cpus=1)
        try:
            for _ in judged.iter_rows():
                done += 1
                if progress is not None:
                    progress(min(done, total), total)
        except ray.exceptions.RayError as error:
            # Ray Data gave up, for example because the machine with its metadata died. Units with a
            # result stay done; without any new result there is no other attempt.
            left = run.missing()
            if len(left) == len(missing):
                raise RunError(f"the cluster completed none of {len(left)} pieces: {error}") from error
        missing = run.missing()
        done = total - len(missing)
    return Results(run, run.finish())


def show_progress(done: int, total: int) -> None:
    """Prints the progress of a run to standard error."""
    end = "\n" if done == total else ""
    lead = "\r" if sys.stderr.isatty() else ""
    if lead or done == total or done % max(1, total // 20) == 0:
        print(f"{lead}{done} of {total} pieces", end=end or ("" if lead else "\n"), file=sys.stderr)


__all__ = ["Results", "campaign", "check", "contrast", "fuzz", "show_progress", "start"]
