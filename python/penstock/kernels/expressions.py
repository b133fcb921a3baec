"""Values of an expression that is traced: their C text, with NumPy's types, for `penstock.function`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arrays.messages import shown

if TYPE_CHECKING:
    from collections.abc import Callable

C_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
    "logical_and": "&&",
    "logical_or": "||",
}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_PREFIXES = {"negative": "-", "positive": "+", "logical_not": "!"}
_MATH = ["sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"]
_MATH += ["arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc", "rint", "fabs"]
_MATH += ["arcsinh", "arccosh", "arctanh"]
_MATH += ["arctan2", "hypot", "power", "fmod", "copysign", "fmax", "fmin", "nextafter"]
_C_NAMES = {name: name.replace("arc", "a") for name in _MATH if name.startswith("arc")} | {"power": "pow"}
_FACTORS = dict.fromkeys(("deg2rad", "radians"), np.pi / 180) | dict.fromkeys(
    ("rad2deg", "degrees"), 180 / np.pi
)


class Value:
    """A value of an expression that is traced: its C text, and one element as NumPy computes it, for its
    type. Python's operators and NumPy's functions take it."""

    def __init__(self, text: str, like: Any, needs: set[np.dtype[Any]] | None = None) -> None:
        self._text, self._like = text, like
        self._needs = needs  # of a number among the arguments: the types that it is converted to

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            raise TypeError(f"penstock.function: numpy.{ufunc.__name__}.{method}: write plain operations")
        likes = [one._like if isinstance(one, Value) else one for one in inputs]
        with np.errstate(all="ignore"):
            like = np.asarray(ufunc(*likes))
            taken = ufunc.resolve_dtypes((*(_weak_type(one) for one in likes), *([None] * ufunc.nout)))
        compares = _OPERATORS.get(ufunc.__name__) in _COMPARISONS
        if compares and (known := _known_comparison(ufunc, inputs)) is not None:
            return known
        texts = [
            one._text if compares and _is_weak_integer(one, dtype) else text_of(one, dtype)
            for one, dtype in zip(inputs, taken, strict=False)
        ]
        if ufunc is np.power and like.dtype.kind == "i":
            _check_exponent(inputs[1])
        return Value(_call_text(ufunc.__name__, texts, like.dtype), like)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        if function is np.clip and len(given) == 3 and not options:
            return np.minimum(np.maximum(given[0], given[1]), given[2])
        if function is np.where and len(given) == 3 and not options:
            condition, yes, no = given
            likes = [one._like if isinstance(one, Value) else one for one in (yes, no)]
            like = np.where(np.ones(1, bool), *likes)
            texts = [text_of(one, like.dtype) for one in (yes, no)]
            return Value(f"({text_of(condition, np.dtype(bool))} ? {texts[0]} : {texts[1]})", like)
        raise TypeError(
            f"penstock.function: numpy.{function.__name__}: it is not known: write it with operators"
        )

    def astype(self, dtype: Any) -> Value:
        """As NumPy's."""
        to = np.dtype(dtype)
        return Value(f"(({c_type(to)}){self._text})", np.asarray(self._like).astype(to))

    def __bool__(self) -> bool:
        raise TypeError("penstock.function: `if`, `and`, `or` see no elements: use numpy.where, & and |")

    def __float__(self) -> float:
        raise TypeError("penstock.function: an element is no Python number: convert it by .astype(dtype)")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"penstock.function: .{name}: an element has none: write it with operators and functions of numpy"
        )

    def __abs__(self) -> Any:
        return _apply(np.abs, self)

    def __pow__(self, other: Any) -> Any:
        floating = type(other) is float and np.asarray(self._like).dtype.kind == "f"
        known = {2: np.square, 0.5: np.sqrt} if floating or type(other) is int else {}
        return _apply(known[other], self) if other in known else _apply(np.power, self, other)


def _operator(ufunc: np.ufunc, reflected: bool = False) -> Callable[..., Any]:
    if reflected:
        return lambda self, other: ufunc(other, self)
    return lambda self, *other: ufunc(self, *other)


def _apply(ufunc: Any, *values: Any) -> Any:
    return ufunc(*values)


_BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "mod": np.remainder,
    "floordiv": np.floor_divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
for _name, _ufunc in _BINARY.items():
    setattr(Value, f"__{_name}__", _operator(_ufunc))
    setattr(Value, f"__r{_name}__", _operator(_ufunc, reflected=True))
Value.__rpow__ = _operator(np.power, reflected=True)  # type: ignore[attr-defined]
_OTHER: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "neg": np.negative,
    "pos": np.positive,
    "invert": np.invert,
}
for _name, _ufunc in _OTHER.items():
    setattr(Value, f"__{_name}__", _operator(_ufunc))


def _weak_type(like: Any) -> Any:
    """As NumPy promotes: Python's numbers take the type of what is beside them."""
    if type(like) in (int, float, complex):
        return type(like)
    return np.asarray(like).dtype


def _known_comparison(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Value | None:
    """Of integers with a number of Python's that their type does not have: the same for all of them."""
    for one, other in (inputs, inputs[::-1]):
        if type(one) is not int or not isinstance(other, Value):
            continue
        dtype = np.asarray(other._like).dtype
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= one <= np.iinfo(dtype).max:
            holds = ufunc(*(0 if each is other else one for each in inputs), dtype=object)
            return Value("true" if holds else "false", np.ones(1, bool))
    return None


def _is_weak_integer(one: Any, dtype: np.dtype[Any]) -> bool:
    """An integer among the arguments, compared with integers: it need not fit their type."""
    return isinstance(one, Value) and one._needs is not None and type(one._like) is int and dtype.kind in "iu"


def _check_exponent(exponent: Any) -> None:
    """Of an integer: what may be negative is refused, as NumPy refuses what is."""
    if not isinstance(exponent, Value) or np.asarray(exponent._like).dtype.kind != "i":
        return
    if exponent._needs is None:
        raise TypeError(
            f"penstock.function: an integer to the power of {np.asarray(exponent._like).dtype}, which may be "
            "negative: convert the exponent by .astype(numpy.uint32), or the integer to floating point"
        )
    exponent._needs.add(np.dtype("uint64"))


def c_type(dtype: np.dtype[Any]) -> str:
    try:
        return C_TYPES[dtype.name]
    except KeyError:
        raise TypeError(
            f"penstock.function: values of type {dtype}: it computes with truth values, integers, float32 "
            "and float64: convert them to one of these"
        ) from None


def text_of(one: Any, dtype: np.dtype[Any]) -> str:
    """Converted to a type."""
    if isinstance(one, Value):
        if one._needs is not None:
            one._needs.add(dtype)
        return one._text if np.asarray(one._like).dtype == dtype else f"(({c_type(dtype)}){one._text})"
    value = np.asarray(one, dtype)
    if value.ndim:
        raise TypeError(
            f"penstock.function: {shown(one)}: give arrays as arguments, and numbers as constants"
        )
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        number = float(value)
        if not np.isfinite(number):
            text = "0.0 / 0.0" if np.isnan(number) else "-1.0 / 0.0" if number < 0 else "1.0 / 0.0"
            return f"(({c_type(dtype)})({text}))"
        return f"(({c_type(dtype)}){number.hex()})"
    suffix = "ull" if dtype.kind == "u" else "ll"
    number = int(value)
    text = f"(-{-(number + 1)}ll - 1)" if number < 0 else f"{number}{suffix}"
    return f"(({c_type(dtype)}){text})"


def _call_text(name: str, texts: list[str], dtype: np.dtype[Any]) -> str:
    to = c_type(dtype)
    if name in ("left_shift", "right_shift"):
        return f"penstock_{name}<{to}>({texts[0]}, {texts[1]})"
    wraps = dtype.kind == "i" and dtype.itemsize >= 4  # as NumPy's, and not undefined
    unsigned = "unsigned int" if dtype.itemsize == 4 else "unsigned long long"
    if wraps and name in ("add", "subtract", "multiply", "square", "negative"):
        both = [f"({unsigned}){text}" for text in texts]
        if name == "negative":
            return f"(({to})(0 - {both[0]}))"
        return f"(({to})({both[0]} {_OPERATORS.get(name, '*')} {both[-1]}))"
    if name in _OPERATORS:
        sign = _OPERATORS[name]
        if sign in _COMPARISONS:
            return f"(penstock_compare({texts[0]}, {texts[1]}, [](auto a, auto b) {{ return a {sign} b; }}))"
        if len(texts) == 2 and dtype.kind != "b" and sign not in ("&&", "||"):
            return f"(({to})({texts[0]} {sign} {texts[1]}))"
        if dtype.kind == "b" and sign in ("+", "*"):  # of truth values, as NumPy has it
            sign = "||" if sign == "+" else "&&"
        return f"({texts[0]} {sign} {texts[1]})"
    if name in _PREFIXES:
        return f"(({to})({_PREFIXES[name]}{texts[0]}))"
    if name == "invert":
        return f"(!{texts[0]})" if dtype.kind == "b" else f"(({to})(~{texts[0]}))"
    if name in ("absolute",):
        if dtype.kind == "f":
            return f"fabs{'f' if dtype.itemsize == 4 else ''}({texts[0]})"
        return (
            texts[0]
            if dtype.kind in "ub"
            else f"(({to})({texts[0]} < 0 ? 0 - (unsigned long long){texts[0]} : {texts[0]}))"
        )
    if name in ("minimum", "maximum") or (name in ("fmin", "fmax") and dtype.kind != "f"):
        sign = "<" if name in ("minimum", "fmin") else ">"
        a, b = texts
        return f"({a} {sign} {b} || {a} != {a} ? {a} : {b})"
    if name == "square":
        return f"(({to})({texts[0]} * {texts[0]}))"
    x = texts[0]
    if name in ("isnan", "isfinite", "isinf"):
        test = {"isnan": "{0} != {0}", "isfinite": "{0} - {0} == 0", "isinf": "{0} == {0} && {0} - {0} != 0"}
        return f"({test[name].format(f'((double){x})')})"
    if name == "signbit":
        return f"(copysign(1.0, (double){x}) < 0)"
    if name in _FACTORS:
        return f"({x} * {text_of(_FACTORS[name], dtype)})"
    if name == "logical_xor":
        return f"(!{x} != !{texts[1]})"
    if name == "sign":
        return f"(({to})({x} != {x} ? {x} : ({x} > 0) - ({x} < 0)))"
    if name == "power" and dtype.kind in "iu":
        return f"penstock_power<{to}>({x}, {texts[1]})"
    if name == "conjugate" or (name in ("floor", "ceil", "trunc", "rint") and dtype.kind in "biu"):
        return x
    if name == "reciprocal" and dtype.kind == "f":
        return f"(({to})1 / {x})"
    if name == "remainder":
        return f"penstock_remainder<{to}>({texts[0]}, {texts[1]})"
    if name == "floor_divide":
        return f"penstock_floor_divide<{to}>({texts[0]}, {texts[1]})"
    if name in _MATH and dtype.kind == "f" and dtype.itemsize >= 4:
        return f"{_C_NAMES.get(name, name)}{'f' if dtype.itemsize == 4 else ''}({', '.join(texts)})"
    raise TypeError(f"penstock.function: numpy.{name} of {dtype}: it is not known: write it with operators")


HELPERS = """
template <class A, class B, class F>
__device__ bool penstock_compare(A a, B b, F const& f) {
  return f(a, b);
}
template <class F>
__device__ bool penstock_compare(long long a, unsigned long long b, F const& f) {
  return a < 0 ? f(-1, 0) : f((unsigned long long)a, b);
}
template <class F>
__device__ bool penstock_compare(unsigned long long a, long long b, F const& f) {
  return b < 0 ? f(0, -1) : f(a, (unsigned long long)b);
}
template <class T>
__device__ T penstock_left_shift(T a, T b) {
  return b < T(0) || (unsigned long long)b >= 8 * sizeof(T) ? T(0) : T((unsigned long long)a << b);
}
template <class T>
__device__ T penstock_right_shift(T a, T b) {
  return b < T(0) || (unsigned long long)b >= 8 * sizeof(T) ? T(a < T(0) ? -1 : 0) : T(a >> b);
}
template <class T>
__device__ T penstock_remainder(T a, T b) {
  if constexpr (T(0.5) != T(0)) {
    const T left = fmod(a, b);
    if (left == 0) return copysign(T(0), b);
    return (left < 0) != (b < 0) ? left + b : left;
  } else {
    if (b == 0) return 0;
    if constexpr (T(-1) < T(0)) {
      if (b == T(-1)) return 0;
      const T left = a % b;
      return left != 0 && (left < 0) != (b < 0) ? left + b : left;
    } else {
      return a % b;
    }
  }
}
template <class T>
__device__ T penstock_power(T base, T exponent) {
  unsigned long long made = 1, factor = base;
  for (unsigned long long left = exponent; left != 0; left >>= 1) {
    if (left & 1) made *= factor;
    factor *= factor;
  }
  return T(made);
}
template <class T>
__device__ T penstock_floor_divide(T a, T b) {
  if constexpr (T(0.5) != T(0)) {
    if (b == 0) return a / b;
    const T left = fmod(a, b);
    T whole = (a - left) / b;
    if (left != 0 && (left < 0) != (b < 0)) whole -= 1;
    if (whole == 0) return copysign(T(0), a / b);
    const T below = floor(whole);
    return whole - below > T(0.5) ? below + 1 : below;
  } else {
    if (b == 0) return 0;
    if constexpr (T(-1) < T(0)) {
      if (b == T(-1)) return T(0 - static_cast<unsigned long long>(a));
      const T whole = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? whole - 1 : whole;
    } else {
      return a / b;
    }
  }
}
"""
