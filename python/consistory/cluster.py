"""``python -m consistory.cluster``: judging on a Ray cluster, or with Ray on this machine.

Exit code: 0 all consistent (or no difference), 1 some violation (or difference), 2 bad usage or
unreadable input, 3 some undecided and no violation.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import Any, Dict, List, Optional

from .errors import Error, package


def _size(text: str) -> int:
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1, "": 1}
    for unit, factor in units.items():
        if unit and text.endswith(unit) or not unit:
            number = text[: len(text) - len(unit)] if unit else text
            try:
                return int(number) * factor
            except ValueError:
                continue
    raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 16MiB")


def _seconds(text: str) -> float:
    for unit, factor in (("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)):
        if text.endswith(unit):
            try:
                return float(text[: len(text) - len(unit)] if unit else text) * factor
            except ValueError:
                continue
    raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 500ms, 30s or 5m")


def _pairs(texts: List[str]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m consistory.cluster",
        description="Judge histories and sweep over models on a Ray cluster, or with Ray on this machine.",
    )
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.add_argument("--out", required=True, help="folder or URI of the results, accessible from all machines")
        sub.add_argument("--address", help="the cluster to join, such as auto or HOST:6379")
        sub.add_argument("--quiet", "-q", action="store_true", help="print errors only")
        sub.add_argument("--format", choices=["text", "json"], default="text", help="output format of the sums")
        return sub

    def judging(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--model", "-m", default="", help="models, separated by commas")
        sub.add_argument("--object", help="object whose calls the histories contain")
        sub.add_argument("--axioms", action="append", help="a model of the object given by axioms")
        sub.add_argument("--levels", help="a model of the object given by one visibility level per method")
        sub.add_argument("--order", choices=["none", "session", "realtime"], default="session")
        sub.add_argument("--budget", type=_seconds, default=60.0, help="time limit per history and model")
        sub.add_argument("--memory", type=_size, default=None, help="memory limit per history, such as 512MiB")

    def generating(sub: argparse.ArgumentParser, batch: int) -> None:
        kind = sub.add_mutually_exclusive_group()
        kind.add_argument("--memory-model", dest="generated_memory", help="sc, tso, pso, ccv, cm or broken")
        kind.add_argument("--generate-object", dest="generated_object", help="such as queue")
        kind.add_argument("--transactions", help="isolation level of a simulated store")
        sub.add_argument("--count", type=int, required=True, help="number of histories")
        sub.add_argument("--seed", type=int, default=0, help="first seed")
        sub.add_argument("--batch", type=int, default=batch, help="histories per piece of work")
        sub.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a generator option")

    check = command("check", "judge recorded histories")
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or URIs")
    judging(check)
    check.add_argument("--from", dest="input_format", help="input format, instead of detecting it")
    check.add_argument("--certificates", action="store_true", help="keep the certificates")
    check.add_argument("--shrink", action="store_true", help="keep each violation's smallest part")
    check.add_argument("--piece", type=_size, default=16 << 20, help="input per piece of work")
    contrast = command("contrast", "contrast every pair of models")
    contrast.add_argument("--model", "-m", help="models, separated by commas (default: all)")
    contrast.add_argument("--bound", type=int, default=5, help="largest number of operations")
    contrast.add_argument("--sessions", type=int, help="largest number of sessions")
    contrast.add_argument("--variables", type=int, help="largest number of variables")
    contrast.add_argument("--fences", action="store_true", help="with fences")
    contrast.add_argument("--rmws", action="store_true", help="with read-modify-writes")
    contrast.add_argument("--order", choices=["none", "session", "realtime"], default="session")
    contrast.add_argument("--budget", type=_seconds, default=600.0, help="time limit per pair")
    campaign = command("campaign", "generate histories and judge them")
    judging(campaign)
    generating(campaign, 2000)
    fuzz = command("fuzz", "compare the deciders with the reference evaluator")
    judging(fuzz)
    generating(fuzz, 200)
    return top


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command line and returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        return _run(args)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}\n  = help: run the same command again to continue", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 130


def _hush() -> None:
    """Suppresses Ray's messages about plans and progress; errors still appear."""
    data = package("ray.data", "cluster")  # Ray sets up its own logging.
    for handler in logging.getLogger(data.__name__).handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setLevel(logging.ERROR)


def _run(args: argparse.Namespace) -> int:
    from . import ray as cluster

    _hush()
    common: Dict[str, Any] = {
        "out": args.out,
        "address": args.address,
        "progress": None if args.quiet else cluster.show_progress,
    }
    options: Dict[str, Any] = {}
    if args.command != "contrast":
        options = {"order": args.order, "budget": args.budget}
        for name in ("object", "axioms", "levels"):
            if getattr(args, name):
                options[name] = getattr(args, name)
        if args.memory is not None:
            options["memory"] = args.memory
    models = [m for m in (args.model or "").split(",") if m]
    if args.command == "check":
        results = cluster.check(
            args.paths,
            models,
            format=args.input_format,
            certificates=args.certificates,
            shrink=args.shrink,
            piece=args.piece,
            **common,
            **options,
        )
    elif args.command == "contrast":
        space = {
            name: getattr(args, name)
            for name in ("bound", "sessions", "variables", "fences", "rmws", "order", "budget")
        }
        results = cluster.contrast(models or None, **space, **common)
    else:
        generator = _pairs(args.set)
        if args.generated_object:
            generator["object"] = args.generated_object
        elif args.transactions:
            generator["transactions"] = args.transactions
        else:
            generator["memory"] = args.generated_memory or "sc"
        run = cluster.campaign if args.command == "campaign" else cluster.fuzz
        sweep = {"count": args.count, "seed": args.seed, "batch": args.batch, "generator": generator}
        results = run(models, **sweep, **common, **options)
    summary = results.summary
    if not args.quiet:
        if args.format == "json":
            print(json.dumps(summary))
        else:
            _print(args.command, summary)
    return _code(summary)


def _print(command: str, summary: Dict[str, Any]) -> None:
    if command in ("check", "campaign"):
        histories = summary["histories"]
        print("1 history" if histories == 1 else f"{histories} histories")
    words: List[str] = []
    for line in summary["counts"].values():
        words += [word for word in line if word not in words]
    width = max([len(model) for model in summary["counts"]] + [5])
    print("model".ljust(width), *(word.rjust(12) for word in words))
    for model, line in summary["counts"].items():
        print(model.ljust(width), *(str(line.get(word, 0)).rjust(12) for word in words))
    if summary["errors"]:
        print(f"{summary['errors']} could not be read or judged; see the column error")


def _code(summary: Dict[str, Any]) -> int:
    def some(*words: str) -> bool:
        return any(line.get(word) for line in summary["counts"].values() for word in words)

    if summary["errors"]:
        return 2
    if some("violation", "different", "separated"):
        return 1
    return 3 if some("undecided") else 0


if __name__ == "__main__":
    sys.exit(main())
