import os
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    final,
    overload,
)

from typing_extensions import Unpack

from .judging import Model, Options

_Outcome = Literal["consistent", "violation", "undecided"]
_Piece = Tuple[int, int, int, int]

__all__ = [
    "contrast",
    "Court",
    "Reports",
    "generate_calls",
    "generate_memory",
    "generate_transactions",
    "Cases",
    "History",
    "inputs",
    "parse_texts",
    "read",
    "read_bytes",
    "contrast_litmus",
    "outcomes",
    "verify",
    "LineCutter",
    "split_jsonl",
    "Report",
    "Verdict",
    "__version__",
    "MODELS",
]
__version__: str
MODELS: List[Tuple[str, str]]

@final
class History:
    """The recorded behaviour of a concurrent system: sessions, each a sequence of operations."""

    @staticmethod
    def parse(text: str, format: Optional[str] = None, source: str = "text") -> History:
        """Parses one history, in the text notation, as JSON lines, or in the given format."""
    @staticmethod
    def from_operations(
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
    @staticmethod
    def from_table(
        table: Any,
        *,
        init: Optional[Mapping[str, Any]] = None,
        final: Optional[Mapping[str, Any]] = None,
    ) -> History:
        """Builds one history from a pandas frame, an Arrow table, or columns by name.

        The columns have the names of the fields of JSON lines: ``session``, ``op``, ``key``, ``value``,
        ``read``, ``call``, ``args``, ``returns``, ``start``, ``end``, ``txn``, ``status``.
        """
    @staticmethod
    def from_pandas(
        table: Any,
        *,
        init: Optional[Mapping[str, Any]] = None,
        final: Optional[Mapping[str, Any]] = None,
    ) -> History:
        """Builds one history from a pandas frame, an Arrow table, or columns by name.

        The columns have the names of the fields of JSON lines: ``session``, ``op``, ``key``, ``value``,
        ``read``, ``call``, ``args``, ``returns``, ``start``, ``end``, ``txn``, ``status``.
        """
    @staticmethod
    def from_arrow(
        table: Any,
        *,
        init: Optional[Mapping[str, Any]] = None,
        final: Optional[Mapping[str, Any]] = None,
    ) -> History:
        """Builds one history from a pandas frame, an Arrow table, or columns by name.

        The columns have the names of the fields of JSON lines: ``session``, ``op``, ``key``, ``value``,
        ``read``, ``call``, ``args``, ``returns``, ``start``, ``end``, ``txn``, ``status``.
        """
    @staticmethod
    def _from_columns(rows: int, columns: Dict[str, Any]) -> List[History]: ...
    @staticmethod
    def _placed(text: str, source: str, index: int) -> History: ...
    @property
    def name(self) -> Optional[str]:
        """The name that the source gives the history, or `None`."""
    @property
    def source(self) -> str:
        """The source of the history, such as the path of its file."""
    @property
    def index(self) -> int:
        """Index of the history in its source, counted from 0."""
    @property
    def digest(self) -> str:
        """A digest of the history's content, the same as in verdicts of the command line."""
    @property
    def sessions(self) -> List[str]:
        """The names of the sessions."""
    @property
    def keys(self) -> List[str]:
        """The names of the keys."""
    @property
    def operations(self) -> List[Dict[str, Any]]:
        """The operations as dictionaries with the fields of JSON lines, in the order of the sessions."""
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def to_text(self, format: str = "hist") -> str:
        """Writes the history in a format; `hist` is the text notation."""
    def to_bytes(self, format: str = "hist") -> bytes:
        """Writes the history in a format, as bytes."""
    def to_frame(self) -> Any:
        """The operations as a pandas frame, with one row per operation."""
    def write(
        self, path: Union[str, os.PathLike[str]], *, format: Optional[str] = None
    ) -> None:
        """Writes the history to a file; the format is that of the extension unless it is given.

        If the name ends in ``.gz``, the file is compressed.
        """
    def evaluate(
        self,
        model: str,
        order: str = "session",
        budget: float = 60.0,
        max_operations: int = 200,
    ) -> Tuple[_Outcome, Optional[str]]:
        """Decides by the model's definition, with the slow reference evaluator.

        Returns the verdict as a word, and the pattern of a violation. Histories of up to
        `max_operations` operations are decided; for larger ones, and after a timeout, the word is
        `undecided`.
        """
    def check(self, *models: Union[Model, Iterable[Model]], **options: Unpack[Options]) -> Report:
        """Judges the history by models and returns a report, a sequence of verdicts.

        Without a model it is judged by every model that applies, and ``report.strongest`` contains the strongest
        satisfied ones. The options are those of ``consistory.Court``.
        """
    def violation(
        self, *models: Union[Model, Iterable[Model]], **options: Unpack[Options]
    ) -> Optional[Verdict]:
        """The verdict of the first model that is violated, shrunk, or ``None``."""
    def _repr_html_(self) -> str: ...

@final
class Verdict:
    """A verdict on a history under a model."""

    @property
    def model(self) -> str:
        """The id of the model."""
    @property
    def verdict(self) -> _Outcome:
        """The outcome: `consistent`, `violation` or `undecided`."""
    @property
    def is_consistent(self) -> bool:
        """Whether the history satisfies the model."""
    @property
    def is_violation(self) -> bool:
        """Whether the history violates the model."""
    @property
    def is_minimal(self) -> Optional[bool]:
        """For a shrunk history, whether no further operation can be removed."""
    @property
    def pattern(self) -> Optional[str]:
        """A short description of the violation, or `None`."""
    @property
    def via(self) -> Optional[str]:
        """The id of the other model whose certificate settles this one, or `None`."""
    @property
    def explanation(self) -> str:
        """An explanation in plain sentences."""
    @property
    def summary(self) -> str:
        """The explanation in one line."""
    @property
    def certificate(self) -> Optional[Dict[str, Any]]:
        """The proof of the outcome as dictionaries and lists, or `None` if it is undecided."""
    @property
    def rejection(self) -> Optional[str]:
        """The checker's reason to reject the certificate, or `None`; the outcome is then undecided."""
    @property
    def seconds(self) -> float:
        """The time of judging, in seconds."""
    @property
    def history(self) -> History:
        """The history as it was judged."""
    def draw(self) -> str:
        """A drawing of the history and its violation, as SVG."""
    def json(self) -> str:
        """The verdict as one JSON object, as the command line prints it."""
    def html(self) -> str:
        """The interactive report on this verdict, as a complete page."""
    def shrink(self) -> Verdict:
        """Removes operations as long as the rest violates the model; returns the verdict on the rest."""
    def certify(self) -> bool:
        """Checks the certificate again with the independent checker; returns whether it is accepted."""
    def to_frame(self) -> Any:
        """The operations of the judged history as a pandas frame."""
    def _report(self) -> Report: ...
    def _repr_html_(self) -> str: ...

@final
class Report:
    """The verdicts on one history, one for each model."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: Union[int, str], /) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice, /) -> List[Verdict]: ...
    def __iter__(self) -> Iterator[Verdict]: ...
    def __contains__(self, model: object, /) -> bool: ...
    @property
    def source(self) -> str:
        """The source of the history."""
    @property
    def index(self) -> int:
        """The index of the history in its source, counted from 0."""
    @property
    def history(self) -> History:
        """The history as it was judged."""
    @property
    def digest(self) -> str:
        """The digest of the history."""
    @property
    def strongest(self) -> Optional[List[str]]:
        """The satisfied models that no other satisfied one implies, if they were requested."""
    @property
    def object(self) -> Optional[str]:
        """The name of the object whose calls the history consists of, or `None`."""
    @property
    def is_consistent(self) -> bool:
        """Whether every model is satisfied."""
    @property
    def violations(self) -> List[Verdict]:
        """The verdicts that are violations."""
    def json(self) -> str:
        """The report as one line of JSON, as `consistory check --format json` prints it."""
    def html(self, shrink: bool = False) -> str:
        """The interactive report as a complete page."""
    def to_frame(self) -> Any:
        """The verdicts as a pandas frame, with one row per model."""
    def _repr_html_(self) -> str: ...

@final
class Reports(Iterator[Report]):
    def __next__(self) -> Report: ...
    def close(self) -> None:
        """Stops judging; reports that were not returned are lost."""

@final
class Court:
    """Judges histories by models; ``consistory.court`` makes one."""

    def __new__(
        cls,
        models: Sequence[Any],
        object: Any = None,
        axioms: Optional[Sequence[str]] = None,
        levels: Optional[str] = None,
        order: str = "session",
        budget: float = 60.0,
        memory: Optional[int] = None,
        jobs: Optional[int] = None,
        engine: str = "auto",
        certify: bool = True,
    ) -> Court: ...
    def judge(self, history: History) -> Report:
        """Judges one history."""
    def judge_many(self, items: Any, format: Optional[str] = None) -> Reports:
        """Judges many histories, and returns reports in order, as they are requested."""
    def judge_table(
        self,
        items: Any,
        format: Optional[str] = None,
        certificates: bool = False,
        shrink: bool = False,
        first: int = 0,
    ) -> Dict[str, Any]:
        """Judges all the histories of some items and returns the verdicts as columns of a table.

        Errors are rows too: `error` contains their text, and there is no verdict.
        """

@final
class Cases(Iterator[History]):
    def __next__(self) -> History: ...

def read(paths: Sequence[Any], format: Optional[str] = None) -> Cases:
    """Reads the histories of files and folders when they are requested."""
def inputs(paths: Sequence[Any]) -> List[str]:
    """Lists the inputs that paths denote: files themselves, and the histories in folders."""
def read_bytes(
    data: bytes, source: str = "bytes", format: Optional[str] = None, lines_before: int = 0
) -> List[History]:
    """Reads the histories of a file's bytes, which may be compressed.

    `lines_before` is the number of lines of the file before these bytes, for the positions of
    errors.
    """
def parse_texts(
    text: str, format: Optional[str] = None, source: str = "text"
) -> List[History]:
    """Parses every history of a text; it is JSON lines if it starts with a brace."""
def split_jsonl(path: Any, size: int) -> List[_Piece]:
    """Cuts a file of JSON lines into pieces of about `size` bytes.

    A file whose lines have no `"history"` is one piece.
    """

@final
class LineCutter:
    def __new__(cls, size: int) -> LineCutter: ...
    def feed(self, block: bytes) -> None:
        """Adds the next bytes of the file."""
    def finish(self) -> List[_Piece]:
        """Returns the pieces of all bytes that were added, like `split_jsonl`."""

def contrast(
    first: str,
    second: str,
    bound: int = 7,
    sessions: Optional[int] = None,
    variables: Optional[int] = None,
    fences: bool = False,
    rmws: bool = False,
    order: str = "session",
    budget: float = 60.0,
    jobs: Optional[int] = None,
) -> List[Dict[str, Any]]:
    """Searches for smallest histories that one of two models allows and the other forbids."""
def contrast_litmus(
    left: str,
    right: str,
    bound: int = 4,
    style: str = "axiomatic",
    all: bool = False,
    fences: bool = True,
    dependencies: bool = False,
    budget: float = 60.0,
    jobs: Optional[int] = None,
) -> List[Dict[str, Any]]:
    """Finds the smallest programs that separate two memory models."""
def outcomes(
    text: str, model: str, style: str = "axiomatic", budget: float = 60.0, source: str = "test"
) -> Dict[str, Any]:
    """Finds every outcome of a test under a memory model."""
def verify(
    text: str,
    source: str = "protocol",
    plain: bool = False,
    symmetry: bool = True,
    deadlock: bool = True,
    budget: float = 60.0,
    memory: int = 4_294_967_296,
    jobs: Optional[int] = None,
) -> Dict[str, Any]:
    """Proves that every run of a protocol is sequentially consistent, or finds one that is not."""
def generate_memory(
    memory: str = "sc",
    sessions: int = 4,
    operations: int = 100,
    variables: int = 10,
    reads: float = 0.5,
    rmws: float = 0.0,
    fences: float = 0.0,
    skew: float = 0.0,
    values: int = 0,
    lag: int = 16,
    plants: int = 0,
    distance: int = 100,
    seed: int = 0,
) -> History:
    """Generates a history of clients of a simulated memory."""
def generate_calls(
    object: str,
    sessions: int = 4,
    operations: int = 100,
    reads: float = 0.5,
    pending: float = 0.0,
    plants: int = 0,
    distance: int = 100,
    seed: int = 0,
) -> History:
    """Generates a history of an object's calls."""
def generate_transactions(
    level: str = "ser",
    order: str = "session",
    sessions: int = 4,
    operations: int = 100,
    keys: int = 10,
    size: Tuple[int, int] = ...,
    reads: float = 0.5,
    lists: bool = False,
    skew: float = 0.0,
    aborted: float = 0.0,
    indeterminate: float = 0.0,
    times: bool = False,
    lag: int = 16,
    anomalies: Optional[Sequence[str]] = None,
    seed: int = 0,
) -> History:
    """Generates a history of transactions."""
