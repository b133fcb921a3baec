"""What `array[key]` takes, by NumPy's rules: pieces of equal length, at regular distances or by numbers."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.foreign import checked_numbers, shown_number
from penstock.arrays.libraries import DeviceArray

if TYPE_CHECKING:
    from penstock.arrays.state import ArrayState

_MAX_LOOPS = 4  # of a native grid


class Selection(NamedTuple):
    """`piece` bytes each from byte `n * pitch + offset` of the array on, in the order of the result.

    The numbers n are those of nested loops, `first` + the sum of index * step, or a list. Those of a list
    count from the end where they are negative, and are not checked yet.
    """

    shape: tuple[int, ...]  # of the result
    pitch: int
    piece: int
    offset: int = 0
    first: int = 0
    loops: tuple[tuple[int, int], ...] = ()  # step and count, the outermost first
    numbers: Any = None


@dataclass
class _Walk:
    """A key, item by item."""

    array: ArrayState
    what: str  # is done
    first: int = 0  # element
    axes: list[tuple[int, int]] = field(
        default_factory=list
    )  # of the result: distance in elements, and count
    lead: int = 0  # axes before those of arrays
    arrays: list[tuple[int, Any]] = field(default_factory=list)  # by dimension
    places: list[int] = field(
        default_factory=list
    )  # in the key, of arrays and of integers, which go with them
    dimension: int = 0

    def step(self, place: int, item: Any) -> None:
        if item is Ellipsis:  # of no dimension: it parts arrays all the same
            return
        if item is None:
            self.axes.append((0, 1))
        elif isinstance(item, slice):
            there = _within(item, self.array.shape[self.dimension], self.array)
            self.first += there.start * self._stride() if there else 0
            step = there.step * self._stride() if len(there) > 1 else 0
            self.axes.append((step, len(there)))
            self.dimension += 1
        else:
            if not self.arrays:
                self.lead = len(self.axes)
            self.places.append(place)
            self._index(item)

    def _index(self, item: Any) -> None:
        if isinstance(item, int):
            size = self.array.shape[self.dimension]
            if not -size <= item < size:
                raise _out_of_range(self, item, self.dimension)
            self.first += item % size * self._stride()
            self.dimension += 1
            return
        for one in _places_in_mask(item, self.dimension, self.array) if _is_mask(item) else [item]:
            self.arrays.append((self.dimension, _integers(one, self.array)))
            self.dimension += 1

    def _stride(self) -> int:
        return math.prod(self.array.shape[self.dimension + 1 :])


def select(key: Any, array: ArrayState, what: str = "gather from") -> Selection:
    """What `array[key]` takes. what: is done with it, for errors.

    Errors: IndexError for what is no index, one out of range, too many of them, or arrays that do not go
    together; ValueError for a slice whose step is zero. Rows by one array are checked when they are read.
    """
    if type(key) is slice:
        return _rows(_within(key, len(array), array), array)
    walk = _Walk(array, what)
    for place, item in enumerate(_expanded(key, array)):
        walk.step(place, item)
    if not walk.arrays:
        return _regular(walk)
    places = walk.places
    if places != list(range(places[0], places[-1] + 1)):
        walk.lead = 0
    return _by_numbers(walk)


# What a key consists of


def _expanded(key: Any, array: ArrayState) -> list[Any]:
    """Integers, slices and arrays for all dimensions, None for new ones; an Ellipsis left stands for none."""
    items = [_classified(item, array) for item in (key if isinstance(key, tuple) else (key,))]
    used = sum(
        len(item.shape) if _is_mask(item) else 1
        for item in items
        if item is not None and item is not Ellipsis
    )
    if used > array.ndim:
        raise IndexError(
            f"{array!r}: too many indices: it has {array.ndim} dimensions, and {used} are indexed"
        )
    missing: list[Any] = [slice(None)] * (array.ndim - used)
    ellipses = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"{array!r}: an index with more than one ellipsis (...): give one")
    if not ellipses:
        return items + missing
    return items[: ellipses[0]] + (missing or [Ellipsis]) + items[ellipses[0] + 1 :]


def _classified(item: Any, array: ArrayState) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if not isinstance(item, (bool, np.bool_)):
        number = _whole_number(item)
        if number is not None:
            return number
    given: Any = item if is_torch(item) or isinstance(item, DeviceArray) else _host_array(item, array)
    if is_torch(given) and (given.is_nested or "sparse" in str(given.layout)):
        kind = "nested" if given.is_nested else "sparse"
        raise IndexError(f"{array!r}: an index that is a {kind} tensor: give a dense one")
    if len(given.shape) == 0 and _is_boolean(given):
        raise IndexError(f"{array!r}: one boolean selects no rows: give a mask of len(array) of them")
    return given if _is_mask(given) else _integers(given, array)


def _within(key: slice, size: int, array: ArrayState) -> range:
    try:
        return range(size)[key]
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"{array!r}: {problem}: give integers, and a step that is not zero") from None


def _is_boolean(given: Any) -> bool:
    return str(given.dtype).removeprefix("torch.") == "bool"


def _is_mask(item: Any) -> bool:
    return hasattr(item, "dtype") and _is_boolean(item)


def _whole_number(item: Any) -> int | None:
    """None for what is none, and for an array of one dimension or more."""
    if getattr(item, "ndim", 0) or (hasattr(item, "dtype") and _is_boolean(item)):
        return None
    try:
        return operator.index(item)
    except (TypeError, RuntimeError):
        return None


def _host_array(item: Any, array: ArrayState) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(item)
    except ValueError:
        raise IndexError(f"{array!r}: an index of lists of several lengths: give integers") from None


def _integers(given: Any, array: ArrayState) -> Any:
    """Of 4 or 8 bytes: a tensor where results are tensors, else a NumPy array."""
    try:
        if is_torch(array._kind):
            return array._library.rows(given)
        return checked_numbers(given.numpy() if isinstance(given, DeviceArray) else np.asarray(given))
    except IndexError as problem:
        raise IndexError(f"{array!r}: {problem}") from None


def _places_in_mask(mask: Any, first: int, array: ArrayState) -> list[Any]:
    """For each of its dimensions, which begin with dimension `first`, an array of integers."""
    there = array.shape[first : first + len(mask.shape)]
    if tuple(mask.shape) != there:
        rows = f"the array has {len(array)} rows" if first == 0 else f"dimension {first} on it has {there}"
        raise IndexError(f"{array!r}: a mask of shape {tuple(mask.shape)}: {rows}")
    if is_torch(mask):
        return list(mask.nonzero(as_tuple=True))
    return list(np.nonzero(mask.numpy() if isinstance(mask, DeviceArray) else mask))


# Where it lies


def _rows(rows: range, array: ArrayState) -> Selection:
    row_bytes = math.prod(array.row_shape) * array.dtype.itemsize
    loops = ((rows.step if len(rows) > 1 else 1, len(rows)),)
    return Selection((len(rows), *array.row_shape), row_bytes, row_bytes, first=rows.start, loops=loops)


def _regular(walk: _Walk) -> Selection:
    """Of slices and integers: loops, of which the innermost are one piece where they leave nothing out."""
    shape = tuple(count for _, count in walk.axes)
    if 0 in shape:
        return Selection(shape, 0, 0)
    piece, axes = _tail(walk.axes)
    loops: list[tuple[int, int]] = []
    for step, count in reversed([axis for axis in axes if axis[1] != 1]):
        if loops and step == loops[0][0] * loops[0][1]:
            loops[0] = (loops[0][0], loops[0][1] * count)
        else:
            loops.insert(0, (step, count))
    if len(loops) > _MAX_LOOPS:
        return _of_elements(walk, shape, _sums(walk, axes, len(axes)), axes, piece)
    unit, size = _unit(walk.first, loops, piece), walk.array.dtype.itemsize
    scaled = tuple((step // unit, count) for step, count in loops) or ((1, 1),)
    return Selection(shape, unit * size, piece * size, first=walk.first // unit, loops=scaled)


def _tail(axes: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """Elements that lie side by side, as the last axes have them, and the other axes."""
    piece, left = 1, list(axes)
    while left and (left[-1][1] == 1 or left[-1][0] == piece):
        piece *= left.pop()[1]
    return piece, left


def _unit(first: int, axes: list[tuple[int, int]], piece: int) -> int:
    """The most elements that everything is a multiple of: long ones are copied in wide loads."""
    return math.gcd(first, piece, *(abs(step) for step, _ in axes))


def _by_numbers(walk: _Walk) -> Selection:
    """With arrays among the indices."""
    array, lead = walk.array, walk.lead
    spread = _spread(walk)
    inner, outer = walk.axes[lead:], walk.axes[:lead]
    shape = (*(c for _, c in outer), *spread, *(c for _, c in inner))
    piece, inner = _tail(inner)
    dimension, numbers = walk.arrays[0]
    if len(walk.arrays) == 1 and dimension == 0 and not inner and all(c == 1 for _, c in outer) and piece:
        # Rows, or a part of each.
        size = array.dtype.itemsize
        pitch = math.prod(array.row_shape) * size
        return Selection(shape, pitch, piece * size, offset=walk.first * size, numbers=numbers)
    sums = _checked(numbers, dimension, walk)
    for dimension, numbers in walk.arrays[1:]:
        sums = sums + _checked(numbers, dimension, walk)
    axes = outer + inner
    if 0 in shape:
        return Selection(shape, 0, 0)
    sums = sums.reshape((1,) * len(outer) + tuple(sums.shape) + (1,) * len(inner))
    return _of_elements(walk, shape, sums + _sums(walk, axes, lead, len(spread)), axes, piece)


def _spread(walk: _Walk) -> tuple[int, ...]:
    shapes = [tuple(numbers.shape) for _, numbers in walk.arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(map(str, shapes))
        raise IndexError(
            f"{walk.array!r}: indices of shapes {listed} do not go together: give equal ones"
        ) from None


def _checked(numbers: Any, dimension: int, walk: _Walk) -> Any:
    """Elements from the beginning of the array on. IndexError for the first that is out of range."""
    size = walk.array.shape[dimension]
    bad = (numbers < -size) | (numbers >= size)
    if bool(bad.any()):
        place = int(bad.reshape(-1).nonzero()[0] if is_torch(bad) else np.flatnonzero(bad)[0])
        position = tuple(int(k) for k in np.unravel_index(place, tuple(numbers.shape)))
        index = shown_number(int(numbers.reshape(-1)[place]))
        raise _out_of_range(walk, index, dimension, position)
    stride = math.prod(walk.array.shape[dimension + 1 :])
    wide = numbers.long() if is_torch(numbers) else numbers.astype(np.int64)
    return (wide + (wide < 0) * size) * stride


def _out_of_range(
    walk: _Walk, index: int | str, dimension: int, position: tuple[int, ...] = ()
) -> IndexError:
    array = walk.array
    where = f" at position {position[0] if len(position) == 1 else position}" if position else ""
    has = f"it has {len(array)} rows"
    if dimension != 0:
        has = f"dimension {dimension} has {array.shape[dimension]}"
    return IndexError(f"{walk.what} {array!r}: index {index}{where} is out of range: {has}")


def _sums(walk: _Walk, axes: list[tuple[int, int]], lead: int, between: int = 0) -> Any:
    """Of the axes, each along its own; after `lead` of them `between` new ones of length 1."""
    total: Any = np.zeros((1,) * (len(axes) + between), np.int64)
    for k, (step, count) in enumerate(axes):
        along = [1] * (len(axes) + between)
        along[k if k < lead else k + between] = count
        total = total + (np.arange(count, dtype=np.int64) * step).reshape(along)
    if not is_torch(walk.array._kind):
        return total
    return walk.array._library.rows(total)


def _of_elements(
    walk: _Walk, shape: tuple[int, ...], sums: Any, axes: list[tuple[int, int]], piece: int
) -> Selection:
    strides = [(math.prod(walk.array.shape[dimension + 1 :]), 1) for dimension, _ in walk.arrays]
    unit, size = _unit(walk.first, axes + strides, piece), walk.array.dtype.itemsize
    numbers = sums + walk.first
    return Selection(shape, unit * size, piece * size, numbers=numbers // unit if unit != 1 else numbers)
