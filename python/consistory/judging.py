"""Courts: judging one history, and many as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    TypedDict,
    Union,
    overload,
)

from . import _native
from ._native import Court, History, Report, Verdict
from .errors import Error, ModelError, ReadError, package
from .history import files_in
from .tables import is_table, read_table, tables_in


class Definition:
    """A user-defined model of registers, in the definition language.

    >>> import consistory
    >>> coherence = consistory.Definition("coherence", 'acyclic po & loc | wr as CyclicPerKey')
    """

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError("a definition needs a name and a text, both strings")
        self.name, self.text = name, text

    def __repr__(self) -> str:
        return f"consistory.Definition({self.name!r})"


#: A model: an id, the path of a definition file, or a definition.
Model = Union[str, "os.PathLike[str]", Definition]
#: The histories that `check_many` judges.
Inputs = Union[str, "os.PathLike[str]", History, "Iterable[Any]"]

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """The options of judging, all of them keywords of ``court``."""

    object: Any
    axioms: Union[None, str, Sequence[str]]
    levels: Optional[str]
    order: str
    budget: float
    memory: Optional[int]
    jobs: Optional[int]
    engine: str
    certify: bool


class ManyOptions(TypedDict, total=False):
    """The options of judging many histories, except ``jobs``."""

    object: Any
    axioms: Union[None, str, Sequence[str]]
    levels: Optional[str]
    order: str
    budget: float
    memory: Optional[int]
    engine: str
    certify: bool


def _list(models: Any) -> List[Any]:
    if models is None:
        return []
    if isinstance(models, (str, os.PathLike, Definition)) or not isinstance(models, Iterable):
        models = [models]
    found: List[Any] = []
    for model in models:
        if isinstance(model, (list, tuple)):
            found.extend(_list(model))
        elif isinstance(model, str):
            found.extend(part for part in model.split(",") if part)
        elif isinstance(model, os.PathLike):
            found.append(os.fspath(model))
        elif isinstance(model, Definition):
            found.append(model)
        else:
            raise ModelError(
                f"{model!r:.60} is not a model",
                hint="a model is an id such as 'sc', the path of a definition file, or a Definition",
            )
    return found


def court(
    models: Union[None, Model, Iterable[Any]] = (),
    *,
    object: Any = None,
    axioms: Union[None, str, Sequence[str]] = None,
    levels: Optional[str] = None,
    order: str = "session",
    budget: float = 60.0,
    memory: Optional[int] = None,
    jobs: Optional[int] = None,
    engine: str = "auto",
    certify: bool = True,
) -> Court:
    """Builds a court that judges histories by models.

    ``models``: ids in any case, paths of definition files, ``Definition``, ``all`` or ``strongest``.
    ``object``: the object of histories of calls: a name such as ``queue`` or ``register(0)``,
    the path of a specification file, or a Python class. ``axioms`` and ``levels`` are models of an
    object. ``order``: the order that isolation levels respect, ``none``, ``session`` or ``realtime``. ``budget``:
    seconds per model; ``memory``: bytes. ``certify=False`` leaves out the independent checker.
    """
    if isinstance(object, os.PathLike):
        object = os.fspath(object)
    for name, number in (("jobs", jobs), ("memory", memory)):
        if number is not None and number < 1:
            raise ModelError(f"{name}={number} is too small", hint=f"omit {name} for the default")
    if not budget >= 0:
        raise ModelError(f"a budget is a number of seconds, not {budget}")
    texts = [axioms] if isinstance(axioms, str) else axioms
    return Court(
        _list(models),
        object=object,
        axioms=None if texts is None else list(texts),
        levels=levels,
        order=order,
        budget=budget,
        memory=memory,
        jobs=jobs,
        engine=engine,
        certify=certify,
    )


def check(
    history: Union[str, History], *models: Union[Model, Iterable[Model]], **options: Unpack[Options]
) -> Report:
    """Judges one history, or the only history of a text, by models."""
    if isinstance(history, str):
        history = History.parse(history)
    return court(models, **options).judge(history)


@overload
def check_many(
    histories: Inputs,
    models: Union[None, Model, Iterable[Model]] = (),
    *,
    jobs: Optional[int] = None,
    format: Optional[str] = None,
    errors: Literal["raise"] = "raise",
    **options: Unpack[ManyOptions],
) -> Iterator[Report]: ...


@overload
def check_many(
    histories: Inputs,
    models: Union[None, Model, Iterable[Model]] = (),
    *,
    jobs: Optional[int] = None,
    format: Optional[str] = None,
    errors: Literal["yield"],
    **options: Unpack[ManyOptions],
) -> Iterator[Union[Report, Error]]: ...


def check_many(
    histories: Any,
    models: Any = (),
    *,
    jobs: Optional[int] = None,
    format: Optional[str] = None,
    errors: str = "raise",
    **options: Any,
) -> Iterator[Any]:
    """Judges many histories on all cores, and yields their reports in order as soon as possible.

    ``histories`` is a path, or an iterable of histories and paths; it is read only as far as the threads
    need it. The interpreter's lock is not held while histories are read and judged.

    With ``errors="raise"`` an input that cannot be read or judged ends the stream with an exception;
    with ``errors="yield"`` the exception is yielded instead of the report, and the stream continues.
    """
    if errors not in ("raise", "yield"):
        raise ValueError(f'errors is "raise" or "yield", not {errors!r}')
    judge = court(models, jobs=jobs, **options)
    if errors == "raise":
        return judge.judge_many(_inputs(histories, None), format)
    failed: Dict[str, Error] = {}
    return _with_errors(judge.judge_many(_inputs(histories, failed), format), failed)


def _inputs(histories: Any, failed: Optional[Dict[str, Error]]) -> Any:
    """Replaces tables, and folders that contain tables, by their histories."""
    if isinstance(histories, (str, os.PathLike, History)):
        return _expanded([histories], failed) if _has_tables(histories) else histories
    if isinstance(histories, (list, tuple)) and not any(_has_tables(item) for item in histories):
        return histories
    return _expanded(histories, failed)


def _has_tables(item: Any) -> bool:
    if not isinstance(item, (str, os.PathLike)):
        return False
    return is_table(item) or (os.path.isdir(item) and bool(tables_in(os.fspath(item))))


def _expanded(histories: Iterable[Any], failed: Optional[Dict[str, Error]]) -> Iterator[Any]:
    for item in histories:
        if is_table(item):
            try:
                yield from read_table(os.fspath(item))
            except ReadError as error:
                if failed is None:
                    raise
                # The path is kept instead of its histories, so that the native reader reports the error in order.
                failed[os.fspath(item)] = error
                yield item
        elif _has_tables(item):
            yield from _expanded(files_in(os.fspath(item)), failed)
        else:
            yield item


def _with_errors(reports: Any, failed: Dict[str, Error]) -> Iterator[Any]:
    while True:
        try:
            yield next(reports)
        except StopIteration:
            return
        except Error as error:
            # Some errors contain the file only in their message.
            of_tables = (
                known
                for path, known in failed.items()
                if error.source == path or error.message.startswith(f"{path}:")
            )
            yield next(of_tables, error)


def _frame(self: Report) -> Any:
    """The verdicts as a pandas frame, with one row per model."""
    return to_frame([self])


def _row(report: Report, verdict: Verdict) -> Any:
    return {
        "source": report.source,
        "index": report.index,
        "digest": report.digest,
        "model": verdict.model,
        "verdict": verdict.verdict,
        "pattern": verdict.pattern,
        "via": verdict.via,
        "seconds": verdict.seconds,
        "explanation": verdict.summary,
    }


def to_frame(reports: Iterable[Report]) -> Any:
    """The verdicts of many reports as one pandas frame, with one row per history and model."""
    pandas = package("pandas", "tables")
    return pandas.DataFrame([_row(report, verdict) for report in reports for verdict in report])


def _framed(page: str, height: int = 620) -> str:
    """Embeds a page in the output of a notebook's cell."""
    from html import escape

    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:4px"></iframe>'
    )


def _report_html(self: Report) -> str:
    return _framed(self.html())


def _verdict_html(self: Verdict) -> str:
    return _framed(self.html())


def _verdict_page(self: Verdict) -> str:
    """The interactive report on this verdict, as a complete page."""
    return self._report().html()


def _verdict_frame(self: Verdict) -> Any:
    """The operations of the judged history as a pandas frame."""
    return self.history.to_frame()


setattr(Report, "to_frame", _frame)
setattr(Report, "_repr_html_", _report_html)
setattr(Verdict, "html", _verdict_page)
setattr(Verdict, "_repr_html_", _verdict_html)
setattr(Verdict, "to_frame", _verdict_frame)

__all__ = ["Court", "Definition", "ManyOptions", "Options", "check", "check_many", "court", "to_frame"]
_ = _native
