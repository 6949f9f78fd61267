"""The table of benchmark rows: one per op, each saying how every library's own users would call it.

A row is made by `_row(id, args, formula, ...)`. The id is the extensor function, with a variant
after a colon. `args` lists the inputs in order, separated by spaces:

    x        standard normal values in the row's default shape
    x+ p%    uniform in [0.5, 3) · uniform in [0.01, 0.99)
    c? i#    random bool · random class ids in 0 … w−1 (int64)
    b@row    another shape: vec mat row col h scalar cube mid, or sizes such as 64x784
    y=expr   computed from the earlier inputs by a NumPy expression (without spaces)

`formula` is the expression shared by the array libraries with `xp` for their module; `np=`,
`torch=`, `jax=` override it for one library, `None` leaves that library out. `ne=True` hands the
formula to numexpr as well. In expressions `n`, `h` and `w` are the number of elements, rows and
columns. `aten.<op>` is PyTorch's backward kernel, bound before the timing starts. JAX expressions
are compiled by `jax.jit` and timed until the result is ready.
"""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from math import isqrt

SIZES = (64, 100, 10_000, 100_000, 1_000_000, 10_000_000)
LIBRARIES = ("extensor", "numpy", "torch", "jax", "numexpr")
_MODULE = {"numpy": "np", "torch": "torch", "jax": "jnp"}


@dataclass(frozen=True)
class Row:
    """One op (or one variant of it) and how each library computes it."""

    id: str
    category: str
    args: tuple[str, ...]
    calls: dict[str, str]
    shape: str = "vec"
    setup: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # the extensor functions it calls
    sizes: tuple[int, ...] = SIZES  # (0,) where the shapes are fixed
    flops: float = 0.0
    memory: bool = False  # bound by memory traffic: compared with the copy bandwidth
    random: bool = False  # values are not comparable between libraries
    view: bool = False  # the result shares the input's memory: no bytes are moved
    passes: int = 0  # of in-place programs: arrays read plus arrays written

    @property
    def function(self):
        """The extensor function the row is about."""
        return self.id.partition(":")[0]

    @property
    def reads(self):
        """The inputs whose values are read, by the array libraries' expressions."""
        call = self.calls.get("numpy") or self.calls.get("torch") or self.calls["extensor"]
        return set(re.findall(r"\b[A-Za-z_]\w*\b(?!\.shape)", call))


def dims(token, n):
    """Return the shape that a shape token stands for at `n` elements."""
    width = min(1000, isqrt(n)) or 1
    height, side = n // width, round(n ** (1 / 3)) or 1
    named = {
        "vec": (n,),
        "mat": (height, width),
        "row": (width,),
        "col": (height, 1),
        "h": (height,),
        "scalar": (),
        "cube": (side, side, n // side**2 if n else 1),
        "mid": (side, 1, n // side**2 if n else 1),
    }
    return named[token] if token in named else tuple(int(s) for s in token.split("x"))


ROWS: list[Row] = []
_CATEGORY = ""


def _category(name):
    global _CATEGORY
    _CATEGORY = name


def _row(id, args, formula=None, *, ne=None, setup=None, needs=None, fixed=False, **more):
    """Add a row; `ex`, `np`, `torch`, `jax` in `more` override what the formula gives."""
    names = [a.partition("=")[0].partition("@")[0].strip("+%?#") for a in args.split()]
    function = id.partition(":")[0]
    calls = {"extensor": more.pop("ex", f"ex.{function}({', '.join(names)})")}
    for library, short in (("numpy", "np"), ("torch", "torch"), ("jax", "jax")):
        default = formula.replace("xp.", _MODULE[library] + ".") if formula else None
        calls[library] = more.pop(short, default)
    if ne:
        calls["numexpr"] = formula.replace("xp.", "") if ne is True else ne
    calls = {library: call for library, call in calls.items() if call}
    if fixed:
        more["sizes"] = (0,)
    ROWS.append(
        Row(id, _CATEGORY, tuple(args.split()), calls, setup=setup or {},
            needs=needs or (function,), **more)
    )  # fmt: skip


def select(patterns=("*",)):
    """Return the rows whose id or category matches one of the shell-style patterns."""
    return [
        row
        for row in ROWS
        if any(fnmatch(text, p) for p in patterns for text in (row.id, row.function, row.category))
    ]


def missing_rows(op_names):
    """Return the names among `op_names` (of the op table, say) that no row measures."""
    covered = {name for row in ROWS for name in (row.function, *row.needs)}
    return sorted(set(op_names) - covered - set(ALIASES) - set(NOT_TIMED))


ALIASES = {
    "max": "max_reduce",
    "min": "min_reduce",
    "silu": "swish",
    "silu_backward": "swish_backward",
    "expand_dims": "unsqueeze",
    "expand_dims_backward": "unsqueeze_backward",
}
#: Public, but no computation on tensors.
NOT_TIMED = (
    "are_shapes_broadcastable", "broadcast_shapes", "compute_broadcast_strides",
    "compute_numerical_gradient", "assert_gradients_close", "check_gradient",
    "set_num_threads", "get_num_threads", "num_threads", "show_config", "get_include",
)  # fmt: skip

# Sums over the rows' axes: how a reduced gradient is spread again, as index suffix
_SPREAD = {None: "", 0: "", 1: "[:, None]"}

# ---------------------------------------------------------------------------------------------
_category("arithmetic")
_COPIES = {"jax": None, "memory": True}  # jit hands an unchanged input back without a copy
_row("add", "a b", "xp.add(a, b)", ne="a + b", memory=True)
_row("add_backward", "g a b", np="g.copy(), g.copy()", torch="g.clone(), g.clone()", **_COPIES)
_row("subtract", "a b", "xp.subtract(a, b)", ne="a - b", memory=True)
_row("subtract_backward", "g a b", np="g.copy(), -g", torch="g.clone(), -g", **_COPIES)
_row("multiply", "a b", "xp.multiply(a, b)", ne="a * b", memory=True)
_row("multiply_backward", "g a b", "g * b, g * a", memory=True)
_row("divide", "a b+", "xp.divide(a, b)", ne="a / b", memory=True)
_row("divide_backward", "g a b+", "g / b, -(g / b) * (a / b)", memory=True)
_row("power", "a+ b", "xp.power(a, b)", torch="torch.pow(a, b)", ne="a ** b")
_row("power:cube", "a", "xp.power(a, 3)", ex="ex.power(a, 3)", torch="torch.pow(a, 3)", ne="a ** 3")
_row("power_backward", "g a+ b",
     "g * b * xp.pow(a, b - 1), g * xp.pow(a, b) * xp.log(a)")  # fmt: skip
_row("floor_divide", "a b+", "xp.floor_divide(a, b)")
_row("floor_divide_backward", "g a b+", np="np.zeros_like(g), np.zeros_like(g)",
     torch="torch.zeros_like(g), torch.zeros_like(g)")  # fmt: skip
_row("modulo", "a b+", "xp.remainder(a, b)")
_row("modulo_backward", "g a b+", np="g.copy(), -g * np.floor_divide(a, b)",
     torch="g.clone(), -g * torch.floor_divide(a, b)")  # fmt: skip
_row("negative", "a", "xp.negative(a)", ne="-a", memory=True)
_row("negative_backward", "g", "xp.negative(g)", ne="-g", memory=True)
_row("reciprocal", "a+", "xp.reciprocal(a)", ne="1 / a", memory=True)
_row("reciprocal_backward", "g y+", "-g * y * y", ne=True, memory=True)
for _name, _sign in (("maximum", ">"), ("minimum", "<")):
    _row(_name, "a b", f"xp.{_name}(a, b)", memory=True)
    _row(f"{_name}_backward", "g a b",
         f"xp.where(a == b, g * 0.5, xp.where(a {_sign} b, g, 0)), "
         f"xp.where(a == b, g * 0.5, xp.where(a {_sign} b, 0, g))", memory=True)  # fmt: skip
_row("where", "c? a b", "xp.where(c, a, b)", ne="where(c, a, b)", memory=True)
_row("where_backward", "g c? a b", "xp.where(c, g, 0), xp.where(c, 0, g)", memory=True)

_category("broadcast")
_row("add:bias", "a@mat b@row", "xp.add(a, b)", ne="a + b", memory=True)
_row("add:column", "a@mat b@col", "xp.add(a, b)", ne="a + b", memory=True)
_row("multiply:scalar", "a", "xp.multiply(a, 2.5)", ex="ex.multiply(a, 2.5)", ne="a * 2.5",
     memory=True)  # fmt: skip
_row("multiply:middle", "a@cube b@mid", "xp.multiply(a, b)", ne="a * b", memory=True)
_row("add_backward:bias", "g@mat a@mat b@row", np="g.copy(), g.sum(0)", torch="g.clone(), g.sum(0)")
_row("add_backward:column", "g@mat a@mat b@col", np="g.copy(), g.sum(1, keepdims=True)",
     torch="g.clone(), g.sum(1, keepdims=True)")  # fmt: skip
_row("multiply_backward:bias", "g@mat a@mat b@row", "g * b, (g * a).sum(0)")
_row("multiply_backward:column", "g@mat a@mat b@col", "g * b, (g * a).sum(1, keepdims=True)")
_row("multiply_backward:middle", "g@cube a@cube b@mid", "g * b, (g * a).sum(1, keepdims=True)")
_row("multiply_backward:scalar", "g a b@scalar", "g * b, (g * a).sum()")
_row("divide_backward:bias", "g@mat a@mat b+@row", "g / b, -(g / b * (a / b)).sum(0)")
_row("where_backward:bias", "g@mat c?@mat a@mat b@row",
     "xp.where(c, g, 0), xp.where(c, 0, g).sum(0)")  # fmt: skip
_row("reduce_broadcast_dims", "g@mat", "xp.sum(g, 0)", ex="ex.reduce_broadcast_dims(g, (w,))")
_row("broadcast_to_backward", "g@mat", "g.sum(1, keepdims=True)",
     ex="ex.broadcast_to_backward(g, (h, 1))")  # fmt: skip

_category("comparison")
for _name, _torch, _sign in (
    ("equal", "eq", "=="), ("not_equal", "ne", "!="), ("less", "lt", "<"),
    ("less_equal", "le", "<="), ("greater", "gt", ">"), ("greater_equal", "ge", ">="),
):  # fmt: skip
    _row(_name, "a b", f"xp.{_name}(a, b)", torch=f"torch.{_torch}(a, b)", ne=f"a {_sign} b",
         memory=True)  # fmt: skip

_category("elementwise")
for _name in ("exp", "expm1", "sin", "cos", "tanh"):
    _row(_name, "x", f"xp.{_name}(x)", ne=True)
for _name in ("log", "log1p", "log10"):
    _row(_name, "x+", f"xp.{_name}(x)", ne=True)
_row("log2", "x+", "xp.log2(x)")
_row("erf", "x", torch="torch.erf(x)", jax="jax.scipy.special.erf(x)")
_row("sqrt", "x+", "xp.sqrt(x)", ne=True, memory=True)
_row("abs", "x", "xp.abs(x)", ne=True, memory=True)
_row("square", "x", "xp.square(x)", ne="x * x", memory=True)
for _name in ("sign", "round", "trunc", "isnan", "isinf", "isfinite"):
    _row(_name, "x", f"xp.{_name}(x)", memory=True)
for _name in ("ceil", "floor"):
    _row(_name, "x", f"xp.{_name}(x)", ne=True, memory=True)
_row("clip", "x", "xp.clip(x, -1, 1)", ex="ex.clip(x, -1, 1)", memory=True)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _row(_name, "a? b?", f"xp.{_name}(a, b)", memory=True)
_row("logical_not", "a?", "xp.logical_not(a)", memory=True)
_row("exp_backward", "g y+", "g * y", ne=True, memory=True)
_row("sqrt_backward", "g y+", "g / (2 * y)", ne=True, memory=True)
_row("tanh_backward", "g y%", "g * (1 - y * y)", torch="aten.tanh_backward(g, y)", ne=True,
     memory=True)  # fmt: skip
_row("expm1_backward", "g x", "g * xp.exp(x)", ne=True)
_row("log_backward", "g x+", "g / x", ne=True, memory=True)
_row("log1p_backward", "g x+", "g / (1 + x)", ne=True, memory=True)
_row("log2_backward", "g x+", "g / (x * 0.6931471805599453)", ne=True, memory=True)
_row("log10_backward", "g x+", "g / (x * 2.302585092994046)", ne=True, memory=True)
_row("abs_backward", "g x", "g * xp.sign(x)", memory=True)
_row("square_backward", "g x", "2 * g * x", ne=True, memory=True)
_row("sin_backward", "g x", "g * xp.cos(x)", ne=True)
_row("cos_backward", "g x", "-g * xp.sin(x)", ne=True)
_row("erf_backward", "g x", "1.1283791670955126 * g * xp.exp(-x * x)", ne=True)
_row("clip_backward", "g x", "xp.where((x >= -1) & (x <= 1), g, 0)",
     ex="ex.clip_backward(g, x, -1, 1)", memory=True)  # fmt: skip
for _name in ("sign", "ceil", "floor", "round", "trunc"):
    _row(f"{_name}_backward", "g", np="np.zeros_like(g)", torch="torch.zeros_like(g)", memory=True)

_category("activations")
_TANH_GELU = "0.5 * x * (1 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))"
_TANH_GELU_BACKWARD = """
def tanh_gelu_backward(g, x):
    t = np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    slope = 0.7978845608028654 * (1 + 0.134145 * x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
"""
_PRELU_BACKWARD = {
    "numpy": "def prelu_backward(g, x, alpha):\n    mask = x > 0\n"
    "    return np.where(mask, g, alpha * g), np.where(mask, 0, g * x).sum(0)",
    "torch": "def prelu_backward(g, x, alpha):\n"
    "    grad_x, grad_alpha = aten._prelu_kernel_backward(g, x, alpha)\n"
    "    return grad_x, grad_alpha.sum(0)",
}
_SIGMOID = "1 / (1 + xp.exp(-x))"


def _vjp(function):
    return f"jax.vjp(lambda v: {function}, x)[1](g)[0]"


_row("relu", "x", np="np.maximum(x, 0)", torch="torch.relu(x)", jax="jax.nn.relu(x)", memory=True)
_row("relu_backward", "g x", "xp.where(x > 0, g, 0)", np="g * (x > 0)",
     torch="aten.threshold_backward(g, x, 0)", ne="where(x > 0, g, 0)", memory=True)  # fmt: skip
_row("leaky_relu", "x", "xp.where(x > 0, x, 0.01 * x)", torch="F.leaky_relu(x, 0.01)",
     memory=True)  # fmt: skip
_row("leaky_relu_backward", "g x", "xp.where(x > 0, g, 0.01 * g)",
     torch="aten.leaky_relu_backward(g, x, 0.01, False)", memory=True)  # fmt: skip
_row("prelu", "x@mat alpha%@row", "xp.where(x > 0, x, alpha * x)", torch="F.prelu(x, alpha)",
     memory=True)  # fmt: skip
_row("prelu_backward", "g@mat x@mat alpha%@row", np="prelu_backward(g, x, alpha)",
     torch="prelu_backward(g, x, alpha)", setup=_PRELU_BACKWARD,
     jax="jnp.where(x > 0, g, alpha * g), jnp.where(x > 0, 0, g * x).sum(0)")  # fmt: skip
_row("sigmoid", "x", _SIGMOID, torch="torch.sigmoid(x)", jax="jax.nn.sigmoid(x)", ne=True)
_row("sigmoid_backward", "g y%", "g * y * (1 - y)", torch="aten.sigmoid_backward(g, y)", ne=True,
     memory=True)  # fmt: skip
_row("gelu", "x", torch="F.gelu(x)", jax="jax.nn.gelu(x, approximate=False)")
_row("gelu_backward", "g x", torch="aten.gelu_backward(g, x)",
     jax=_vjp("jax.nn.gelu(v, approximate=False)"))  # fmt: skip
_row("gelu:tanh", "x", _TANH_GELU, ex="ex.gelu(x, approximate=True)", ne=True,
     torch="F.gelu(x, approximate='tanh')", jax="jax.nn.gelu(x, approximate=True)")  # fmt: skip
_row("gelu_backward:tanh", "g x", ex="ex.gelu_backward(g, x, approximate=True)",
     np="tanh_gelu_backward(g, x)", torch="aten.gelu_backward(g, x, approximate='tanh')",
     jax=_vjp("jax.nn.gelu(v, approximate=True)"),
     setup={"numpy": _TANH_GELU_BACKWARD})  # fmt: skip
_row("swish", "x", "x / (1 + xp.exp(-x))", torch="F.silu(x)", jax="jax.nn.silu(x)", ne=True)
_row("swish_backward", "g x", torch="aten.silu_backward(g, x)", jax=_vjp("jax.nn.silu(v)"),
     np="swish_backward(g, x)", setup={"numpy": "def swish_backward(g, x):\n"
     "    s = 1 / (1 + np.exp(-x))\n    return g * s * (1 + x * (1 - s))"})  # fmt: skip
_row("mish", "x", "x * xp.tanh(xp.log1p(xp.exp(x)))", torch="F.mish(x)", jax="jax.nn.mish(x)",
     ne=True)  # fmt: skip
_row("mish_backward", "g x", torch="aten.mish_backward(g, x)", jax=_vjp("jax.nn.mish(v)"),
     np="mish_backward(g, x)", setup={"numpy": "def mish_backward(g, x):\n"
     "    t = np.tanh(np.log1p(np.exp(x)))\n"
     "    return g * (t + x * (1 - t * t) / (1 + np.exp(-x)))"})  # fmt: skip
_row("elu", "x", "xp.where(x > 0, x, xp.expm1(x))", torch="F.elu(x)", jax="jax.nn.elu(x)", ne=True)
_row("elu_backward", "g x", "xp.where(x > 0, g, g * xp.exp(x))", ne=True,
     torch="aten.elu_backward(g, 1.0, 1, 1, False, x)")  # fmt: skip
_row("softplus", "x", "xp.log1p(xp.exp(x))", torch="F.softplus(x)", jax="jax.nn.softplus(x)",
     ne=True)  # fmt: skip
_row("softplus_backward", "g x", "g / (1 + xp.exp(-x))", ne=True,
     torch="aten.softplus_backward(g, x, 1, 20)")  # fmt: skip

_category("softmax")
_NP_SOFTMAX = {"numpy": """
def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))
def logsumexp(x, axis=None):
    m = x.max(axis, keepdims=True)
    s = np.log(np.exp(x - m).sum(axis, keepdims=True)) + m
    return s.squeeze(axis) if axis is not None else s.reshape(())
"""}  # fmt: skip
for _axis in (1, 0):
    _exps = f"np.exp(x-x.max({_axis},keepdims=True))"
    _y = f"y={_exps}/{_exps}.sum({_axis},keepdims=True)"
    _sum = f"sum({_axis}, keepdims=True)"
    for _name in ("softmax", "log_softmax"):
        _row(f"{_name}:axis{_axis}", "x@mat", f"{_name}(x, {_axis})", setup=_NP_SOFTMAX,
             ex=f"ex.{_name}(x, {_axis})", torch=f"torch.{_name}(x, {_axis})",
             jax=f"jax.nn.{_name}(x, {_axis})")  # fmt: skip
    _row(f"softmax_backward:axis{_axis}", f"g@mat x@mat {_y}", f"y * (g - (g * y).{_sum})",
         ex=f"ex.softmax_backward(g, y, {_axis})",
         torch=f"aten._softmax_backward_data(g, y, {_axis}, y.dtype)")  # fmt: skip
    _row(f"log_softmax_backward:axis{_axis}",
         f"g@mat x@mat {_y.replace('y=', 'y=np.log(')})", f"g - xp.exp(y) * g.{_sum}",
         ex=f"ex.log_softmax_backward(g, y, {_axis})",
         torch=f"aten._log_softmax_backward_data(g, y, {_axis}, y.dtype)")  # fmt: skip

_category("reductions")


def _ties(axis, extreme):
    """Return the source of a max or min gradient that splits ties equally."""
    keep = "" if axis is None else f"{axis}, keepdims=True"
    share = f"g{_SPREAD[axis]} / k.sum({keep})"
    return f"def ties(g, x):\n    k = x == {extreme}({keep})\n    return k * ({share})"


for _axis in (None, 0, 1):
    _tag, _dim = ("", "") if _axis is None else (f":axis{_axis}", f", {_axis}")
    _named = f", axis={_axis}"
    _g = {None: "g@scalar", 0: "g@row", 1: "g@h"}[_axis]
    _gs, _ys = "g" + _SPREAD[_axis], "y" + _SPREAD[_axis]
    _count = {None: "n", 0: "h", 1: "w"}[_axis]
    _mean = "x.mean()" if _axis is None else f"x.mean({_axis}, keepdims=True)"
    for _name in ("sum", "mean"):
        _row(_name + _tag, "x@mat", f"xp.{_name}(x{_dim})", ex=f"ex.{_name}(x{_named})",
             memory=True)  # fmt: skip
        _div = f" / {_count}" if _name == "mean" else ""
        _row(f"{_name}_backward{_tag}", f"{_g} x@mat", ex=f"ex.{_name}_backward(g, x{_named})",
             np=f"np.broadcast_to({_gs}{_div}, x.shape).copy()",
             torch=f"({_gs}{_div}).expand(x.shape).contiguous()",
             jax=f"jnp.broadcast_to({_gs}{_div}, x.shape)", memory=True)  # fmt: skip
    for _name, _short in (("max_reduce", "max"), ("min_reduce", "min")):
        _row(_name + _tag, "x@mat", f"xp.{_short}(x{_dim})", ex=f"ex.{_name}(x{_named})",
             torch=f"torch.a{_short}(x{_dim})", memory=True)  # fmt: skip
        _row(f"{_name}_backward{_tag}", f"{_g} x@mat", "ties(g, x)",
             ex=f"ex.{_name}_backward(g, x{_named})", jax=_vjp(f"jnp.{_short}(v{_named})"),
             setup={"numpy": _ties(_axis, f"x.{_short}"),
                    "torch": _ties(_axis, f"x.a{_short}")})  # fmt: skip
    for _name, _short in (("variance", "var"), ("std", "std")):
        _row(_name + _tag, "x@mat", f"xp.{_short}(x{_dim})", ex=f"ex.{_name}(x{_named})",
             torch=f"torch.{_short}(x{_dim}, correction=0)")  # fmt: skip
    _row(f"variance_backward{_tag}", f"{_g} x@mat", f"(x - {_mean}) * ({_gs} * (2 / {_count}))",
         ex=f"ex.variance_backward(g, x{_named})")  # fmt: skip
    _row(f"std_backward{_tag}", f"{_g} x@mat y=np.std(x{_dim.replace(' ', '')})",
         f"(x - {_mean}) * ({_gs} / ({_ys} * {_count}))",
         ex=f"ex.std_backward(g, x, y{_named})")  # fmt: skip
    _row(f"logsumexp{_tag}", "x@mat", ex=f"ex.logsumexp(x{_named})", setup=_NP_SOFTMAX,
         np=f"logsumexp(x{_dim})",
         torch=f"torch.logsumexp(x, {'(0, 1)' if _axis is None else _axis})",
         jax=f"jax.scipy.special.logsumexp(x{_named})")  # fmt: skip
    _row(f"logsumexp_backward{_tag}",
         f"{_g} x@mat y=np.log(np.exp(x).sum({_axis},dtype='f8'))",
         f"{_gs} * xp.exp(x - {_ys})", ex=f"ex.logsumexp_backward(g, x, y{_named})")  # fmt: skip
    for _name in ("argmax", "argmin"):
        _row(_name + _tag, "x@mat", f"xp.{_name}(x{_dim})", ex=f"ex.{_name}(x{_named})")
    for _name in ("any", "all"):  # neither can stop early on these inputs
        _cond = "c=np.zeros((h,w),bool)" if _name == "any" else "c=np.ones((h,w),bool)"
        _row(_name + _tag, _cond, f"xp.{_name}(c{_dim})", ex=f"ex.{_name}(c{_named})")
_row("sum:cube", "x@cube", "xp.sum(x, (0, 2))", ex="ex.sum(x, axis=(0, 2))", memory=True)

_category("matrix")
_GEMMS = [(s, s, s) for s in (16, 32, 64, 128, 256, 512, 1024, 2048)]
_GEMMS += [(32, 64, 10), (64, 784, 128), (256, 784, 512), (1024, 784, 1024)]
for _m, _k, _n in _GEMMS:
    _tag, _f = f"{_m}x{_k}x{_n}", 2 * _m * _k * _n
    _ab = f"a@{_m}x{_k} b@{_k}x{_n}"
    _row(f"matmul:{_tag}", _ab, "xp.matmul(a, b)", fixed=True, flops=_f)
    if _m <= 1024:
        _row(f"matmul_backward:{_tag}", f"g@{_m}x{_n} {_ab}", "g @ b.T, a.T @ g", fixed=True,
             flops=2 * _f)  # fmt: skip
    if _m != _k:
        _xw = f"x@{_m}x{_k} v@{_n}x{_k}"
        _row(f"linear:{_tag}", f"{_xw} b@{_n}", "x @ v.T + b", torch="F.linear(x, v, b)",
             fixed=True, flops=_f)  # fmt: skip
        _row(f"linear_backward:{_tag}", f"g@{_m}x{_n} {_xw}", "g @ v, g.T @ x, g.sum(0)",
             fixed=True, flops=2 * _f)  # fmt: skip
_BATCH = "a@64x64x64 b@64x64x64"
_row("matmul:batch64", _BATCH, "xp.matmul(a, b)", fixed=True, flops=2 * 64**4)
_row("matmul_backward:batch64", f"g@64x64x64 {_BATCH}", "g @ b.mT, a.mT @ g", fixed=True,
     flops=4 * 64**4)  # fmt: skip
_row("matmul:matvec4096", "a@4096x4096 b@4096", "xp.matmul(a, b)", fixed=True, flops=2 * 4096**2)
_row("matmul:vecmat4096", "a@4096 b@4096x4096", "xp.matmul(a, b)", fixed=True, flops=2 * 4096**2)
_row("dot", "a b", "xp.dot(a, b)", memory=True)
_row("dot_backward", "g@scalar a b", "g * b, g * a", memory=True)
_row("outer", "a@h b@row", "xp.outer(a, b)", memory=True)
_row("outer_backward", "g@mat a@h b@row", "g @ b, g.T @ a")
_row("transpose", "x@mat", "xp.transpose(x)", torch="x.T", jax=None, sizes=(64,), view=True)
_row("transpose:copy", "x@mat", np="x.T.copy()", ex="x.T.copy()",
     torch="x.T.contiguous()", jax="x.T", memory=True)  # fmt: skip
_row("transpose_backward", "g@mat", "xp.transpose(g)", torch="torch.t(g)", jax=None, sizes=(64,),
     view=True)  # fmt: skip

_category("losses")
_MEAN, _NONE = "reduction='mean'", "reduction='none'"


def _loss(name, args, formula, backward, torch, torch_backward=None, size="n"):
    """Add forward and backward rows of a loss: reduced to its mean, and forward unreduced."""
    first, second = (a.partition("@")[0].strip("%#") for a in args.split())
    both = f"{first}, {second}"
    _row(f"{name}:mean", args, f"({formula}).mean()", ex=f"ex.{name}({both}, {_MEAN})",
         torch=f"F.{torch}({both})")  # fmt: skip
    _row(name, args, formula, ex=f"ex.{name}({both})", torch=f"F.{torch}({both}, {_NONE})")
    _row(f"{name}_backward:mean", f"g@scalar {args}", f"({backward}) * (g / {size})",
         ex=f"ex.{name}_backward(g, {both}, {_MEAN})", torch=torch_backward)  # fmt: skip


_loss("mean_squared_error", "x t", "(x - t) ** 2", "2 * (x - t)", "mse_loss",
      "aten.mse_loss_backward(g, x, t, 1)")  # fmt: skip
_loss("smooth_l1", "x t", "xp.where(abs(x - t) < 1, 0.5 * (x - t) ** 2, abs(x - t) - 0.5)",
      "xp.clip(x - t, -1, 1)", "smooth_l1_loss",
      "aten.smooth_l1_loss_backward(g, x, t, 1, 1.0)")  # fmt: skip
_loss("binary_cross_entropy", "p% t%", "-(t * xp.log(p) + (1 - t) * xp.log(1 - p))",
      "(1 - t) / (1 - p) - t / p", "binary_cross_entropy",
      "aten.binary_cross_entropy_backward(g, p, t, None, 1)")  # fmt: skip
_loss("binary_cross_entropy_with_logits", "x t%",
      "xp.maximum(x, 0) - x * t + xp.log1p(xp.exp(-abs(x)))", f"{_SIGMOID} - t",
      "binary_cross_entropy_with_logits", "(torch.sigmoid(x) - t) * (g / n)")  # fmt: skip
_CROSS = {
    "numpy": _NP_SOFTMAX["numpy"] + """
def cross_entropy(x, i):
    return logsumexp(x, 1) - x[np.arange(h), i]
def cross_entropy_backward(g, x, i):
    s = softmax(x, 1)
    s[np.arange(h), i] -= 1
    s *= g / h
    return s
""",
    "torch": """
def cross_entropy_backward(g, x, i):  # the two kernels that autograd runs, after the softmax
    y = torch.log_softmax(x, 1)
    d = aten.nll_loss_backward(g, y, i, None, 1, -100, total)
    return aten._log_softmax_backward_data(d, y, 1, y.dtype)
total = torch.tensor(float(h), dtype=dtype)
""",
    "jax": """
def cross_entropy(x, i):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], 1)[:, 0]
""",
}  # fmt: skip
_row("cross_entropy:mean", "x@mat i#@h", "cross_entropy(x, i).mean()", setup=_CROSS,
     ex=f"ex.cross_entropy(x, i, {_MEAN})", torch="F.cross_entropy(x, i)")  # fmt: skip
_row("cross_entropy", "x@mat i#@h", "cross_entropy(x, i)", setup=_CROSS,
     torch=f"F.cross_entropy(x, i, {_NONE})")  # fmt: skip
_row("cross_entropy_backward:mean", "g@scalar x@mat i#@h", "cross_entropy_backward(g, x, i)",
     ex=f"ex.cross_entropy_backward(g, x, i, {_MEAN})",
     jax=_vjp("cross_entropy(v, i).mean()"), setup=_CROSS)  # fmt: skip
_WEIGHTS = "x@mat u%@mat t=u/u.sum(1,keepdims=True)"
_row("cross_entropy:weights", _WEIGHTS, ex=f"ex.cross_entropy(x, t, {_MEAN})",
     np="-(t * log_softmax(x, 1)).sum(1).mean()", torch="F.cross_entropy(x, t)",
     jax="-(t * jax.nn.log_softmax(x)).sum(1).mean()", setup=_NP_SOFTMAX)  # fmt: skip
_row("cross_entropy_backward:weights", f"g@scalar {_WEIGHTS}",
     ex=f"ex.cross_entropy_backward(g, x, t, {_MEAN})", np="(softmax(x, 1) - t) * (g / h)",
     torch="(torch.softmax(x, 1) - t) * (g / h)", jax="(jax.nn.softmax(x) - t) * (g / h)",
     setup=_NP_SOFTMAX)  # fmt: skip

_category("optimizers")
_row("sgd_step", "x g", "x - 0.01 * g", ex="ex.sgd_step(x, g, 0.01)",
     torch="torch.sub(x, g, alpha=0.01)", ne=True, memory=True)  # fmt: skip
_FOUR = LIBRARIES[:4]


def _program(id, args, make, needs, libraries=_FOUR, **more):
    """Add a row whose code is a function of `programs.py`; `call()` is what is timed."""
    setup = {lib: f"call, check = programs.{make}".replace("LIB", repr(lib)) for lib in libraries}
    short = {"extensor": "ex", "numpy": "np"}
    calls = {short.get(lib, lib): "call()" for lib in libraries}
    _row(id, args, setup=setup, needs=needs, **calls, **more)


for _id, _passes in (("SGD", 3), ("SGD:momentum", 5), ("Adam", 7), ("AdamW", 7), ("RMSprop", 5)):
    _program(_id, "x g", f"optimizer(LIB, {_id!r}, x, g)", None, passes=_passes, memory=True)
_THREE = ("extensor", "numpy", "torch")
_program("clip_grad_norm", "g", "clip_norm(LIB, g)", None, _THREE, passes=3)
_program("clip_grad_value", "g", "clip_value(LIB, g)", None, _THREE, passes=2)

_category("training")
_STEP = ("linear", "relu", "cross_entropy", "cross_entropy_backward", "linear_backward",
         "relu_backward", "SGD")  # fmt: skip
for _sizes in ((32, 64, 64, 10), (64, 784, 128, 10), (256, 784, 512, 10), (1024, 784, 1024, 10)):
    _b, _i, _h, _o = _sizes
    _program("training_step:" + "x".join(map(str, _sizes)), "", f"training(LIB, {_sizes}, dtype)",
             _STEP, fixed=True, flops=2 * _b * (2 * _i * _h + 3 * _h * _o))  # fmt: skip

_category("shape")
_row("copy", "x", np="x.copy()", torch="x.clone()", jax="jnp.copy(x)", ex="x.copy()",
     needs=("tensor",), memory=True)  # fmt: skip
_row("cast", "x", ex="ex.cast(x, other)", np="x.astype(other)", torch="x.to(other)",
     jax="x.astype(other)", memory=True)  # fmt: skip
_row("cast_backward", "g", ex="ex.cast_backward(g, other)", np="g.astype(other)",
     torch="g.to(other)", jax="g.astype(other)", memory=True)  # fmt: skip
for _axis in (0, 1):
    for _name in ("concatenate", "stack"):
        _row(f"{_name}:axis{_axis}", "a@mat b@mat", f"xp.{_name}((a, b), {_axis})",
             ex=f"ex.{_name}((a, b), {_axis})", memory=True)  # fmt: skip
_TWO = {"np": "[v.copy() for v in np.split(g, 2, {0})]",
        "torch": "[v.clone() for v in torch.chunk(g, 2, {0})]"}  # fmt: skip
_row("concatenate_backward", "g@10x1000", sizes=(0,), jax=None,
     ex="ex.concatenate_backward(g, [(10, 500), (10, 500)], 1)",
     **{k: v.format(1) for k, v in _TWO.items()})  # fmt: skip
_row("stack_backward", "g@2x100x100", sizes=(0,), jax=None, ex="ex.stack_backward(g, 0)",
     np="[v.copy() for v in g]", torch="[v.clone() for v in g]")  # fmt: skip
_row("split", "x@10x1000", sizes=(0,), view=True, ex="ex.split(x, 2, 1)", np="np.split(x, 2, 1)",
     torch="torch.chunk(x, 2, 1)")  # fmt: skip
_row("split_backward", "a@mat b@mat", "xp.concatenate((a, b), 1)",
     ex="ex.split_backward((a, b), 1)", memory=True)  # fmt: skip
_row("getitem_backward", "g@mat x@mat i=np.arange(h)[::-1].copy()",
     ex="ex.getitem_backward(g, i, x.shape)", np="scatter(g, x, i)", torch="scatter(g, x, i)",
     jax="jnp.zeros_like(x).at[i].add(g)",
     setup={"numpy": "def scatter(g, x, i):\n    r = np.zeros_like(x)\n"
            "    np.add.at(r, i, g)\n    return r",
            "torch": "def scatter(g, x, i):\n"
            "    return torch.zeros_like(x).index_add_(0, i, g)"})  # fmt: skip
_LAID = {"x": "mat", "v": "vec", "u": "1x8x8"}  # the one input of a view row
for _name, _ex, _np, _torch in (  # functions beside functions; methods beside methods below
    ("reshape", "x, (w, h)", "np.reshape(x, (w, h))", "torch.reshape(x, (w, h))"),
    ("flatten", "x", "x.flatten()", "torch.flatten(x)"),
    ("ravel", "x", "np.ravel(x)", "torch.ravel(x)"),
    ("unsqueeze", "x, 0", "np.expand_dims(x, 0)", "torch.unsqueeze(x, 0)"),
    ("squeeze", "x", "np.squeeze(x)", "torch.squeeze(x)"),
    ("permute", "x, (1, 0)", "np.transpose(x, (1, 0))", "torch.permute(x, (1, 0))"),
    ("broadcast_to", "x, (2, h, w)", "np.broadcast_to(x, (2, h, w))",
     "torch.broadcast_to(x, (2, h, w))"),
    ("reshape_backward", "x, (w, h)", "np.reshape(x, (w, h))", "torch.reshape(x, (w, h))"),
    ("flatten_backward", "v, (h, w)", "np.reshape(v, (h, w))", "torch.reshape(v, (h, w))"),
    ("ravel_backward", "v, (h, w)", "np.reshape(v, (h, w))", "torch.reshape(v, (h, w))"),
    ("unsqueeze_backward", "u, (h, w)", "np.reshape(u, (h, w))", "torch.reshape(u, (h, w))"),
    ("squeeze_backward", "x, (1, h, w)", "np.reshape(x, (1, h, w))",
     "torch.reshape(x, (1, h, w))"),
    ("permute_backward", "x, (1, 0)", "np.transpose(x, (1, 0))", "torch.permute(x, (1, 0))"),
):  # fmt: skip
    _row(_name, f"{_ex[0]}@{_LAID[_ex[0]]}", ex=f"ex.{_name}({_ex})", np=_np, torch=_torch,
         sizes=(64,), view=True)  # fmt: skip
for _name, _call in (("reshape", "x.reshape(w, h)"), ("squeeze", "x.squeeze()"),
                     ("ravel", "x.ravel()"), ("transpose", "x.T")):  # fmt: skip
    _row(f"{_name}:method", "x@mat", ex=_call, np=_call, torch=_call, sizes=(64,), view=True)

_category("creation")
for _name in ("zeros", "ones", "empty"):
    _row(_name, "", f"xp.{_name}((n,), dtype=dtype)", ex=f"ex.{_name}((n,), dtype)",
         jax=None, random=_name == "empty")  # fmt: skip
    _row(f"{_name}_like", "x", f"xp.{_name}_like(x)", jax=None, random=_name == "empty")
_row("full", "", "xp.full((n,), 1.5, dtype=dtype)", ex="ex.full((n,), 1.5, dtype)", jax=None)
_row("full_like", "x", "xp.full_like(x, 1.5)", ex="ex.full_like(x, 1.5)", jax=None)
_row("arange", "", "xp.arange(n)", ex="ex.arange(n)", jax=None)
_row("linspace", "", "xp.linspace(0, 1, n, dtype=dtype)", ex="ex.linspace(0, 1, n, dtype)",
     jax=None)  # fmt: skip
_row("eye", "", "xp.eye(w, dtype=dtype)", ex="ex.eye(w, dtype=dtype)", jax=None)
_row("one_hot", "i#@h", ex="ex.one_hot(i, w, dtype)", np="np.eye(w, dtype=dtype)[i]",
     torch="F.one_hot(i, w).to(dtype)", jax="jax.nn.one_hot(i, w, dtype=dtype)")  # fmt: skip
_row("tensor", "x", ex="ex.tensor(x)", np="np.array(x)", torch="torch.tensor(x.numpy())",
     memory=True)  # fmt: skip
_row("asarray", "x", ex="ex.asarray(x)", np="np.asarray(x)", torch="torch.as_tensor(x)",
     sizes=(64,), view=True)  # fmt: skip
for _name, _torch in (("uniform", "uniform_(-1, 1)"), ("normal", "normal_(0, 1)")):
    _draw = "rng.uniform(-1, 1, (h, w))" if _name == "uniform" else "rng.normal(0, 1, (h, w))"
    for _kind, _shape in (("xavier", "h, w"), ("kaiming", "w, (h, w)")):
        _row(f"{_kind}_{_name}", "", ex=f"ex.{_kind}_{_name}({_shape}, dtype=dtype, rng=rng)",
             np=f"({_draw} * 0.1).astype(dtype)", random=True,
             torch=f"torch.empty((h, w), dtype=dtype).{_torch}",
             setup=dict.fromkeys(("extensor", "numpy"),
                                 "rng = np.random.default_rng(0)"))  # fmt: skip

#: Rows that stand for their kind: quick mode, and float16, one thread and `out=` in full mode.
REPRESENTATIVE = (
    "add", "multiply_backward:bias", "divide_backward", "exp", "tanh_backward", "relu",
    "relu_backward", "gelu", "gelu_backward", "softmax:axis1", "softmax_backward:axis1",
    "sum:axis0", "max_reduce:axis1", "matmul:256x256x256", "matmul:64x784x128",
    "cross_entropy_backward:mean", "Adam",
)  # fmt: skip
#: What quick mode adds to them.
QUICK = (
    *REPRESENTATIVE, "less", "where", "sigmoid", "log", "sum", "variance:axis1",
    "matmul:1024x1024x1024", "linear:64x784x128", "mean_squared_error:mean", "transpose:copy",
    "training_step:64x784x128x10", "training_step:256x784x512x10",
)  # fmt: skip
