"""`make accuracy`: the worst errors of the mathematical functions, and where they occur.

The installed library computes blocks of values, as users call it; a C helper (accuracy.c, compiled
here) computes each value again in higher precision and keeps the worst error:

- float32: every one of the 2³² inputs of the functions of one argument, 10⁸ pairs for power;
- float64: a million inputs or pairs for each function, spread over the exponents and gathered
  around the places where an implementation changes its formula.

NaN, infinities and zeros must match exactly, their signs included. The figures go into
docs/accuracy.md; the exit status is 1 where a bound is exceeded.
"""

import argparse
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BLOCK = 1 << 20
PATTERNS = 1 << 32
PAIRS = 10**8
POINTS = 10**6
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
DTYPES = {"float32": np.float32, "float64": np.float64}


@dataclass(frozen=True)
class Function:
    """A row: the library's function, its error bound in ULP, its check in accuracy.c."""

    name: str
    bound: float
    call: str = ""  # name in the library and in accuracy.c, where they are not the row's
    check: str = ""
    keywords: tuple = ()
    positive: bool = False  # negative inputs give NaN: a few of them are enough
    angle: bool = False
    pair: bool = False

    def compute(self, library, x, out):
        arguments = x if self.pair else (x,)
        getattr(library, self.call or self.name)(*arguments, **dict(self.keywords), out=out)


FUNCTIONS = [
    Function("exp", 1.5),
    Function("expm1", 1.5),
    Function("log", 1.5, positive=True),
    Function("log1p", 1.5),
    Function("log2", 1.5, positive=True),
    Function("log10", 1.5, positive=True),
    Function("sin", 1.5, angle=True),
    Function("cos", 1.5, angle=True),
    Function("tanh", 1.5),
    Function("erf", 1.5),
    Function("power", 1.5, pair=True),
    Function("sigmoid", 3),
    Function("softplus", 3),
    Function("elu", 3),
    Function("elu(alpha=1.875)", 3, "elu", "elu_scaled", (("alpha", 1.875),)),
    Function("swish", 4),
    Function("mish", 4),
    Function("gelu", 8),
    Function("gelu(approximate=True)", 1, "gelu", "gelu_tanh", (("approximate", True),)),
]
RELATIVE = {"gelu(approximate=True)": "(8 + 4·abs(v))·u"}  # where the bound is no number of ULP

# Where formulas change, results round to a constant, overflow or become subnormal, in float32 or
# float64. Samples are gathered around them.
SEAMS = [
    0.0, 2.0**-54, 2.0**-27, 2.0**-25, 2.0**-12, 0.25, np.log(2) / 2, 0.5, 0.625, 0.7517916,
    2**-0.5, 1.0, 1.125, 1.15, 1.5 * np.log(2), 2**0.5, np.pi / 2, 2.0, np.pi, 4.0, 5.0, 6.0, 9.5,
    10.0, 11.25, 12.0, 14.25, 15.0, 16.6, 18.0, 19.5, 22.0, 37.0, 38.5, 39.5, 40.0, 87.33654,
    88.72284, 89.0, 103.97208, 104.0, 112.0, 708.3964185, 709.782712893, 710.0, 745.13321910, 746.0,
    756.0, 1.6e6, 2.0**24, 2.0**53, 2.0**126,
]  # fmt: skip


class Report(ctypes.Structure):
    """The struct `report` of accuracy.c."""

    _fields_ = [
        ("special", ctypes.c_int64),
        ("wrong", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("worst", "x", "y")),
        *((f"wrong_{name}", ctypes.c_double) for name in ("x", "y", "got", "want")),
    ]

    def merge(self, other):
        if other.worst > self.worst:
            self.worst, self.x, self.y = other.worst, other.x, other.y
        if other.wrong and not self.wrong:
            for name in ("wrong_x", "wrong_y", "wrong_got", "wrong_want"):
                setattr(self, name, getattr(other, name))
        self.special += other.special
        self.wrong += other.wrong


def compile_checks(folder):
    """The compiled accuracy.c, or an exit that says what is missing."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SystemExit(
            "make accuracy needs Linux on x86-64: its references are the C library's functions in "
            f"113-bit precision. This is {platform.system()} on {platform.machine()}."
        )
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        raise SystemExit(
            "make accuracy needs gcc (Debian and Ubuntu: apt-get install gcc libc6-dev)"
        )
    path = Path(folder, "accuracy.so")
    source = Path(__file__).with_name("accuracy.c")
    flags = ["-O2", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC"]
    command = [compiler, *flags, str(source), "-o", str(path), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{compiler} cannot compile {source.name}:\n{done.stderr}")
    return ctypes.CDLL(str(path))


# --- inputs ---------------------------------------------------------------------------------------


def specials(dtype):
    info = np.finfo(dtype)
    tiny, least, most = info.tiny, info.smallest_subnormal, info.max
    whole = 2.0 ** (info.nmant + 1)  # above it every number is an even integer
    values = [0, least, 3 * least, tiny - least, tiny, 1 / most, 0.25, 0.5, 1 - info.epsneg, 1,
              1 + info.eps, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 64, 1000, whole / 2 - 0.5, whole - 1,
              whole, 2 * whole, most, np.inf]  # fmt: skip
    values = np.array(values, dtype)
    return np.concatenate([values, -values, [np.nan]]).astype(dtype)


def neighbours(values, count, dtype):
    """``count`` numbers in a row around each value and its negative."""
    width = np.uint32 if dtype == np.float32 else np.uint64
    centre = np.abs(np.asarray(values, dtype)).view(width).astype(np.int64)
    patterns = np.maximum(centre[:, None] + np.arange(count) - count // 2, 0).ravel()
    numbers = patterns.astype(width).view(dtype)
    return np.concatenate([numbers, -numbers])


def chosen(dtype):
    """Special values, the powers of 2 and 10, and what lies around the seams."""
    info = np.finfo(dtype)
    twos = np.ldexp(1.0, np.arange(info.minexp - info.nmant, info.maxexp))
    tens = [float(f"1e{n}") for n in range(-info.precision, int(np.log10(info.max)) + 1)]
    powers = np.concatenate([twos, tens]).astype(dtype)
    return np.concatenate([specials(dtype), powers, neighbours(SEAMS, 2048, dtype)])


def patterns(first, count, thin, rng):
    """``count`` float32 numbers by their bits, one of every ``thin`` patterns."""
    index = np.arange(first, first + count, dtype=np.uint64) * np.uint64(thin)
    if thin > 1:  # not every thin-th: that would leave the same low bits in all
        index += rng.integers(0, thin, count, dtype=np.uint64)
        index = index[index < PATTERNS]
    return index.astype(np.uint32).view(np.float32)


def spread(function, count, dtype, rng):
    """Random inputs: any exponents, the range where most happens, the seams."""
    uniform = rng.uniform(-1, 1, count)
    kind = rng.integers(0, 8, count)
    exponents = rng.integers(0, 45, count)
    x = np.ldexp(uniform, 11 - exponents)
    x = np.where(kind == 0, 40 * uniform, x)
    x = np.where(kind == 1, 760 * uniform, x)
    seams = np.array(SEAMS)[rng.integers(0, len(SEAMS), count)]
    seams = np.copysign(seams, rng.uniform(-1, 1, count))
    x = np.where(kind == 2, seams * (1 + np.ldexp(uniform, -exponents)), x)
    if function.angle:  # near multiples of pi/2, where the reduction of the argument cancels
        turns = np.rint(np.ldexp(uniform, rng.integers(1, 22, count)))
        x = np.where(kind == 3, np.pi / 2 * turns, x)
        x = np.where(kind == 4, np.ldexp(uniform, rng.integers(20, 1024, count)), x)
    if function.name == "log1p":
        x = np.where(kind == 3, np.ldexp(np.abs(uniform), -exponents) - 1, x)
    bits = rng.integers(0, 1 << 64, count, dtype=np.uint64)
    x = np.where(kind >= 6, bits.view(np.float64), x)
    if function.positive:
        x = np.where(rng.random(count) < 0.98, np.abs(x), x)
        x = np.where(kind == 3, 1 + np.ldexp(uniform, -exponents), x)
    return x.astype(dtype)


def crossed(dtype):
    """Every pair of special values."""
    values = specials(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def pairs(count, dtype, rng):
    """Random bases and exponents: any; every size of result; its edges; results near 1; exact."""
    info = np.finfo(dtype)
    width = np.uint32 if dtype == np.float32 else np.uint64
    any_x, any_y = (rng.integers(0, np.iinfo(width).max, count, dtype=width, endpoint=True)
                    .view(dtype) for _ in range(2))  # fmt: skip
    kind = rng.integers(0, 8, count)
    uniform = rng.uniform(-1, 1, count)
    small = np.ldexp(uniform, -rng.integers(0, 40, count))
    # bases: of any size, in [1/2, 2], or so near 1 that a large exponent is needed
    base = np.abs(any_x).astype(np.float64)
    base = np.where(np.isfinite(base) & (base > 0), base, 3.0)
    base = np.where(rng.random(count) < 0.3, np.exp2(rng.uniform(-1, 1, count)), base)
    steps = np.rint(np.exp2(rng.uniform(0, info.nmant - 3, count)))
    near_one = np.where(uniform < 0, 1 - info.epsneg * steps, 1 + info.eps * steps)
    base = np.where(kind == 3, near_one, base).astype(dtype)
    # exponents from the logarithm the result shall have
    lowest, highest = info.minexp - info.nmant, info.maxexp
    wanted = rng.uniform(lowest - 2, highest + 1, count)
    wanted = np.where(kind == 1, highest + small, wanted)
    edge = np.where(rng.random(count) < 0.5, lowest, info.minexp)
    wanted = np.where(kind == 2, edge + 2 * small, wanted)
    wanted = np.where(kind == 4, small, wanted)
    logarithm = np.log2(base.astype(np.longdouble))
    exponent = (wanted / np.where(logarithm == 0, 1, logarithm)).astype(dtype)
    # negative bases with integers, odd and even, small and large
    whole = np.rint(np.ldexp(uniform, rng.integers(1, info.nmant + 4, count))).astype(dtype)
    signed = -np.exp2(rng.uniform(-2, 2, count) / np.maximum(np.abs(uniform), 0.01))
    # results that are exact, or half-way between two numbers
    simple = np.ldexp(rng.integers(1, 4096, count).astype(float), -rng.integers(0, 13, count))
    power = rng.integers(-24, 25, count) / np.where(rng.random(count) < 0.3, 2, 1)
    x = np.select([kind == 5, kind == 6, kind == 7], [any_x, signed, simple], base)
    y = np.select([kind == 5, kind == 6, kind == 7], [any_y, whole, power], exponent)
    return x.astype(dtype), y.astype(dtype)


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """Inputs of one function in one dtype, made block by block."""

    function: Function
    dtype: str
    thin: int

    @property
    def total(self):
        if self.dtype == "float64":
            return POINTS
        if self.function.pair:
            return max(PAIRS // self.thin, POINTS)
        return -(-PATTERNS // self.thin)

    @property
    def inputs(self):
        """For the table."""
        if self.function.pair or self.dtype == "float64":
            return f"{self.total:,}".replace(",", " ") + (" pairs" if self.function.pair else "")
        return "all 2³²" if self.thin == 1 else f"one of every {self.thin}"

    def blocks(self):
        """Where each block begins; -1 is the block of chosen points."""
        size = BLOCK if self.dtype == "float32" else BLOCK // 16
        chosen = [] if self.inputs == "all 2³²" else [(-1, 0)]
        return chosen + [(n, min(size, self.total - n)) for n in range(0, self.total, size)]

    def block(self, first, count):
        dtype = DTYPES[self.dtype]
        if first < 0:
            return crossed(dtype) if self.function.pair else chosen(dtype)
        rng = np.random.default_rng(first)
        if self.function.pair:
            return pairs(count, dtype, rng)
        if self.dtype == "float32":
            return patterns(first, count, self.thin, rng)
        return spread(self.function, count, dtype, rng)


def measure(sweep, library, checks, pool, advance):
    """The merged report of a sweep and the number of results compared."""
    function = sweep.function
    suffix = "f32" if sweep.dtype == "float32" else "f64"
    check = getattr(checks, f"check_{function.check or function.name}_{suffix}")
    check.restype = None
    local = threading.local()

    def work(block):
        with np.errstate(all="ignore"):
            x = sweep.block(*block)
        shape = x[0].shape if function.pair else x.shape
        if getattr(local, "out", np.empty(0)).size < shape[0]:
            local.out = np.empty(shape, DTYPES[sweep.dtype])
        out = local.out[: shape[0]]
        with library.num_threads(1):
            function.compute(library, x, out)
        report = Report()
        arrays = [*(x if function.pair else (x, x)), out]
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
        check(*pointers, ctypes.c_int64(shape[0]), ctypes.byref(report))
        advance(shape[0])
        return report, shape[0]

    merged, compared = Report(), 0
    futures = [pool.submit(work, block) for block in sweep.blocks()]
    try:
        for future in futures:
            report, count = future.result()
            merged.merge(report)
            compared += count
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return merged, compared


# --- the page -------------------------------------------------------------------------------------

HEADER = """\
# Accuracy

The worst errors that were found, against the bounds the functions promise, in units in the last
place (ULP) of the result's dtype; results that are subnormal included. `make accuracy` measures
them and writes this page; `make accuracy ARGS="--level v3 --thin 64"` another CPU level on one of
every 64 inputs.

- The library computes the results in blocks, as users call it, at the CPU level of the heading.
- float32: every bit pattern (2³²), or where the table says so one chosen at random from every so
  many in a row, with 2048 neighbours of each place where a formula changes. The reference is
  computed in double by the C library, with formulas that keep their relative accuracy in the
  tails (gelu through erfc).
- float64: inputs over all exponents, denser where the function is neither constant nor linear,
  around the places where a formula changes and, for sin and cos, around multiples of π/2. The
  reference has 113 bits.
- power: all pairs of special values; results of every size, near 1, and at the edges of overflow
  and underflow; negative bases with odd and even integers; exact results; any two bit patterns.
- A result that must be NaN, infinite or zero, or an integer in log2 and log10, has to be exactly
  that, with the right sign: the last column counts them. An infinite result where the exact one is
  still below the power of two above the largest number counts as that power of two.
- gelu(approximate=True) is bounded relatively, by (8 + 4·abs(v))·u with
  v = 2√(2/π)(x + 0.044715x³); its figure is a fraction of that.
- A sweep of all 2³² leaves nothing out; all others are samples.
"""
COLUMNS = "| function | dtype | bound | worst | at | inputs | special values |"


def number(value, dtype):
    return str(DTYPES[dtype](value))


def table_row(sweep, report):
    function = sweep.function
    at = [number(report.x, sweep.dtype)]
    if function.pair:
        at.append(number(report.y, sweep.dtype))
    relative = RELATIVE.get(function.name)
    return [
        function.name,
        sweep.dtype,
        relative or f"{function.bound:g}",
        f"{report.worst:.3f}" + (" of it" if relative else ""),
        ", ".join(at),
        sweep.inputs,
        f"{report.special}" + (f", {report.wrong} wrong" if report.wrong else ""),
    ]


def read_page(page):
    """The tables of a page: level -> (function, dtype) -> cells."""
    levels = {}
    if not page.exists():
        return levels
    for section in re.split(r"^## Level ", page.read_text(encoding="utf-8"), flags=re.M)[1:]:
        level, _, body = section.partition("\n")
        rows = levels.setdefault(level.strip(), {})
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == COLUMNS.count("|") - 1 and cells[1] in DTYPES:
                rows[cells[0], cells[1]] = cells
    return levels


def write_page(page, levels):
    text = [HEADER]
    for level in sorted(levels, reverse=True):
        text += [f"## Level {level}\n", COLUMNS, "| --- " * (COLUMNS.count("|") - 1) + "|"]
        for dtype in DTYPES:
            for function in FUNCTIONS:
                cells = levels[level].get((function.name, dtype))
                if cells:
                    text.append("| " + " | ".join(cells) + " |")
        text.append("")
    page.write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")


# --- the command ----------------------------------------------------------------------------------


def parse(arguments):
    parser = argparse.ArgumentParser(prog="make accuracy", description=__doc__.partition("\n")[0])
    parser.add_argument("--level", choices=("v2", "v3", "v4"), help="CPU level (the one in use)")
    parser.add_argument("--thin", type=int, default=1, metavar="N",
                        help="one of every N float32 inputs, fewer pairs of power")  # fmt: skip
    parser.add_argument("--functions", help="names, separated by commas (all)")
    parser.add_argument("--dtypes", default="float32,float64", help="float32,float64")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads (all cores)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--dry", action="store_true", help="leave the page as it is")
    options = parser.parse_args(arguments)
    names = {function.name: function for function in FUNCTIONS}
    wanted = re.split(r",(?![^(]*\))", options.functions) if options.functions else list(names)
    for kind, given, known in (
        ("function", wanted, names),
        ("dtype", options.dtypes.split(","), DTYPES),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"no {kind} {unknown[0]!r}; there are {', '.join(known)}")
    if options.thin < 1 or options.jobs < 1:
        parser.error("--thin and --jobs are at least 1")
    sweeps = [
        Sweep(names[name], dtype, options.thin)
        for name in wanted
        for dtype in options.dtypes.split(",")
    ]
    return options, sweeps


def import_library(level):
    """The library at a CPU level, which it reads from the environment when it is imported."""
    if level:
        os.environ["EXTENSOR_CPU"] = level
    import extensor
    from extensor import _cpu

    if level and _cpu.level != level:
        raise SystemExit(f"level {level} is not to be had here, only {', '.join(_cpu.available)}")
    return extensor, _cpu.level


def line(cells):
    """Cells in columns, for the terminal."""
    widths = (23, 8, 17, 13, 43, 19, 0)
    return " ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))


def main(arguments=None):
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    options, sweeps = parse(arguments)
    with tempfile.TemporaryDirectory() as folder:
        checks = compile_checks(folder)  # stays loaded when its file is gone
    library, level = import_library(options.level)
    console = Console()

    def show(text, style=""):
        console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)

    show(f"extensor {library.__version__}, CPU level {level}, {options.jobs} threads")
    show(line([cell.strip() for cell in COLUMNS.strip("|").split("|")]))
    failed = False
    bars = Progress(
        TextColumn("{task.description:32}"), BarColumn(), TextColumn("{task.percentage:5.1f} %"),
        TimeElapsedColumn(), TimeRemainingColumn(), console=console,
    )  # fmt: skip
    with ThreadPoolExecutor(options.jobs) as pool, bars:
        whole = bars.add_task("all", total=sum(sweep.total for sweep in sweeps))
        for sweep in sweeps:
            bar = bars.add_task(f"{sweep.function.name} {sweep.dtype}", total=sweep.total)

            def advance(count, bar=bar):
                bars.advance(bar, count)
                bars.advance(whole, count)

            report, _ = measure(sweep, library, checks, pool, advance)
            bars.remove_task(bar)
            cells = table_row(sweep, report)
            bad = report.worst > sweep.function.bound or report.wrong
            failed |= bool(bad)
            show(line(cells), "bold red" if bad else "")
            if report.wrong:
                x, y, got, want = (
                    number(getattr(report, f"wrong_{name}"), sweep.dtype)
                    for name in ("x", "y", "got", "want")
                )
                at = f"{x}, {y}" if sweep.function.pair else x
                show(f"    the first wrong one at {at}: {got} instead of {want}")
            if not options.dry:  # after every function: an interrupted run keeps what it has
                levels = read_page(options.page)
                key = (sweep.function.name, sweep.dtype)
                levels.setdefault(level, {})[key] = cells
                write_page(options.page, levels)
    show("A bound is exceeded." if failed else "All bounds hold.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
