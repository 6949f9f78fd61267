"""PNG plots of a result: ratio by size per op, roofline, small-call latency."""

from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.limits import bandwidth_at
from benchmarks.report import peer_names, peers_of

_COLOURS = {"numpy": "tab:blue", "torch": "tab:red", "jax": "tab:green", "numexpr": "tab:purple",
            "extensor": "black"}  # fmt: skip


def save_plots(result, folder):
    """Write every plot into `folder` and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    groups = defaultdict(list)
    for cell in result["cells"]:
        if result["subject"] in cell["times"]:
            groups[cell["dtype"], cell["threads"], cell["mode"]].append(cell)
    for (dtype, threads, mode), cells in sorted(groups.items()):
        tag = f"{dtype}-{threads}t" + ("-out" if mode == "out" else "")
        categories = defaultdict(list)
        for cell in cells:
            categories[cell["category"]].append(cell)
        for category, some in categories.items():
            path = folder / f"ratio-{category}-{tag}.png"
            paths.append(_ratios(result, some, path, category, tag))
        paths.append(_roofline(result, cells, folder / f"roofline-{tag}.png", dtype, threads))
        paths.append(_latency(result, cells, folder / f"latency-{tag}.png", tag))
    return [path for path in paths if path]


def _save(figure, path):
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    return path


def _ratios(result, cells, path, category, tag):
    """Small multiples: one panel per row, one line per peer; fixed shapes as bars."""
    rows = defaultdict(dict)
    for cell in cells:
        rows[cell["row"]][cell["size"]] = cell
    if all(set(sizes) == {0} for sizes in rows.values()):
        return _fixed(result, rows, path, category, tag)
    rows = {row: sizes for row, sizes in rows.items() if set(sizes) != {0}}
    columns = min(6, len(rows))
    lines = -(-len(rows) // columns)
    figure, panels = plt.subplots(
        lines, columns, figsize=(2.5 * columns, 2 * lines + 0.6), squeeze=False, sharex=True
    )
    for panel in panels.flat[len(rows) :]:
        panel.set_visible(False)
    for panel, (row, sizes) in zip(panels.flat, rows.items(), strict=False):
        for peer in peer_names(result):
            points = [
                (n, c["times"][peer]["min"] / c["times"][result["subject"]]["min"])
                for n, c in sorted(sizes.items())
                if peer in c["times"]
            ]
            if points:
                panel.plot(*zip(*points, strict=True), "o-", ms=3, lw=1.2, color=_COLOURS[peer],
                           label=peer)  # fmt: skip
        panel.axhline(1, color="grey", lw=0.8)
        panel.set(xscale="log", yscale="log")
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.set_title(row, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.grid(alpha=0.25)
    figure.legend(*_legend(panels), loc="upper right", ncols=4, fontsize=8)
    figure.suptitle(f"{category}, {tag}: peer's time / {result['subject']}'s, by elements "
                    "(above 1: faster)", x=0.02, ha="left", fontsize=10)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / (2 * lines + 0.6)))
    return _save(figure, path)


def _legend(panels):
    found = {}
    for panel in panels.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def _fixed(result, rows, path, category, tag):
    return _bars(
        result,
        {row: sizes[0] for row, sizes in rows.items()},
        path,
        f"{category}, {tag}: peer's time / {result['subject']}'s (above 1: faster)",
        lambda cell, name: cell["times"][name]["min"] / cell["times"][result["subject"]]["min"],
        peer_names(result),
    )


def _latency(result, cells, path, tag):
    """Time of one call on 64 elements, every library."""
    small = {cell["row"]: cell for cell in cells if cell["size"] == 64 and peers_of(cell, result)}
    if not small:
        return None
    return _bars(
        result, small, path, f"one call on 64 elements, µs, {tag}",
        lambda cell, name: cell["times"][name]["min"] * 1e6,
        [result["subject"], *peer_names(result)],
    )  # fmt: skip


def _bars(result, cells, path, title, value, names):
    """Dots on one line per row: easier to read than bars on a logarithmic axis."""
    figure, panel = plt.subplots(figsize=(8, 0.17 * len(cells) + 1.2))
    for name in names:
        points = [
            (value(cell, name), index)
            for index, cell in enumerate(cells.values())
            if name in cell["times"]
        ]
        if points:
            panel.plot(*zip(*points, strict=True), "o", ms=4, color=_COLOURS[name], label=name)
    panel.axvline(1, color="grey", lw=0.8)
    panel.set(xscale="log", yticks=range(len(cells)), ylim=(len(cells) - 0.5, -0.5))
    panel.set_yticklabels(list(cells), fontsize=7)
    panel.grid(alpha=0.3)
    panel.set_title(title, fontsize=10, loc="left")
    panel.legend(fontsize=8)
    return _save(figure, path)


def _roofline(result, cells, path, dtype, threads):
    """Left: bandwidth of memory-bound rows beside copy and triad. Right: flops beside the peak."""
    limit = next(x for x in result["limits"] if x["threads"] == threads)
    subject = result["subject"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5))
    for name, colour in (("copy", "black"), ("triad", "grey")):
        points = [(moved, speed / 1e9) for moved, speed in limit[name]]
        left.plot(*zip(*points, strict=True), color=colour, lw=2, label=f"machine: {name}")
    bound = [c for c in cells if c["memory"] and c["bytes"]]
    categories = sorted({c["category"] for c in bound})
    for index, category in enumerate(categories):
        points = [
            (c["bytes"], c["bytes"] / c["times"][subject]["min"] / 1e9)
            for c in bound
            if c["category"] == category
        ]
        left.plot(*zip(*points, strict=True), "o", ms=4, alpha=0.7, color=f"C{index}",
                  label=category)  # fmt: skip
    left.set(xscale="log", yscale="log", xlabel="bytes moved", ylabel="GB/s")
    left.set_title(f"memory-bound rows, {dtype}, {threads} thread(s)", loc="left", fontsize=10)
    left.legend(fontsize=8)
    peak = limit["peak"].get(dtype)
    products = [c for c in cells if c["flops"] and c["category"] == "matrix" and c["bytes"]]
    if peak:
        across = [2**k / 16 for k in range(15)]
        roof = [min(peak, x * bandwidth_at(limit["copy"], 2**27)) / 1e9 for x in across]
        right.plot(across, roof, color="black", lw=2, label="machine: memory, FMA peak")
    for name in (*peer_names(result), subject):
        points = [
            (c["flops"] / c["bytes"], c["flops"] / c["times"][name]["min"] / 1e9)
            for c in products
            if name in c["times"]
        ]
        if points:
            right.plot(*zip(*points, strict=True), "o", ms=4, alpha=0.8, color=_COLOURS[name],
                       label=name)  # fmt: skip
    right.set(xscale="log", yscale="log", xlabel="flops per byte", ylabel="GF/s")
    right.set_title("matrix products", loc="left", fontsize=10)
    right.legend(fontsize=8)
    for panel in (left, right):
        panel.grid(alpha=0.25)
    return _save(figure, path)
