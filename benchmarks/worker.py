"""One library in a process of its own: reads a JSON request per line, answers with one line.

The parent lets one worker at a time run, so that no library's waiting threads disturb another's
measurement.
"""

import ast
import ctypes
import gc
import json
import os
import re
import signal
import sys
import time
import zlib
from importlib.metadata import version

SAMPLE = 500  # elements of each result that are compared between the libraries
_POOL = 1 << 20  # random values drawn once; inputs are windows of them, repeated


class Absent(Exception):  # noqa: N818 (an answer, not an error)
    """The library has no such call; the message says why."""


# -- inputs ------------------------------------------------------------------------------------
def _draw(np, token, shape, offset, dtype, width):
    """Return input values: the same in every process for the same token, shape and offset."""
    count = int(np.prod(shape, dtype=np.int64))
    rng = np.random.default_rng(12345)
    base = _draw.pool = getattr(_draw, "pool", None)
    if base is None:
        base = _draw.pool = rng.random(_POOL), rng.standard_normal(_POOL)
    kind = token[-1]
    uniform, normal = (np.resize(np.roll(v, offset), min(count, _POOL)) for v in base)
    values = {
        "+": lambda: 0.5 + 2.5 * uniform,
        "%": lambda: 0.01 + 0.98 * uniform,
        "?": lambda: uniform < 0.5,
        "#": lambda: (uniform * width).astype("int64"),
    }.get(kind, lambda: normal)()
    if kind not in "?#":
        values = values.astype(dtype)
    return np.resize(values, shape)


def make_inputs(row, size, dtype):
    """Return the row's inputs as NumPy arrays by name."""
    import numpy as np

    from benchmarks.rows import dims

    height, width = dims("mat", size)
    names = {"np": np, "n": size, "h": height, "w": width}
    arrays = {}
    for index, text in enumerate(row.args):
        token, _, expression = text.partition("=")
        token, _, shape = token.partition("@")
        name = token.strip("+%?#")
        if expression:
            value = np.asarray(eval(expression, names | arrays))
            arrays[name] = value.astype(dtype) if value.dtype.kind == "f" else value
        else:
            offset = zlib.crc32(row.id.encode()) % 1000 + 7919 * index
            arrays[name] = _draw(np, token, dims(shape or row.shape, size), offset, dtype, width)
    return arrays


# -- libraries ---------------------------------------------------------------------------------
class Library:
    """What all libraries share: names for the expressions, conversion, the code to time."""

    name, package = "numpy", "numpy"

    def __init__(self):
        import numpy

        from benchmarks import programs

        self.names = {"np": numpy, "programs": programs}

    def convert(self, array):
        """Return the library's own array with these values."""
        return array.copy()

    def dtype(self, name):
        """Return the library's dtype object."""
        return self.names["np"].dtype(name)

    def bind(self, source):
        """Rewrite a source text before it is compiled."""
        return source

    def statement(self, call, args, names):
        """Return the statement to time, allocating its result."""
        return call

    def out_statement(self, call):
        """Return the statement that writes into `out`."""
        body = ast.parse(call, mode="eval").body
        function = ast.unparse(body.func) if isinstance(body, ast.Call) else ""
        if function.partition(".")[0] not in ("ex", "np", "torch", "F"):
            raise Absent("no out= form")
        return f"{call[:-1]}, out=out)"

    def empty_like(self, result):
        """Return uninitialised room for a result."""
        return self.names["np"].empty_like(result)

    def functions(self):
        """Return the names the package offers, where rows may be missing."""
        return None


class Extensor(Library):
    """The library under test."""

    name = package = "extensor"

    def __init__(self):
        super().__init__()
        import extensor

        self.names["ex"] = extensor

    def convert(self, array):
        return self.names["ex"].tensor(array)

    def empty_like(self, result):
        return self.names["ex"].empty_like(result)

    def functions(self):
        return dir(self.names["ex"])


class Torch(Library):
    """PyTorch, eager."""

    name = package = "torch"

    def __init__(self):
        super().__init__()
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.torch = torch
        self.names |= {"torch": torch, "F": torch.nn.functional}

    def convert(self, array):
        return self.torch.from_numpy(array).clone()

    def dtype(self, name):
        return getattr(self.torch, name)

    def bind(self, source):
        def bound(match):
            op, overload = match.groups()
            target = getattr(getattr(self.torch.ops.aten, op), overload or "default")
            name = f"aten_{op}_{overload or ''}"
            self.names[name] = target
            return name

        return re.sub(r"\baten\.(\w+)(?:\.(\w+))?", bound, source)

    def out_statement(self, call):
        match = re.match(r"aten\.(\w+)", call)
        if not match:
            return super().out_statement(call)
        packet = getattr(self.torch.ops.aten, match[1])
        for overload in packet.overloads():
            outs = [a.name for a in getattr(packet, overload)._schema.arguments if a.is_out]
            if len(outs) == 1:
                call = call.replace(match[0], f"{match[0]}.{overload}", 1)
                return f"{call[:-1]}, {outs[0]}=out)"
        raise Absent("no out= form")

    def empty_like(self, result):
        return self.torch.empty_like(result)


class Jax(Library):
    """JAX: each expression one jit-compiled function, timed until its result is ready."""

    name = package = "jax"

    def __init__(self):
        super().__init__()
        import jax
        import jax.numpy
        import jax.scipy.special

        self.jax = jax
        self.names |= {"jax": jax, "jnp": jax.numpy}

    def convert(self, array):
        return self.jax.block_until_ready(self.jax.numpy.array(array))

    def statement(self, call, args, names):
        if call == "call()":
            return call
        function = self.jax.jit(eval(f"lambda {', '.join(args)}: ({call})", names))
        names["function"], names["ready"] = function, self.jax.block_until_ready
        single = not isinstance(function(*(names[a] for a in args)), (tuple, list))
        inner = f"function({', '.join(args)})"
        return f"{inner}.block_until_ready()" if single else f"ready({inner})"

    def out_statement(self, call):
        raise Absent("JAX has no out=")


class Numexpr(Library):
    """numexpr's evaluate."""

    name = package = "numexpr"

    def __init__(self):
        super().__init__()
        import numexpr

        numexpr.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.names["evaluate"] = numexpr.evaluate

    def dtype(self, name):
        if name == "float16":
            raise Absent("numexpr has no float16")
        return super().dtype(name)

    def statement(self, call, args, names):
        return f"evaluate({call!r})"

    def out_statement(self, call):
        return f"evaluate({call!r}, out=out)"


KINDS = {kind.name: kind for kind in (Library, Extensor, Torch, Jax, Numexpr)}

# -- measuring ---------------------------------------------------------------------------------
_LOOP = """
def loop(_count, _clock, {args}):
    _start = _clock()
    for _ in range(_count):
        {statement}
    return _clock() - _start
"""


def _parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Cell:
    """One row at one size, dtype and mode: inputs, compiled loop, first result."""

    def __init__(self, library, row, size, dtype, mode):
        import numpy as np

        call = row.calls.get(library.name)
        if call is None:
            raise Absent("no such call")
        from benchmarks.rows import dims

        names = dict(library.names)
        names |= dict(zip("hw", dims("mat", size), strict=True)) | {"n": size}
        names["dtype"] = library.dtype(dtype)
        names["other"] = library.dtype("float64" if dtype == "float32" else "float32")
        arrays = make_inputs(row, size, dtype)
        names |= {name: library.convert(array) for name, array in arrays.items()}
        args = list(arrays)
        moved = sum(array.nbytes for name, array in arrays.items() if name in row.reads)
        if library.name in row.setup:
            source = library.bind(row.setup[library.name])
            exec(source, names := names | library.names)
        if mode == "out" and "call()" in call:
            raise Absent("in place already")
        out_text = library.out_statement(call) if mode == "out" else None
        statement = library.bind(library.statement(call, args, names))
        names |= library.names
        result = eval(statement, names)
        if out_text:
            room = [library.empty_like(part) for part in _parts(result)]
            names["out"] = tuple(room) if isinstance(result, (tuple, list)) else room[0]
            statement = library.bind(out_text)
            names |= library.names
            try:
                eval(statement, names)
            except (TypeError, RuntimeError, ValueError) as error:
                raise Absent(f"no out= form ({str(error).splitlines()[0][:60]})") from None
            result = names["out"]
            args.append("out")
        if "check" in names:
            result = names["check"]()
        self.sample, moved_out = [], 0
        for part in _parts(result):
            flat = np.asarray(part).reshape(-1)
            moved_out += flat.nbytes
            step = max(1, flat.size // SAMPLE)
            self.sample.append([*np.shape(part), flat[::step].astype(float).tolist()])
        if row.view or "call()" in call:
            self.bytes = row.passes * size * np.dtype(dtype).itemsize
        else:
            self.bytes = moved + moved_out
        scope = {key: value for key, value in names.items() if key not in args}
        exec(_LOOP.format(args=", ".join(args) or "_=None", statement=statement), scope)
        self._loop, self._values = scope["loop"], [names[a] for a in args]
        self.count, self.seconds = 1, 0.0
        self.calibrate()

    def run(self):
        """Return the seconds that `count` calls take."""
        return self._loop(self.count, time.perf_counter, *self._values)

    def calibrate(self):
        """Choose how many calls are timed together: 150 µs, beside which the clock is free."""
        while True:
            took = self.run()
            if took < 20e-3:
                took = min(took, self.run(), self.run())
            self.seconds = took / self.count
            if took >= 100e-6 or self.count >= 100_000:
                break
            self.count = min(100_000, max(2 * self.count, int(150e-6 / (self.seconds + 1e-9))))

    def measure(self, budget):
        """Return seconds per call, several times within about `budget` seconds."""
        if self.seconds < 5e-3 and self.run() < 50e-6:  # wakes the threads, warms the caches
            self.calibrate()  # was disturbed the first time
        times, stop = [], time.perf_counter() + budget
        while not times or (time.perf_counter() < stop and len(times) < 1000):
            times.append(self.run() / self.count)
        return times


def _empty_costs():
    """Return seconds of an empty loop pass, an empty Python call and an empty C call."""
    costs = {}
    for name, statement in (("loop", "pass"), ("python", "f()"), ("builtin", "len(e)")):
        scope = {"f": lambda: None, "e": ()}
        exec(_LOOP.format(args="_=None", statement=statement), scope)
        costs[name] = min(scope["loop"](20_000, time.perf_counter) for _ in range(10)) / 20_000
    return costs


def _serve(library, requests, answer):
    from benchmarks.rows import ROWS

    rows, cell = {row.id: row for row in ROWS}, None
    for line in requests:
        request = json.loads(line)
        kind = request.pop("do")
        try:
            if kind == "prepare":
                cell = None  # frees the previous cell's memory first
                if request["size"] >= 100_000:  # some of it lies in cycles
                    gc.collect()
                cell = Cell(library, rows[request.pop("row")], **request)
                answer({"seconds": cell.seconds, "bytes": cell.bytes, "sample": cell.sample})
            elif kind == "measure":
                answer({"times": cell.measure(request["budget"])})
            elif kind == "empty":
                answer(_empty_costs())
        except Absent as reason:
            answer({"absent": str(reason)})
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            answer({"absent": f"{type(error).__name__}: {text[0][:160]}", "error": True})


def main(name):
    """Serve requests for one library until the input ends."""
    if sys.platform == "linux":  # a stopped worker must not outlive its parent
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr

    def answer(message):
        pipe.write(json.dumps(message) + "\n")
        pipe.flush()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    cores = int(os.environ["OMP_NUM_THREADS"])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    try:
        library = KINDS[name]()
    except ImportError as error:
        answer({"absent": str(error)})
        return
    gc.disable()
    answer({"version": version_of(library.package), "functions": library.functions()})
    _serve(library, sys.stdin, answer)


def version_of(package):
    """Return the version of an imported package."""
    module = sys.modules[package]
    return getattr(module, "__version__", None) or version(package)
