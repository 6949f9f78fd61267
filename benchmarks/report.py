"""What is printed: progress, the table of ratios, means, goals, and the comparison of two runs."""

import math
import sys
from collections import defaultdict
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.limits import bandwidth_at

UNSURE = 0.25  # a control that differs by more says nothing
NOISE = 0.05  # differences below this count as equal, or the control's where that is larger
_FIXED_WIDTH = None if sys.stdout.isatty() else 130  # a file has no width of its own
console = Console(highlight=False, width=_FIXED_WIDTH)


@contextmanager
def progress():
    """Show a progress bar; yields a function that advances it and one that prints above it."""
    columns = (
        TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    # drawn only between measurements: a drawing thread would take time from the one measured
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        line = bar.add_task("measuring the machine's limits", total=None)
        bar.refresh()

        def advance(done, total, task):
            text = f"{task.row.id} {short(task.size)} {task.dtype}" if task else "done"
            bar.update(line, completed=done, total=total, description=text[:44], refresh=True)

        yield advance, bar.console.print


def short(size):
    """Return a number of elements as a short word."""
    for value, letter in ((1_000_000, "M"), (1000, "k")):
        if size >= value:
            return f"{size // value}{letter}"
    return str(size) if size else "–"


# -- figures -----------------------------------------------------------------------------------
def _by(result):
    """Return which figure of the repeats is compared: min or median."""
    return result.get("by", "min")


def peers_of(cell, result):
    """Return the times of the libraries that the subject is compared with."""
    skip = (result["subject"], "control")
    return {name: t for name, t in cell["times"].items() if name not in skip}


def _time(cell, name, result):
    return cell["times"][name][_by(result)]


def noise(cell, result):
    """Return the relative difference that means nothing in this cell."""
    subject, control = (cell["times"].get(n) for n in (result["subject"], "control"))
    if not subject or not control:
        return NOISE
    a, b = subject[_by(result)], control[_by(result)]
    return max(NOISE, max(a, b) / min(a, b) - 1)


def best_ratio(cell, result):
    """Return (fastest peer's time over the subject's, its name), or None."""
    figure = _by(result)
    own, peers = cell["times"].get(result["subject"]), peers_of(cell, result)
    if not own or not peers:
        return None
    name = min(peers, key=lambda n: peers[n][figure])
    return peers[name][figure] / own[figure], name


def verdict(ratio, tolerance):
    """Return win, loss or even; unsure where the noise is too large to tell."""
    if tolerance > UNSURE and 1 / (1 + tolerance) <= ratio <= 1 + tolerance:
        return "unsure"
    if ratio > 1 + tolerance:
        return "win"
    return "loss" if ratio < 1 / (1 + tolerance) else "even"


_MARK = {
    "win": "[green]{} ▲[/]",
    "loss": "[bold red]{} ▼[/]",
    "even": "{} =",
    "unsure": "[dim]{} ~[/]",
}


def _geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _setting(cell):
    return cell["dtype"], cell["threads"], cell["mode"]


def by_setting(result):
    """Return the cells by dtype, thread count and mode."""
    groups = defaultdict(list)
    for cell in result["cells"]:
        groups[_setting(cell)].append(cell)
    return dict(sorted(groups.items()))


# -- tables ------------------------------------------------------------------------------------
def show(result):
    """Print the whole report."""
    for setting, cells in by_setting(result).items():
        _ratios(result, setting, cells)
    _means(result)
    _limits(result)
    _losses(result)
    _goals(result)
    _remarks(result)


def setting_title(setting):
    """Return a dtype, thread count and mode in words."""
    dtype, threads, mode = setting
    how = "allocating" if mode == "alloc" else "out="
    return f"{dtype}, {threads} thread{'s' * (threads > 1)}, {how}"


def _ratios(result, setting, cells):
    sizes = sorted({cell["size"] for cell in cells})
    table = Table(
        title=f"{setting_title(setting)}: fastest peer's time / {result['subject']}'s",
        caption="▲ faster   ▼ slower   = within noise   ~ too noisy to tell   letter: fastest peer",
        title_justify="left",
    )
    table.add_column("row")
    for size in sizes:
        table.add_column("fixed" if size == 0 else short(size), justify="right")
    rows = defaultdict(dict)
    for cell in cells:
        rows[cell["row"]][cell["size"]] = cell
    category = None
    for row, by_size in rows.items():
        kind = next(iter(by_size.values()))["category"]
        if kind != category:
            category = kind
            table.add_section()
            table.add_row(f"[bold]{category}[/]")
        table.add_row(row, *(_ratio_text(by_size.get(size), result) for size in sizes))
    console.print(table)


def _ratio_text(cell, result):
    if cell is None:
        return ""
    if result["subject"] not in cell["times"]:
        return "[red]fails[/]" if cell.get("failed") else "–"
    best = best_ratio(cell, result)
    if best is None:
        return "alone"
    ratio, name = best
    letter = "x" if name == "numexpr" else name[0]
    doubt = "?" if name in cell["disagree"] else ""
    return _MARK[verdict(ratio, noise(cell, result))].format(f"{ratio:.2f}{letter}{doubt}")


def show_times(result):
    """Print every library's minimum, median and spread (half the middle range), cell by cell."""
    names = [result["subject"], "control", *peer_names(result)]
    for setting, cells in by_setting(result).items():
        title = f"{setting_title(setting)}: minimum, median ± spread"
        table = Table(title=title, title_justify="left")
        for name in ("row", "size", *names):
            table.add_column(name, justify="left" if name == "row" else "right")
        for cell in cells:
            table.add_row(
                cell["row"], short(cell["size"]), *(_time_text(cell["times"].get(n)) for n in names)
            )
        console.print(table)


def _time_text(figures):
    if figures is None:
        return "–"
    spread = (figures["q3"] - figures["q1"]) / 2 / figures["median"]
    return f"{seconds(figures['min'])}, {seconds(figures['median'])} ± {spread:.0%}"


def peer_names(result):
    """Return the peers that were measured, in a fixed order."""
    names = {name for cell in result["cells"] for name in peers_of(cell, result)}
    return sorted(names, key=lambda n: ("numpy", "torch", "jax", "numexpr", "extensor").index(n))


def means(result, cells):
    """Return the geometric means of the ratios: by peer, and to the fastest peer."""
    figures = {}
    for peer in peer_names(result):
        figures[peer] = _geometric(
            [
                _time(cell, peer, result) / _time(cell, result["subject"], result)
                for cell in cells
                if peer in cell["times"] and result["subject"] in cell["times"]
            ]
        )
    best = [pair[0] for cell in cells if (pair := best_ratio(cell, result))]
    figures["fastest"] = _geometric(best)
    return figures


def _means(result):
    peers = [*peer_names(result), "fastest"]
    table = Table(title="Geometric mean of the speed-up over each peer", title_justify="left")
    for name in ("category", "cells", *peers):
        table.add_column(name, justify="left" if name == "category" else "right")
    for setting, cells in by_setting(result).items():
        table.add_section()
        table.add_row(f"[bold]{setting_title(setting)}[/]")
        groups = defaultdict(list)
        for cell in cells:
            groups[cell["category"]].append(cell)
        for category, some in [*groups.items(), ("all", cells)]:
            figures = means(result, some)
            texts = (
                "–" if math.isnan(v) else _MARK[verdict(v, NOISE)].format(f"{v:.2f}")
                for v in (figures[p] for p in peers)
            )
            table.add_row(category, str(len(some)), *texts)
    console.print(table)


def _limits(result):
    for limit in result["limits"]:
        table = Table(title=f"Machine limits, {limit['threads']} thread(s), by {limit['by']}",
                      title_justify="left")  # fmt: skip
        for name in ("bytes moved", "copy GB/s", "triad GB/s"):
            table.add_column(name, justify="right")
        for power in range(10, 29, 3):
            moved = 2**power
            table.add_row(
                f"{moved:,}",
                *(f"{bandwidth_at(limit[k], moved) / 1e9:.0f}" for k in ("copy", "triad")),
            )
        console.print(table)
        peaks = ", ".join(f"{k} {v / 1e9:.0f} GF/s" for k, v in limit["peak"].items())
        empty = ", ".join(f"{k} {v * 1e9:.0f} ns" for k, v in limit.get("empty", {}).items())
        console.print(f"FMA peak: {peaks}\nempty call: {empty}\n")


def losses(result):
    """Return (ratio, peer, noise, cell) of the cells that a peer wins, worst first."""
    found = []
    for cell in result["cells"]:
        best = best_ratio(cell, result)
        if best and verdict(best[0], noise(cell, result)) == "loss":
            found.append((*best, noise(cell, result), cell))
    return sorted(found, key=lambda item: item[0])


def _losses(result, most=40):
    found = losses(result)
    if not found:
        return
    title = f"Slower than a peer: {len(found)} cells, worst first"
    table = Table(title=title, title_justify="left")
    for name in ("ratio", "row", "size", "dtype", "threads", "mode", "own", "peer", "noise"):
        table.add_column(name, justify="left" if name in ("row", "peer") else "right", no_wrap=True)
    for ratio, name, spread, cell in found[:most]:
        own, peer = (_time(cell, n, result) for n in (result["subject"], name))
        table.add_row(
            f"[bold red]{ratio:.2f}[/]", cell["row"], short(cell["size"]), cell["dtype"],
            str(cell["threads"]), cell["mode"], seconds(own), f"{name} {seconds(peer)}",
            f"{spread:.0%}",
        )  # fmt: skip
    console.print(table)
    if len(found) > most:
        console.print(f"… and {len(found) - most} more, in the JSON file\n")


def seconds(value):
    """Return a time as text with a fitting unit."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def fraction_of_limit(cell, result):
    """Return the part of the copy bandwidth (or of the FMA peak) that the subject reaches."""
    own = cell["times"].get(result["subject"])
    limit = next((x for x in result["limits"] if x["threads"] == cell["threads"]), None)
    if not own or not limit:
        return None
    if cell["flops"]:
        peak = limit["peak"].get(cell["dtype"])
        return cell["flops"] / own[_by(result)] / peak if peak else None
    if not cell["bytes"]:
        return None
    return cell["bytes"] / own[_by(result)] / bandwidth_at(limit["copy"], cell["bytes"])


_UNJUDGED = ("matrix", "training", "shape", "creation")


def goals(result):
    """Return (goal, reached of asked, cells that miss it) for what the library aims at."""
    subject, table = result["subject"], []

    def add(text, cells, good):
        cells = [c for c in cells if subject in c["times"] and noise(c, result) <= UNSURE]
        misses = [c for c in cells if not good(c)]
        if cells:
            table.append((text, len(cells) - len(misses), len(cells), misses))

    def not_slower(cell):
        best = best_ratio(cell, result)
        return best is None or verdict(best[0], noise(cell, result)) != "loss"

    top = max((c["threads"] for c in result["cells"]), default=1)
    main = [
        c
        for c in result["cells"]
        if c["threads"] == top and c["mode"] == "alloc" and c["dtype"] != "float16"
    ]
    add("not slower than the fastest peer (element-wise … optimizers): 98 %",
        [c for c in main if c["category"] not in _UNJUDGED], not_slower)  # fmt: skip
    for category in ("matrix", "training"):
        some = [c for c in main if c["category"] == category]
        add(f"not slower than the fastest peer ({category})", some, not_slower)
    small = [c for c in main if c["size"] == 64]
    for peer, factor, text in (
        ("torch", 0.5, "64 elements: at most half of PyTorch's time"),
        ("numpy", 1.0, "64 elements: not slower than NumPy"),
    ):
        add(
            text,
            [c for c in small if peer in c["times"]],
            lambda c, p=peer, f=factor: (
                _time(c, subject, result) <= f * (1 + noise(c, result)) * _time(c, p, result)
            ),
        )
    large = [c for c in main if c["memory"] and c["size"] >= 1_000_000 and c["bytes"]]
    add("memory-bound, a million and more: 85 % of the best copy", large,
        lambda c: fraction_of_limit(c, result) >= 0.85)  # fmt: skip
    gemm = [c for c in main if c["row"].startswith("matmul:") and c["flops"] >= 2 * 512**3]
    add("matmul from 512³: 85 % of the FMA peak", gemm,
        lambda c: fraction_of_limit(c, result) >= 0.85)  # fmt: skip
    return table


def _goals(result):
    table = Table(title="Goals", title_justify="left")
    for name in ("goal", "cells", "reached", "misses"):
        table.add_column(name, justify="left" if name in ("goal", "misses") else "right")
    for text, reached, asked, misses in goals(result):
        colour = "green" if reached == asked else "red"
        names = [f"{c['row']} {short(c['size'])}" for c in misses[:4]]
        table.add_row(
            text, str(asked), f"[{colour}]{reached / asked:.1%}[/]",
            ", ".join(names) + (" …" if len(misses) > 4 else ""),
        )  # fmt: skip
    console.print(table)


def _remarks(result):
    versions = ", ".join(f"{k} {v}" for k, v in result["libraries"].items() if k != "control")
    console.print(f"{versions}; {result['machine']['cpu']}, {result['machine']['cores']} cores")
    levels = [noise(c, result) for c in result["cells"]]
    if levels:
        levels.sort()
        console.print(
            f"{len(levels)} cells in {result['seconds']:.0f} s; control differs by "
            f"{levels[len(levels) // 2]:.0%} (median), {levels[int(len(levels) * 0.9)]:.0%} "
            f"(9 of 10); never below {NOISE:.0%} by definition"
        )
    unsure = sum(level > UNSURE for level in levels)
    if unsure:
        console.print(f"[yellow]too noisy:[/] {unsure} cells, not counted among the goals")
    if result.get("others", 0) > 0.05:
        console.print(
            "[bold yellow]the machine was not quiet:[/] other processes used "
            f"{result['others']:.0%} of its cores; figures of several threads suffer most"
        )
    for name, reason in result["missing"].items():
        console.print(f"[yellow]peer not installed:[/] {name} ({reason})")
    if result["missing_rows"]:
        names = ", ".join(result["missing_rows"])
        console.print(f"[yellow]not in {result['subject']} yet:[/] {names}")
    if result["unmeasured"]:
        console.print(f"[yellow]left out for lack of time:[/] {result['unmeasured']} cells")
    failures = [c for c in result["cells"] if c.get("failed")]
    for row, reason in {c["row"]: c["absent"][result["subject"]] for c in failures}.items():
        console.print(f"[red]fails:[/] {row}: ", end="")
        console.print(reason, markup=False)
    different = defaultdict(list)
    for cell in result["cells"]:
        for name, text in cell["disagree"].items():
            different[cell["row"], name, cell["dtype"]].append((cell["size"], text))
    for (row, name, dtype), items in sorted(different.items()):
        size, text = items[0]
        console.print(f"[yellow]differs:[/] {row} {dtype} {name} at {short(size)}: {text}")


def list_rows(rows):
    """Print the rows and their calls."""
    for row in rows:
        console.print(f"[bold]{row.category} · {row.id}[/]  {' '.join(row.args)}", markup=True)
        for library, call in row.calls.items():
            console.print(f"    {library:9} {call}", markup=False)


# -- comparison of two runs --------------------------------------------------------------------
def _key(cell):
    return (cell["row"], cell["size"], *_setting(cell))


def compare(old, new, tolerance=NOISE):
    """Print what became slower or faster; return the number of regressions.

    A cell counts only if the subject changed beyond the noise of both runs, by the clock and beside
    the peers of the same cell (which tells a change of the machine from one of the library).
    """
    before = {_key(cell): cell for cell in old["cells"] if old["subject"] in cell["times"]}
    changes = []
    for cell in new["cells"]:
        other = before.get(_key(cell))
        if other is None or new["subject"] not in cell["times"]:
            continue
        change = _time(cell, new["subject"], new) / _time(other, old["subject"], old)
        drifts = [
            _time(cell, name, new) / _time(other, name, old)
            for name in peers_of(cell, new)
            if name in other["times"]
        ]
        drift = _geometric(drifts) if drifts else 1.0
        spread = max(tolerance, noise(cell, new), noise(other, old))
        changes.append((change, drift, spread, cell, other))
    table = Table(title="Changed beyond noise, new time / old time", title_justify="left")
    columns = "change peers noise row size dtype threads mode old new"
    for name in columns.split():
        table.add_column(name, justify="left" if name == "row" else "right", no_wrap=True)
    slower = faster = 0
    for change, drift, spread, cell, other in sorted(changes, key=lambda c: -c[0] / c[1]):
        worst, best = min(change, change / drift), max(change, change / drift)
        if worst > 1 + spread:
            slower, mark = slower + 1, "[bold red]{} ▼[/]"
        elif best < 1 / (1 + spread):
            faster, mark = faster + 1, "[green]{} ▲[/]"
        else:
            continue
        table.add_row(
            mark.format(f"{change:.2f}"), f"{drift:.2f}", f"{spread:.0%}", cell["row"],
            short(cell["size"]), cell["dtype"], str(cell["threads"]), cell["mode"],
            seconds(_time(other, old["subject"], old)),
            seconds(_time(cell, new["subject"], new)),
        )  # fmt: skip
    if slower or faster:
        console.print(table)
    overall = _geometric([change / drift for change, drift, *_ in changes])
    console.print(
        f"{len(changes)} cells in both: {slower} slower, {faster} faster; "
        f"geometric mean of new / old time, beside the peers: {overall:.3f}"
    )
    return slower
