"""`penstock.function`: kernels from Python expressions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import host
from kernels_here import opened

pytestmark = pytest.mark.usefixtures("kernel_cache")


FUNCTIONS: dict[str, Any] = {
    "sum_of_products": lambda x, y: x * y + 1,
    "choice": lambda x, y: np.where(x > y, x, y) * 2.5,  # type: ignore[operator]
    "quotient": lambda x, y: x / y,
    "whole_quotient": lambda x, y: x // y,
    "rest": lambda x, y: x % y,
    "minimum": lambda x, y: np.minimum(x, y) - 3,
    "condition": lambda x, y: (x > 3) & (y < 5),
    "power": lambda x, y: x**2 + (-y),
}


def of_one(name: str) -> Any:
    return lambda x, y: getattr(np, name)(x * 0.3) * y


FUNCTIONS |= {name: of_one(name) for name in ("arcsinh", "arccosh", "arctanh", "conjugate", "signbit")}
FUNCTIONS |= {name: of_one(name) for name in ("deg2rad", "radians", "rad2deg", "degrees")}
FUNCTIONS |= {
    "fmax": lambda x, y: np.fmax(x, y) - np.fmin(x, 3),
    "nextafter": lambda x, y: np.nextafter(x * 0.5, y),
    "ceil": lambda x, y: np.ceil(x > y),
}


PAIRS = [("int32", "int32"), ("float32", "int64"), ("uint8", "float64"), ("int64", "uint8")]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("types", PAIRS)
def test_functions_compute_what_numpy_does(device: str, name: str, types: tuple[str, str]) -> None:
    rng = np.random.default_rng(7)
    x, y = (rng.integers(0 if t.startswith("u") else -9, 9, (50, 20)).astype(t) for t in types)
    arrays = [penstock.from_tensor(one, "host", device=device) for one in (x, y)]
    made = penstock.function(FUNCTIONS[name])
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](x, y)
    found = host(made(*arrays))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_functions_reduce(device: str, tmp_path: Path, placement: str) -> None:
    content = np.random.default_rng(7).standard_normal(100_000)
    array = opened(tmp_path, content, placement, device)
    square = penstock.function(lambda x, scale: x * x * scale)
    wanted = content * content * 3.0
    assert np.isclose(square.sum(array, 3.0), wanted.sum())
    assert np.isclose(square.mean(array, 3.0), wanted.mean())
    assert (square.min(array, 3.0), square.max(array, 3.0)) == (wanted.min(), wanted.max())
    with_nan = penstock.function(lambda x: np.where(x > 0, x, np.nan))
    assert np.isnan(with_nan.max(array))


def test_functions_refuse_what_they_cannot_be(device: str) -> None:
    array = penstock.from_tensor(np.ones(10, np.float32), "host", device=device)
    short = penstock.from_tensor(np.ones(9, np.float32), "host", device=device)
    cases: list[Any] = [
        (lambda x: 1 if x > 0 else 2, (array,), TypeError, "use numpy.where"),
        (lambda x: np.linalg.norm(x), (array,), TypeError, "numpy.norm"),
        (lambda x: np.frexp(x), (array,), (TypeError, ValueError), "numpy.frexp|frexp"),
        (lambda x: 1, (array,), TypeError, "depends on no argument"),
        (lambda x, y: x + y, (array,), TypeError, "1 arguments: it takes x, y"),
        (lambda x, y: x + y, (array, short), ValueError, r"shapes \(10,\) and \(9,\)"),
        (lambda x: x, (3.0,), TypeError, "give a penstock.Array"),
    ]
    for expression, arguments, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            penstock.function(expression)(*arguments)


def test_numbers_of_functions_have_the_types_of_what_is_beside_them(device: str) -> None:
    floats = np.array([-np.inf, -2, -0.0, 1.5, 3], np.float32)
    bytes_ = np.array([0, 1, 2, 200, 255], np.uint8)
    cases: list[Any] = [
        (lambda x, k: x * k, floats, 1.1),
        (lambda x, k: x * k, floats, np.float64(1.1)),
        (lambda x, k: x + k, bytes_, 3),
        (lambda x, k: x + k, bytes_, True),
        (lambda x, k: np.where(x > k, x, k), floats, 1e300),
        (lambda x, k: np.clip(x, -1, k), floats, 2.0),
        (lambda x, k: x**0.5 + np.sign(x) * k, floats, 1),
        (lambda x, k: x**3 + np.isnan(x) * k, bytes_, 1),
    ]
    for expression, content, number in cases:
        array = penstock.from_tensor(content, "host", device=device)
        with np.errstate(all="ignore"):
            wanted = expression(content, number)
        found = host(penstock.function(expression)(array, number))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        penstock.function(lambda x, k: x + k)(penstock.from_tensor(bytes_, "host", device=device), -1)


def test_functions_wrap_and_shift_as_numpy_does(device: str) -> None:
    ints = np.array([-(2**31), -1, 0, 7, 2**31 - 1], np.int32)
    longs, unsigned = np.array([-1, 0, 5], np.int64), np.array([1, 0, 5], np.uint64)
    shifts = np.array([33, 1, 31, 2, 0], np.int32)
    cases: list[Any] = [
        (lambda x: x + 1 > x, ints),
        (lambda x: abs(x) - 1, ints),
        (lambda x: (x * 2) // 2 - x, ints),
        (lambda x, y: x << y, ints, shifts),
        (lambda x, y: x >> y, ints, shifts),
        (lambda x, y: (x < y) | (y == x), longs, unsigned),
        (lambda new, i: new * i, ints, shifts),
    ]
    for expression, *contents in cases:
        arrays = [penstock.from_tensor(one, "host", device=device) for one in contents]
        with np.errstate(all="ignore"):
            wanted = expression(*contents)
        np.testing.assert_array_equal(host(penstock.function(expression)(*arrays)), wanted)
    large = np.full(5, 2**62, np.int64)
    mean = penstock.function(lambda x: x).mean(penstock.from_tensor(large, "host", device=device))
    assert mean == 2.0**62


def test_powers_of_integers_have_no_negative_exponents(device: str) -> None:
    ints, exponents = np.array([-3, 0, 2, 7], np.int64), np.array([3, 0, 62, 1], np.int64)
    x, y = (penstock.from_tensor(one, "host", device=device) for one in (ints, exponents))
    found = penstock.function(lambda x, y: x ** y.astype(np.uint32))(x, y)
    np.testing.assert_array_equal(host(found), ints**exponents)
    np.testing.assert_array_equal(host(penstock.function(lambda x, k: x**k)(x, 3)), ints**3)
    with pytest.raises(TypeError, match="an integer to the power of int64, which may be negative: convert"):
        penstock.function(lambda x, y: x**y)(x, y)
    with pytest.raises(OverflowError, match="-1 out of bounds for uint64"):
        penstock.function(lambda x, k: x**k)(x, -1)
    with pytest.raises(ValueError, match="negative integer powers"):
        penstock.function(lambda x: x**-1)(x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32"])
def test_powers_of_elements_have_numpys_type(device: str, dtype: str) -> None:
    content = np.array([0, 1, 3, 100], dtype)
    array = penstock.from_tensor(content, "host", device=device)
    powers: list[Any] = [lambda x: x**2, lambda x: x**2.0, lambda x: (x * 1.0) ** 0.5, lambda x: x**1.0]
    for power in [*powers, *([lambda x: x**0.5] if dtype in ("int32", "float32") else [])]:
        wanted, found = power(content), host(penstock.function(power)(array))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64", "uint64"])
def test_comparisons_take_numbers_that_elements_cannot_be(device: str, dtype: str) -> None:
    content = np.array([0, 1, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    array = penstock.from_tensor(content, "host", device=device)
    for number in (-1, 300, 2**63 - 1, -(2**63)):
        wanted = (content < number) * 1 + (number < content) * 2 + (content != number) * 4
        constant = penstock.function(lambda x, n=number: (x < n) * 1 + (n < x) * 2 + (x != n) * 4)
        np.testing.assert_array_equal(host(constant(array)), wanted)
        np.testing.assert_array_equal(host(constant(array, number)), wanted)
    beyond = penstock.function(lambda x: (x < 2**64) & (x > -(2**70)))
    assert host(beyond(array)).all()


def test_arguments_of_functions_have_defaults(device: str) -> None:
    array = penstock.from_tensor(np.arange(4.0), "host", device=device)
    scaled = penstock.function(lambda x, factor=3: x * factor)
    assert host(scaled(array)).tolist() == [0, 3, 6, 9]
    assert host(scaled(array, 2)).tolist() == [0, 2, 4, 6]
    assert scaled.sum(array) == 18
    root: Any = np.sqrt
    assert host(penstock.function(root)(array)).tolist() == np.sqrt(np.arange(4.0)).tolist()
    both = penstock.function(lambda *numbers: numbers[0] + numbers[-1])
    assert host(both(array, array, 1)).tolist() == [1, 2, 3, 4]


def test_what_is_no_expression_is_refused() -> None:
    array = penstock.from_tensor(np.zeros(3, np.float32), "host", device="cpu")
    text: Any = "x + 1"
    with pytest.raises(TypeError, match=r"penstock.function: x \+ 1: give a Python function of elements"):
        penstock.function(text)
    with pytest.raises(TypeError, match="it returns list, which depends on no argument: return an"):
        penstock.function(lambda x: [x])(array)
    with pytest.raises(AttributeError, match=r"\.clip: an element has none: write it with"):
        penstock.function(lambda x: x.clip(0, 1))(array)
    with pytest.raises(TypeError, match=r"convert it by \.astype\(dtype\)"):
        penstock.function(lambda x: np.float32(x))(array)
    with pytest.raises(TypeError, match=r"y is array.*: give a penstock.Array or a number"):
        penstock.function(lambda x, y: x + y)(array, np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="values of type float16: it computes with truth values, integers, f"):
        penstock.function(lambda x: x.astype(np.float16))(array)
    unseen: Any = dict
    with pytest.raises(TypeError, match="its arguments cannot be seen: give lambda x"):
        penstock.function(unseen)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_floors_of_quotients_are_numpys(device: str, kind: str) -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 1e30, -1e30, np.inf, -np.inf, np.nan]
    left, right = (one.ravel().astype(kind) for one in np.meshgrid(numbers, numbers))
    arrays = [penstock.from_tensor(one, "host", device=device) for one in (left, right)]
    expressions: list[Any] = [lambda x, y: x // y, lambda x, y: x % y]
    for expression in expressions:
        with np.errstate(all="ignore"):
            wanted = expression(left, right)
        found = host(penstock.function(expression)(*arrays))
        np.testing.assert_array_equal(found, wanted)
        assert np.array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
