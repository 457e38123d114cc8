"""A user's program, whose types `dev/test-python` checks with mypy; it is not run.

An expected error is marked; mypy complains about marks without an error.
"""

from pathlib import Path
from typing import Iterator, List, Optional

import consistory
from consistory import History, Recorder, Report, Verdict, litmus

history = History.parse("t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)")
report: Report = history.check("cc", "sc", budget=5.0, order="session", object=None)
verdict: Verdict = report["sc"]
first: Verdict = report[0]
some: List[Verdict] = report[1:]
words: List[str] = [each.verdict for each in report if "sc" in report]
pattern: Optional[str] = verdict.pattern
small: History = verdict.shrink().history
report["sc"].verdict == "violaton"  # type: ignore[comparison-overlap]
history.check("sc", bugdet=3)  # type: ignore[call-arg]
history.check("sc", budget="5 s")  # type: ignore[arg-type]
history.check(5)  # type: ignore[arg-type]

for each in consistory.check_many(Path("runs"), ["sc", "tso"], jobs=2):
    print(each.source, each.index, each.digest, each[0].is_violation)
for found in consistory.check_many([history, "a.hist"], "sc", errors="yield"):
    print(found.hint if isinstance(found, consistory.Error) else found.is_consistent)
consistory.check_many("a.hist", "sc", errors="ignore")  # type: ignore[call-overload]

one: History = consistory.generate("sc", operations=10)
many: Iterator[History] = consistory.generate("sc", count=3)
allowed: Optional[History] = consistory.contrast("tso", "sc", bound=4)[0].history
registers: List[object] = [outcome["0:r1"] for outcome in litmus.outcomes("X=1; r1=Y // Y=1; r2=X", "tso")]

recorder = Recorder(object="register(0)")


@recorder.record
def read(key: str) -> int:
    return len(key)


@recorder.record(name="write")
async def write(value: int) -> None:
    with recorder.call("write", value) as call:
        call.returns = value


async def client() -> int:
    await write(3)
    read(5)  # type: ignore[arg-type]
    return read("x")
