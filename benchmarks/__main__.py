"""`python -m benchmarks`: measure extensor against its peers, or compare two results."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.rows import LIBRARIES, QUICK, ROWS, SIZES, select
from benchmarks.run import Plan, all_threads, make_tasks, run

DTYPES = ("float16", "float32", "float64")


def _list(kind=str, allowed=None):
    def parse(text):
        values = [kind(part) for part in text.split(",") if part]
        for value in values:
            if allowed and value not in allowed:
                raise argparse.ArgumentTypeError(f"{value!r} is not one of {', '.join(allowed)}")
        return values

    return parse


def _size(text):
    return int(float(text))


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure extensor against NumPy, PyTorch, JAX and numexpr, a process each.",
        epilog="python -m benchmarks compare OLD.json NEW.json shows what became slower.",
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--quick", action="store_true",
                       help="a few rows and sizes, within two minutes (the default)")  # fmt: skip
    scope.add_argument("--full", action="store_true", help="every row, within an hour")
    scope.add_argument("--all", action="store_true", help="every row in every setting, hours")
    parser.add_argument("--rows", type=_list(), metavar="PATTERNS",
                        help="ids or categories, with * and ?, separated by commas")  # fmt: skip
    parser.add_argument("--sizes", type=_list(_size), help="numbers of elements, such as 64,1e6")
    parser.add_argument("--dtypes", type=_list(allowed=DTYPES), help="float16,float32,float64")
    parser.add_argument("--threads", type=_list(), help="thread counts, such as 1,all")
    parser.add_argument("--modes", type=_list(allowed=("alloc", "out")), help="alloc,out")
    parser.add_argument("--peers", type=_list(allowed=LIBRARIES), help=",".join(LIBRARIES[1:]))
    parser.add_argument("--subject", default="extensor", choices=LIBRARIES,
                        help="the library that is compared with the others")  # fmt: skip
    parser.add_argument("--rounds", type=int, help="turns each library gets per cell")
    parser.add_argument("--by", default="min", choices=("min", "median"),
                        help="the figure of the repeats that is compared")  # fmt: skip
    parser.add_argument("--seconds", type=float, help="time limit; later cells are left out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write PNG plots")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the result as a page")
    parser.add_argument("--times", action="store_true", help="print every time, not ratios alone")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    return parser


def _plan(options):
    wide = options.full or options.all
    if options.rows:
        rows = select(options.rows)
        if not rows:
            raise SystemExit(f"no row matches {', '.join(options.rows)}; --list shows them")
    else:
        rows = ROWS if wide else [row for row in ROWS if row.id in QUICK]
    cores = all_threads()
    threads = options.threads or (["all", "1"] if wide else ["all"])
    threads = sorted({cores if t == "all" else int(t) for t in threads}, reverse=True)
    chosen = options.threads or options.modes or options.dtypes
    tasks = make_tasks(
        rows,
        options.sizes or (SIZES if wide else (64, 10_000, 1_000_000)),
        options.dtypes or (DTYPES if wide else ("float32",)),
        threads,
        options.modes or (("alloc", "out") if wide else ("alloc",)),
        everything=options.all or bool(chosen),
    )
    limit = options.seconds or (3450 if options.full else float("inf") if options.all else 105)
    if options.rows and not options.seconds and not options.full:
        limit = float("inf")
    peers = [p for p in options.peers or LIBRARIES[1:] if p != options.subject]
    return Plan(
        tasks, tuple(p for p in peers if p != "extensor"), options.subject,
        rounds=options.rounds or (5 if wide else 4), limit=limit, quick=not wide,
    )  # fmt: skip


def _compare(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.05, help="what counts as noise")
    options = parser.parse_args(arguments)
    old, new = (json.loads(path.read_text()) for path in (options.old, options.new))
    return 1 if report.compare(old, new, options.tolerance) else 0


def main(arguments=None):
    """Run the command line; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["compare"]:
        return _compare(arguments[1:])
    options = _parser().parse_args(arguments)
    if options.list:
        report.list_rows(ROWS)
        return 0
    with report.progress() as (advance, say):
        result = run(_plan(options), advance, say) | {"by": options.by}
    if options.times:
        report.show_times(result)
    report.show(result)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result))
        print(f"written: {options.json}")
    if options.markdown:
        from benchmarks.markdown import page

        options.markdown.write_text(page(result), encoding="utf-8")
        print(f"written: {options.markdown}")
    if options.plots:
        from benchmarks.plots import save_plots

        for path in save_plots(result, options.plots):
            print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
