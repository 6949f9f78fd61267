"""A result as a page of the documentation: every ratio, the means, the goals and what loses."""

import math
from collections import defaultdict

from benchmarks import report
from benchmarks.report import best_ratio, by_setting, noise, setting_title, short

_NAMES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "numexpr": "numexpr"}
_MARKS = {"win": "", "even": "", "loss": " ▼", "unsure": " ~"}


def page(result):
    """Return the whole page."""
    machine, libraries = result["machine"], result["libraries"]
    versions = ", ".join(f"{_NAMES[n]} {libraries[n]}" for n in report.peer_names(result))
    spread = sorted(noise(cell, result) for cell in result["cells"])
    tenth = spread[len(spread) * 9 // 10]
    lines = [
        "# Measurements",
        "",
        'Written by `make bench ARGS="--full --markdown FILE"`; [Performance](performance.md) says '
        "how the figures come about and what they mean.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores; {versions}. {len(result['cells'])} cells. "
        f"The same function measured twice differed by at most {tenth:.0%} in nine of ten cells "
        "(5 % is the least that counts as noise).",
        "",
        *_goals(result),
        *_means(result),
        *_losses(result),
        *_ratios(result),
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "| --- |" + " ---: |" * (len(columns) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _goals(result):
    yield from ("## Goals", "")
    yield from _table(
        ("goal", "cells", "reached"),
        (
            (text, str(asked), f"{reached / asked:.1%}")
            for text, reached, asked, _ in report.goals(result)
        ),
    )


def _means(result):
    peers = [*report.peer_names(result), "fastest"]
    yield from ("## Geometric means", "", "How many times as fast extensor is.", "")
    for setting, cells in by_setting(result).items():
        groups = defaultdict(list)
        for cell in cells:
            groups[cell["category"]].append(cell)
        rows = []
        for category, some in [*groups.items(), ("all", cells)]:
            figures = (report.means(result, some)[peer] for peer in peers)
            texts = ("–" if math.isnan(figure) else f"{figure:.2f}" for figure in figures)
            rows.append((category, str(len(some)), *texts))
        names = (_NAMES.get(peer, "the fastest") for peer in peers)
        yield from _table((setting_title(setting), "cells", *names), rows)


def _losses(result):
    found = report.losses(result)
    yield from ("## Slower than a peer", "", f"{len(found)} cells, worst first.", "")
    rows = []
    for ratio, name, _, cell in found:
        own, peer = (cell["times"][n][result.get("by", "min")] for n in (result["subject"], name))
        setting = setting_title((cell["dtype"], cell["threads"], cell["mode"]))
        rows.append((
            cell["row"], short(cell["size"]), setting, report.seconds(own),
            f"{_NAMES[name]} {report.seconds(peer)}", f"{ratio:.2f}",
        ))  # fmt: skip
    yield from _table(("row", "size", "setting", "extensor", "fastest", "ratio"), rows)


def _ratios(result):
    yield from ("## Every cell", "")
    yield "The fastest peer's time over extensor's, and that peer's initial (x: numexpr);"
    yield from ("▼ slower, ~ too noisy to tell.", "")
    for setting, cells in by_setting(result).items():
        sizes = sorted({cell["size"] for cell in cells})
        rows = defaultdict(dict)
        for cell in cells:
            rows[cell["row"]][cell["size"]] = cell
        yield from (f"### {setting_title(setting)}", "")
        yield from _table(
            ("row", *("fixed" if size == 0 else short(size) for size in sizes)),
            (
                (row, *(_cell(some.get(size), result) for size in sizes))
                for row, some in rows.items()
            ),
        )


def _cell(cell, result):
    best = cell and best_ratio(cell, result)
    if not best:
        return ""
    ratio, name = best
    return (
        f"{ratio:.2f} {'x' if name == 'numexpr' else name[0]}"
        + _MARKS[report.verdict(ratio, noise(cell, result))]
    )
