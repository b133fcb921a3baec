"""An array in the form of a tensor, for libraries that take nothing else, such as PyTorch Geometric's `Data`.
Loaded where torch is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from penstock.arrays import functions
from penstock.arrays.base import is_array
from penstock.arrays.untraced import when_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.arrays.array import Array

# What a tensor is asked about itself, and answers without its elements.
_ABOUT = {
    *("__get__", "__len__", "dim", "ndimension", "size", "stride", "numel", "nelement", "element_size"),
    *(
        "is_contiguous",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "get_device",
        "is_shared",
        "is_pinned",
    ),
    *("is_same_size", "__hash__", "is_set_to", "is_tensor"),
}
_ITSELF = {"contiguous", "detach", "share_memory_", "pin_memory", "__deepcopy__", "alias"}  # reads share it
_NEW = ("new", "new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "untyped_storage", "type")


class ArrayTensor(torch.Tensor):
    """A tensor without memory of its own: it has an array's shape, dtype and device, and what is taken of it
    by an index is read from there. A function that takes all of it gets `Array.tensor()`, and `numpy()` gives
    `Array.numpy()`, read-only if the array is.

    Errors: ValueError where a function takes all of an array behind a cache.
    """

    array: Array

    @staticmethod
    def __new__(cls: type[ArrayTensor], array: Array) -> ArrayTensor:
        base: Any = torch.Tensor
        kind = getattr(torch, array.dtype.name)
        made: ArrayTensor = base._make_wrapper_subclass(cls, array.shape, dtype=kind, device=array.device)
        made.array = array
        return made

    def __repr__(self, **_: Any) -> str:
        return f"ArrayTensor({self.array!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """By reference, as the array."""
        return ArrayTensor, (self.array,)

    def __array__(self, *how: Any, **more: Any) -> Any:
        return self.array.__array__(*how, **more)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        name = getattr(func, "__name__", str(func))
        mine = args[0] if args and isinstance(args[0], cls) else None
        if mine is not None:
            if name in _ABOUT:
                base: Any = super()
                return base.__torch_function__(func, types, args, keywords)
            if name in _ITSELF or (name in ("to", "cpu") and _stays(mine, name, args[1:], keywords)):
                return mine
            if name == "numpy" and _has_numpy(mine.array):
                return mine.array.numpy()
            if name in _NEW:
                like = torch.empty(0, dtype=mine.dtype, device=mine.device)
                return func(like, *args[1:], **keywords)
            if name in ("__getitem__", "__setitem__"):
                return getattr(mine.array, name)(*args[1:])
        try:
            return functions.call(func, _arrays_of(args), _arrays_of(keywords))
        except (
            TypeError
        ) as problem:  # which torch's operators take for "not implemented", and say nothing more
            raise ValueError(str(problem)) from None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """For calls of torch's operators that bypass its functions."""
        return functions.call(func, _arrays_of(args), _arrays_of(kwargs or {}))


def _arrays_of(given: Any) -> Any:
    if isinstance(given, ArrayTensor):
        return given.array
    if type(given) in (list, tuple):
        return type(given)(_arrays_of(one) for one in given)
    if type(given) is dict:
        return {key: _arrays_of(one) for key, one in given.items()}
    return given


def _stays(mine: ArrayTensor, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether `to` or `cpu` asks for the type and the device that it has."""
    like = torch.empty(0, dtype=mine.dtype, device=mine.device)
    moved = getattr(like, name)(*args, **keywords)
    return moved.dtype == like.dtype and moved.device == like.device


def _has_numpy(array: Array) -> bool:
    """Whether NumPy can have the memory of the array, which it does not store into where the array does not.
    A tensor, torch's way to NumPy, cannot be read-only: it has pages of its own for what is stored into it,
    and the file and the array would not change."""
    return array.placement == "host" and not array.on_gpu and array.dtype.numpy.name == array.dtype.name


def _give_tensors_to_pyg() -> None:
    """Makes tensors of arrays that become attributes of PyG's `Data` and `HeteroData`: its loaders slice
    nothing else, and a batch would have the features of other nodes."""
    from torch_geometric.data.storage import BaseStorage

    stored: Callable[..., None] = BaseStorage.__setitem__

    def store(self: Any, key: str, value: Any) -> None:
        stored(self, key, ArrayTensor(value) if is_array(value) else value)

    BaseStorage.__setitem__ = store


when_loaded("torch_geometric.data.storage", _give_tensors_to_pyg)
