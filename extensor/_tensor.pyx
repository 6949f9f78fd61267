"""ExTensor: a NumPy array with this library's operators.

NumPy is the storage (views, indexing, printing, pickling); every arithmetic operator goes through
the apply layer, which binds itself to the hooks below when it is imported.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE

from extensor._memory cimport new_array

cnp.import_array()

cdef dict _ops = {}             # operator name -> Op, bound by the apply layer
cdef dict _functions = {}       # method name -> public function, bound by the package


def bind_operators(ops: dict) -> None:
    """Tell the tensor which ops its operators are; called once, at import."""
    global op_add, op_subtract, op_multiply, op_divide, op_floor_divide, op_modulo, op_power
    global op_equal, op_not_equal, op_less, op_less_equal, op_greater, op_greater_equal
    _ops.update(ops)
    op_add, op_subtract = ops["add"], ops["subtract"]
    op_multiply, op_divide = ops["multiply"], ops["divide"]
    op_floor_divide, op_modulo, op_power = ops["floor_divide"], ops["modulo"], ops["power"]
    op_equal, op_not_equal = ops["equal"], ops["not_equal"]
    op_less, op_less_equal = ops["less"], ops["less_equal"]
    op_greater, op_greater_equal = ops["greater"], ops["greater_equal"]


def bind_functions(functions: dict) -> None:
    """Tell the tensor which functions its methods mirror; called once, at import."""
    _functions.update(functions)


cdef object op_add, op_subtract, op_multiply, op_divide, op_floor_divide, op_modulo, op_power
cdef object op_equal, op_not_equal, op_less, op_less_equal, op_greater, op_greater_equal


# ---------------------------------------------------------------- conversion

cdef tuple _PYTHON_SCALARS = (bool, int, float)


cdef bint _python_leaves(object obj):
    """Whether a nested list holds only Python's own numbers (no NumPy scalars, no arrays)."""
    cdef list stack = [obj]
    while stack:
        item = stack.pop()
        if type(item) is list or type(item) is tuple:
            stack.extend(item)
        elif type(item) not in _PYTHON_SCALARS:
            return False
    return True


cdef cnp.ndarray plain_array(object obj, str function, str argument):
    """Any array-like as an aligned ndarray in native byte order, sharing memory where it can."""
    cdef cnp.ndarray array
    if isinstance(obj, ExTensor):
        array = (<ExTensor> obj)._array
    elif type(obj) is np.ndarray:
        array = obj
    elif obj is None or isinstance(obj, (str, bytes, dict, set, frozenset)):
        raise TypeError(
            f"{function}: {argument} must be a tensor or array-like, not {_describe(obj)}")
    else:
        try:
            if isinstance(obj, np.ndarray) or not hasattr(obj, "__dlpack__") or hasattr(obj, "__array__"):
                array = np.asarray(obj)
            else:
                array = np.from_dlpack(obj)
        except (ValueError, TypeError) as error:
            raise type(error)(
                f"{function}: {argument} is not a rectangular array of numbers ({error})") from None
        except OverflowError as error:
            raise OverflowError(f"{function}: {argument}: {error}") from None
        if array.dtype == np.float64 and not isinstance(obj, (np.ndarray, np.generic)):
            if isinstance(obj, (list, tuple, float)) and type(obj) is not np.float64:
                if _python_leaves(obj):
                    array = array.astype(np.float32)
    cdef int typenum = cnp.PyArray_TYPE(array)
    if not supported(typenum):
        if array.dtype == object and _python_leaves(obj):
            raise OverflowError(f"{function}: {argument} holds a Python int beyond 64 bits")
        raise TypeError(
            f"{function}: {argument} has dtype {array.dtype}; extensor works with float16, float32, "
            "float64, bool and the integers of 8 to 64 bits")
    if not cnp.PyArray_ISBEHAVED_RO(array):
        array = cnp.PyArray_FROM_OF(array, cnp.NPY_ARRAY_ALIGNED | cnp.NPY_ARRAY_NOTSWAPPED)
    return array


cdef object _describe(object obj):
    if obj is None:
        return "None"
    return f"{type(obj).__name__} {obj!r}"[:60]


cdef inline bint supported(int typenum):
    return typenum <= cnp.NPY_ULONGLONG or typenum == cnp.NPY_FLOAT or (
        typenum == cnp.NPY_DOUBLE or typenum == cnp.NPY_FLOAT16)


cdef cnp.ndarray aligned_copy(cnp.ndarray array):
    cdef cnp.ndarray copy = new_array(
        cnp.PyArray_NDIM(array), <Py_ssize_t*> cnp.PyArray_DIMS(array), cnp.PyArray_TYPE(array))
    copy_hook(copy, array)
    return copy


cdef int _numpy_copy(cnp.ndarray place, cnp.ndarray source) except -1:
    cnp.PyArray_CopyInto(place, source)
    return 0


copy_hook = _numpy_copy     # until the kernels are there


cdef ExTensor wrap(cnp.ndarray array):
    cdef ExTensor tensor = ExTensor.__new__(ExTensor)
    tensor._array = array
    return tensor


cdef object _dtype(object dtype, str function):
    """A dtype argument, checked."""
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{function}: dtype: {error}") from None
    if not supported(result.num):
        raise TypeError(
            f"{function}: dtype {result} is not supported; extensor works with float16, float32, "
            "float64, bool and the integers of 8 to 64 bits")
    return result.newbyteorder("=")


def check_dtype(dtype: object, str function) -> np.dtype:
    """A dtype argument as a supported native dtype, or a TypeError that names the function."""
    return _dtype(dtype, function)


def as_array(obj: object, str function, str argument="x") -> np.ndarray:
    """Any array-like as a supported ndarray, or an error that names function and argument."""
    return plain_array(obj, function, argument)


def from_array(array: np.ndarray) -> ExTensor:
    """A tensor over an array's own memory."""
    return wrap(plain_array(array, "from_array", "array"))


def aligned(array: np.ndarray) -> ExTensor:
    """A tensor with memory of its own, copied from an array."""
    return wrap(aligned_copy(array))


def asarray(obj: object, dtype: object = None, *, copy: object = None) -> ExTensor:
    """A tensor of an array-like, sharing its memory where possible.

    Python floats and lists of them become float32, ints int64, bools bool; arrays and NumPy
    scalars keep their dtype.

    Parameters
    ----------
    obj : array_like
        An ExTensor, ndarray, nested list, Python scalar, or any object with the buffer protocol,
        ``__array__`` or DLPack.
    dtype : dtype, optional
        The wanted dtype; a conversion copies.
    copy : bool, optional
        True always copies, False raises where a copy would be needed, None copies as needed.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.asarray([1.0, 2.5])
    ExTensor([1. , 2.5], dtype=float32)
    """
    cdef cnp.ndarray array, source
    cdef object wanted = None if dtype is None else _dtype(dtype, "asarray")
    if wanted is not None and not isinstance(obj, (ExTensor, np.ndarray)):
        source = _convert(obj, wanted, "asarray")
    else:
        source = plain_array(obj, "asarray", "obj")
    array = source
    if wanted is not None and array.dtype != wanted:
        with np.errstate(all="ignore"):
            array = aligned_copy(array.astype(wanted))
    shared = isinstance(obj, ExTensor) and array is (<ExTensor> obj)._array
    if copy:
        return wrap(aligned_copy(array) if array is source else array)
    if array is source and not isinstance(obj, ExTensor) and isinstance(obj, (list, tuple, int, float)):
        array = aligned_copy(array)
    if copy is False and not (shared or np.may_share_memory(array, _memory_of(obj))):
        raise ValueError("asarray: copy=False, but this object cannot be shared without a copy")
    return obj if shared else wrap(array)


cdef object _memory_of(object obj):
    try:
        return np.asarray(obj, copy=False)
    except (ValueError, TypeError):
        return np.empty(0)


cdef cnp.ndarray _convert(object obj, object dtype, str function):
    """A list, scalar or foreign object straight to a dtype: float64 never passes through float32."""
    if isinstance(obj, (list, tuple, bool, int, float)) and not isinstance(obj, np.generic):
        checked = plain_array(obj, function, "obj")     # the same errors as without a dtype
        if checked.dtype.kind == "f" or np.dtype(dtype).kind != "f":
            with np.errstate(all="ignore"):
                raw = np.asarray(obj)
                return raw.astype(dtype) if raw.dtype.kind == "f" else np.asarray(obj, dtype)
        return checked.astype(dtype)
    return plain_array(obj, function, "obj")


def tensor(obj: object, dtype: object = None) -> ExTensor:
    """A tensor with memory of its own, copied from an array-like.

    Examples
    --------
    >>> import extensor as ex
    >>> ex.tensor([[1, 2], [3, 4]])
    ExTensor([[1, 2],
              [3, 4]], dtype=int64)
    """
    cdef object wanted = None if dtype is None else _dtype(dtype, "tensor")
    cdef cnp.ndarray array
    if wanted is None:
        array = plain_array(obj, "tensor", "obj")
    else:
        array = _convert(obj, wanted, "tensor")
        if array.dtype != wanted:
            with np.errstate(all="ignore"):
                array = array.astype(wanted)
    return wrap(aligned_copy(array))


def from_dlpack(x: object, /, *, device: object = None, copy: object = None) -> ExTensor:
    """A tensor over the memory of any object that speaks DLPack.

    Examples
    --------
    >>> import numpy as np
    >>> import extensor as ex
    >>> array = np.arange(3.0)
    >>> shared = ex.from_dlpack(array)
    >>> array[0] = 7
    >>> shared
    ExTensor([7., 1., 2.], dtype=float64)
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: x must have __dlpack__, {type(x).__name__} has not")
    if device not in (None, "cpu"):
        raise ValueError(f"from_dlpack: device must be 'cpu', not {device!r}")
    if isinstance(x, ExTensor):
        result = x
    else:
        result = wrap(plain_array(np.from_dlpack(x), "from_dlpack", "x"))
    return result.copy() if copy else result


def _rebuild(array: np.ndarray) -> ExTensor:
    return wrap(array)


# ---------------------------------------------------------------- the tensor

cdef object _plain_index(object index):
    if isinstance(index, ExTensor):
        return (<ExTensor> index)._array
    if isinstance(index, tuple):
        return tuple([(<ExTensor> i)._array if isinstance(i, ExTensor) else i for i in index])
    return index


cdef object _plain_arguments(object obj):
    """Arguments of a NumPy function with every tensor replaced by its array."""
    if isinstance(obj, ExTensor):
        return (<ExTensor> obj)._array
    if type(obj) is tuple or type(obj) is list:
        return type(obj)([_plain_arguments(item) for item in obj])
    if type(obj) is dict:
        return {key: _plain_arguments(value) for key, value in obj.items()}
    return obj


@cython.freelist(32)
cdef class ExTensor:
    """A tensor on the CPU: shape, dtype, strides, and this library's operators.

    Made by ``ex.tensor``, ``ex.asarray``, the creation functions and every function of the
    library. NumPy reads it without a copy (``np.asarray(t)``), and so does everything that speaks
    the buffer protocol or DLPack.

    Examples
    --------
    >>> import extensor as ex
    >>> x = ex.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x + 1
    ExTensor([[2., 3.],
              [4., 5.]], dtype=float32)
    """

    __array_priority__ = 1000.0     # ndarray and NumPy scalars leave the operators to us

    def __init__(self, *args: object, **kwargs: object) -> None:
        if self._array is None:
            raise TypeError("ExTensor is not made directly: use ex.tensor, ex.asarray or ex.zeros")

    # -- what it is

    @property
    def shape(self) -> tuple:
        return (<object> self._array).shape

    @shape.setter
    def shape(self, value: object) -> None:
        raise AttributeError("the shape of an ExTensor is fixed; use reshape")

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return cnp.PyArray_NDIM(self._array)

    @property
    def size(self) -> int:
        return cnp.PyArray_SIZE(self._array)

    @property
    def strides(self) -> tuple:
        return (<object> self._array).strides

    @property
    def nbytes(self) -> int:
        return cnp.PyArray_NBYTES(self._array)

    @property
    def itemsize(self) -> int:
        return cnp.PyArray_ITEMSIZE(self._array)

    @property
    def T(self) -> ExTensor:
        """The tensor with its axes reversed: a view."""
        return wrap(self._array.T)

    def numel(self) -> int:
        """The number of elements."""
        return cnp.PyArray_SIZE(self._array)

    def __len__(self) -> int:
        if cnp.PyArray_NDIM(self._array) == 0:
            raise TypeError("len() of a 0-d ExTensor")
        return cnp.PyArray_DIM(self._array, 0)

    def __repr__(self) -> str:
        text = np.array2string(self._array, separator=", ", prefix="ExTensor(")
        if self._array.size == 0:
            return f"ExTensor([], shape={self.shape}, dtype={self._array.dtype})"
        return f"ExTensor({text}, dtype={self._array.dtype})"

    def __str__(self) -> str:
        return str(self._array)

    def __format__(self, spec: str) -> str:
        return format(self._array if self._array.ndim else self._array[()], spec)

    def __hash__(self) -> int:
        return <Py_hash_t> (<size_t> <void*> self >> 4)

    # -- one element as a Python number

    def item(self, *args: object) -> object:
        """One element as a Python number; without arguments the tensor must hold just one."""
        if not args and self._array.size != 1:
            raise ValueError(
                f"item: a tensor of shape {self.shape} has {self._array.size} elements, not one")
        return self._array.item(*args)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ValueError(
                f"the truth value of an ExTensor of shape {self.shape} is ambiguous; "
                "use ex.any or ex.all")
        return bool(self._array.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self._array.ndim or self._array.dtype.kind not in "iu":
            raise TypeError("only a 0-d integer ExTensor can be used as an index")
        return self._array.item()

    # -- indexing: NumPy's rules, views where NumPy gives views

    def __getitem__(self, index: object) -> ExTensor:
        cdef object result = self._array[_plain_index(index)]
        if not isinstance(result, np.ndarray):
            return wrap(aligned_copy(np.asarray(result)))
        if result.base is None:
            return wrap(aligned_copy(result))
        return wrap(result)

    def __setitem__(self, index: object, value: object) -> None:
        if isinstance(value, ExTensor):
            value = (<ExTensor> value)._array
        elif not isinstance(value, (int, float, np.generic, np.ndarray)):
            value = plain_array(value, "item assignment", "value")
        with np.errstate(all="ignore"):
            self._array[_plain_index(index)] = value

    def __delitem__(self, index: object) -> None:
        raise TypeError("the elements of an ExTensor cannot be deleted")

    def __iter__(self) -> object:
        if self._array.ndim == 0:
            raise TypeError("a 0-d ExTensor cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: object) -> bool:
        return bool((binary_hook(op_equal, self, value, None))._array.any())

    # -- interchange

    def numpy(self) -> np.ndarray:
        """The tensor as an ndarray over the same memory."""
        return self._array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.asarray(self._array, dtype=dtype, copy=copy)

    def __array_function__(self, function, types, args, kwargs) -> object:
        """NumPy's own functions see an ndarray, and return one."""
        return function(*_plain_arguments(args), **_plain_arguments(kwargs))

    @property
    def __array_interface__(self) -> dict:
        return self._array.__array_interface__

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyObject_GetBuffer(self._array, view, flags)

    def __dlpack__(self, **options: object) -> object:
        cdef cnp.ndarray array = self._array
        if any([stride < 0 for stride in (<object> array).strides]):
            # PyTorch aborts the process when it is handed negative strides.
            if options.get("copy") is False:
                raise BufferError("__dlpack__: a tensor with negative strides needs a copy")
            array = aligned_copy(array)
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return self._array.__dlpack_device__()

    def __reduce__(self) -> tuple:
        return (_rebuild, (self._array,))

    def __reduce_ex__(self, protocol: object) -> tuple:
        return (_rebuild, (self._array,))

    def __copy__(self) -> ExTensor:
        return wrap(aligned_copy(self._array))

    def __deepcopy__(self, memo: dict) -> ExTensor:
        cdef ExTensor result = wrap(aligned_copy(self._array))
        memo[id(self)] = result
        return result

    # -- methods

    def copy(self) -> ExTensor:
        """A C-contiguous copy with memory of its own."""
        return wrap(aligned_copy(self._array))

    def astype(self, dtype: object) -> ExTensor:
        """A copy converted to another dtype."""
        cdef object wanted = _dtype(dtype, "astype")
        cdef cnp.ndarray result = new_array(
            cnp.PyArray_NDIM(self._array), <Py_ssize_t*> cnp.PyArray_DIMS(self._array), wanted.num)
        copy_hook(result, self._array)
        return wrap(result)

    def tolist(self) -> object:
        """The elements as nested lists of Python numbers."""
        return self._array.tolist()

    def fill(self, value: object) -> None:
        """Set every element to a value."""
        self[...] = value

    def sum(self, axis: object = None, keepdims: bool = False) -> ExTensor:
        """See `extensor.sum`."""
        return _functions["sum"](self, axis, keepdims)

    def mean(self, axis: object = None, keepdims: bool = False) -> ExTensor:
        """See `extensor.mean`."""
        return _functions["mean"](self, axis, keepdims)

    def max(self, axis: object = None, keepdims: bool = False) -> ExTensor:
        """See `extensor.max_reduce`."""
        return _functions["max_reduce"](self, axis, keepdims)

    def min(self, axis: object = None, keepdims: bool = False) -> ExTensor:
        """See `extensor.min_reduce`."""
        return _functions["min_reduce"](self, axis, keepdims)

    def reshape(self, *shape: object) -> ExTensor:
        """See `extensor.reshape`; the shape as one tuple or as several ints."""
        return _functions["reshape"](self, shape[0] if len(shape) == 1 else shape)

    def flatten(self) -> ExTensor:
        """See `extensor.flatten`."""
        return _functions["flatten"](self)

    def ravel(self) -> ExTensor:
        """See `extensor.ravel`."""
        return _functions["ravel"](self)

    def squeeze(self, axis: object = None) -> ExTensor:
        """See `extensor.squeeze`."""
        return _functions["squeeze"](self, axis)

    def unsqueeze(self, axis: int) -> ExTensor:
        """See `extensor.unsqueeze`."""
        return _functions["unsqueeze"](self, axis)

    def transpose(self, *axes: object) -> ExTensor:
        """See `extensor.transpose`; the axes as one tuple or as several ints."""
        if not axes:
            return _functions["transpose"](self, None)
        return _functions["transpose"](self, axes[0] if len(axes) == 1 else axes)

    # -- operators

    def __add__(self, other):
        return _operate(op_add, self, other, other)

    def __radd__(self, other):
        return _operate(op_add, other, self, other)

    def __sub__(self, other):
        return _operate(op_subtract, self, other, other)

    def __rsub__(self, other):
        return _operate(op_subtract, other, self, other)

    def __mul__(self, other):
        return _operate(op_multiply, self, other, other)

    def __rmul__(self, other):
        return _operate(op_multiply, other, self, other)

    def __truediv__(self, other):
        return _operate(op_divide, self, other, other)

    def __rtruediv__(self, other):
        return _operate(op_divide, other, self, other)

    def __floordiv__(self, other):
        return _operate(op_floor_divide, self, other, other)

    def __rfloordiv__(self, other):
        return _operate(op_floor_divide, other, self, other)

    def __mod__(self, other):
        return _operate(op_modulo, self, other, other)

    def __rmod__(self, other):
        return _operate(op_modulo, other, self, other)

    def __pow__(self, other, modulo):
        if modulo is not None:
            return NotImplemented
        return _operate(op_power, self, other, other)

    def __rpow__(self, other, modulo):
        if modulo is not None:
            return NotImplemented
        return _operate(op_power, other, self, other)

    def __matmul__(self, other):
        return _functions["matmul"](self, other)

    def __rmatmul__(self, other):
        return _functions["matmul"](other, self)

    def __iadd__(self, other):
        return _in_place(op_add, self, other)

    def __isub__(self, other):
        return _in_place(op_subtract, self, other)

    def __imul__(self, other):
        return _in_place(op_multiply, self, other)

    def __itruediv__(self, other):
        return _in_place(op_divide, self, other)

    def __neg__(self):
        return _functions["negative"](self)

    def __pos__(self):
        return wrap(aligned_copy(self._array))

    def __abs__(self):
        return _functions["abs"](self)

    def __richcmp__(self, other, int kind):
        if kind == Py_EQ:
            return _operate(op_equal, self, other, other)
        if kind == Py_NE:
            return _operate(op_not_equal, self, other, other)
        if kind == Py_LT:
            return _operate(op_less, self, other, other)
        if kind == Py_LE:
            return _operate(op_less_equal, self, other, other)
        if kind == Py_GT:
            return _operate(op_greater, self, other, other)
        return _operate(op_greater_equal, self, other, other)


cdef object _operate(object op, object a, object b, object other):
    """An operator's result; NotImplemented beside an object that is no number and no array."""
    if type(other) is not ExTensor and _foreign(other):
        return NotImplemented
    return binary_hook(op, a, b, None)


cdef bint _foreign(object obj):
    if isinstance(obj, (ExTensor, float, int, np.ndarray, np.generic, list, tuple)):
        return False
    if obj is None or isinstance(obj, (str, bytes)):
        return True
    return not (
        hasattr(obj, "__array__") or hasattr(obj, "__dlpack__") or PyObject_CheckBuffer(obj))


cdef object _in_place(object op, ExTensor self, object other):
    """self ∘= other by NumPy's rule: the result is cast back to self's dtype within its kind."""
    cdef ExTensor result
    cdef object name = op.name
    if type(other) is not ExTensor and _foreign(other):
        return NotImplemented
    if isinstance(other, ExTensor) and (<ExTensor> other)._array.dtype == self._array.dtype:
        return binary_hook(op, self, other, self)
    if type(other) in _PYTHON_SCALARS and self._array.dtype.kind == "f":
        return binary_hook(op, self, other, self)
    if not self._array.flags.writeable:
        raise ValueError(f"{name}: the tensor is read-only and cannot be changed in place")
    result = binary_hook(op, self, other, None)
    if result.shape != self.shape:
        raise ValueError(
            f"{name}: in place, the result of shape {result.shape} does not fit the tensor's "
            f"shape {self.shape}")
    if not np.can_cast(result._array.dtype, self._array.dtype, "same_kind"):
        raise TypeError(
            f"{name}: in place, a result of dtype {result._array.dtype} cannot be kept in a tensor "
            f"of dtype {self._array.dtype}")
    with np.errstate(all="ignore"):
        np.copyto(self._array, result._array, casting="same_kind")
    return self
