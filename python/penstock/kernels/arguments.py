"""Arguments of a launch as a kernel takes them: checked, and packed."""

from __future__ import annotations

import math
import operator
import struct
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.arguments import is_torch
from penstock.arrays.base import is_array
from penstock.arrays.foreign import dense
from penstock.arrays.memory import takes_stores
from penstock.arrays.messages import shown
from penstock.fs.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock import _native
    from penstock.arrays.array import Array
    from penstock.kernels.signature import Parameter, Signature

    _Adder = Callable[[Any, _native.KernelArguments, "Lent"], None]

_MAX_DIMENSIONS = 6
_CODES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}

_FLOATS = ("<e", "<f", "<d")


@dataclass
class Lent:
    """What a launch has until its kernel ends, in the order of the arguments."""

    arrays: list[Array]
    folders: list[Folder]


class Packer:
    """Packs the arguments of one kernel. `cuda`: kernels run on a GPU, and so must tensors lie there."""

    def __init__(self, signature: Signature, cuda: bool, gpu: int) -> None:
        self._name, self._parameters = signature.name, signature.parameters
        self._cuda, self._gpu = cuda, gpu
        self._adders = [self._adder(parameter) for parameter in signature.parameters]
        self._torch: Any = None  # its module, once a tensor was given
        self._dtypes: dict[Any, str] = {}  # of torch, by their objects

    def pack(self, given: tuple[Any, ...], to: _native.KernelArguments) -> Lent:
        """Fills `to`, and returns the arrays and folders among the arguments.

        Raises:
            TypeError, ValueError, OverflowError: What is wrong with which argument.
        """
        if len(given) != len(self._adders):
            takes = ", ".join(f"{p.text} {p.name}".strip() for p in self._parameters)
            raise TypeError(
                f"kernel {self._name}: {len(given)} arguments: it takes {len(self._parameters)}: ({takes})"
            )
        lent = Lent([], [])
        for add, one in zip(self._adders, given, strict=True):
            add(one, to, lent)
        return lent

    def _adder(self, parameter: Parameter) -> _Adder:
        """What packs the arguments of one parameter."""
        element = parameter.element
        if parameter.kind == "array":
            return self._array_adder(parameter)
        if parameter.kind == "files":
            return lambda one, to, lent: self._add_folder(parameter, one, to, lent)
        if parameter.kind == "pointer":
            return lambda one, to, _: to.add_address(self._address(parameter, one))
        if parameter.kind == "scalar" and element is not None and element.dtype in _CODES:
            return self._scalar_adder(parameter, struct.Struct("<" + _CODES[element.dtype]))
        return lambda one, to, _: to.add_bytes(self._bytes(parameter, one))

    def _at(self, parameter: Parameter) -> str:
        position = self._parameters.index(parameter) + 1
        return f"kernel {self._name}: argument {position} ({parameter.text} {parameter.name})"

    def _add_folder(self, parameter: Parameter, one: Any, to: _native.KernelArguments, lent: Lent) -> None:
        if not isinstance(one, Folder):
            raise TypeError(f"{self._at(parameter)}: {shown(one)}: give a folder of penstock.fs.mount")
        if one.closed:
            raise ValueError(f"{self._at(parameter)}: {one.root}: it is closed: mount it again")
        native = one.native
        if native.cuda != self._cuda or (self._cuda and native.gpu != self._gpu):
            here, wanted = (f"GPU {self._gpu}", "cuda") if self._cuda else ("the CPU", "cpu")
            there = f"GPU {native.gpu}" if native.cuda else "the CPU"
            raise ValueError(
                f"{self._at(parameter)}: {one.root} is mounted for {there}, and the kernel runs on {here}: "
                f"mount it with executor='{wanted}'"
            )
        to.add_address(native.kernel_address)
        lent.folders.append(one)

    def _scalar_adder(self, parameter: Parameter, code: struct.Struct) -> _Adder:
        plain: type = {"<?": bool, **dict.fromkeys(_FLOATS, float)}.get(code.format, int)

        def add(one: Any, to: _native.KernelArguments, _: Lent) -> None:
            if type(one) is plain:
                try:
                    packed = code.pack(one)
                except (struct.error, OverflowError):
                    packed = self._scalar(parameter, one, code)  # says what is wrong
            else:
                packed = self._scalar(parameter, one, code)
            to.add_bytes(packed)

        return add

    def _array_adder(self, parameter: Parameter) -> _Adder:
        """Looks at an array once, as long as the same one is given and what it is stays."""
        last: Any = None
        opened: Any = None
        shape: list[int] = []

        def add(one: Any, to: _native.KernelArguments, lent: Lent) -> None:
            nonlocal last, opened, shape
            known = None if last is None else last()
            if known is None or one is not known or one._opened is not opened:
                shape = self._checked_shape(parameter, one)
                last, opened = weakref.ref(one), one._opened
            native = one._open()
            if parameter.stores and one.before_store is not None:
                one.before_store()
            assert parameter.element is not None
            to.add_array(native, parameter.element.itemsize, parameter.stores, shape)
            lent.arrays.append(one)

        return add

    def _checked_shape(self, parameter: Parameter, one: Any) -> list[int]:
        """Of an array, in elements as the kernel sees them."""
        if not is_array(one):
            raise TypeError(f"{self._at(parameter)}: {shown(one)}: give a penstock.Array")
        one._open()
        element = parameter.element
        if element is None:
            raise TypeError(
                f"{self._at(parameter)}: a kernel's arrays have elements of a plain type, such as float or "
                "float4: name one"
            )
        if one.dtype.name != element.dtype:
            raise TypeError(
                f"{self._at(parameter)}: the array holds {one.dtype}: declare penstock::array<"
                f"{'' if parameter.stores else 'const '}{_type_for(one.dtype.name)}>"
            )
        if one._cuda != self._cuda or (self._cuda and one._executor.gpu != self._gpu):
            here = f"GPU {self._gpu}" if self._cuda else "the CPU"
            raise ValueError(
                f"{self._at(parameter)}: {one!r} is of {one.device_name}, and the kernel runs on {here}: "
                "open it for the same device"
            )
        shape = one.shape
        if element.count > 1:
            if not shape or shape[-1] % element.count:
                raise ValueError(
                    f"{self._at(parameter)}: rows of shape {shape} hold no whole number of {element.name}: "
                    f"declare penstock::array<{_type_for(element.dtype)}>"
                )
            shape = (*shape[:-1], shape[-1] // element.count)
        if len(shape) > _MAX_DIMENSIONS:
            shape = (math.prod(shape),)
        if parameter.stores and not one.writable:
            raise ValueError(
                f"{self._at(parameter)}: {one!r} is read-only: declare penstock::array<const "
                f"{element.name}>, or open it with writable=True"
            )
        return list(shape)

    def _scalar(self, parameter: Parameter, one: Any, code: struct.Struct) -> bytes:
        assert parameter.element is not None
        try:
            number = one.item() if hasattr(one, "item") else one
            if not isinstance(number, (int, float)) or (code.format == "<?" and number not in (0, 1)):
                raise TypeError
            return code.pack(float(number) if code.format in _FLOATS else operator.index(number))  # type: ignore[arg-type]
        except (struct.error, OverflowError):
            raise OverflowError(
                f"{self._at(parameter)}: {shown(one)} is out of the range of {parameter.text}: give a value "
                "that fits, or declare a wider type"
            ) from None
        except (TypeError, ValueError):
            kind = {"<?": "0 or 1", **dict.fromkeys(_FLOATS, "a number")}.get(code.format, "a whole number")
            raise TypeError(f"{self._at(parameter)}: {shown(one)}: give {kind}") from None

    def _bytes(self, parameter: Parameter, one: Any) -> bytes:
        """Of a struct of the user's own, or a vector."""
        if is_array(one):
            raise TypeError(
                f"{self._at(parameter)}: a penstock.Array: declare penstock::array<T>, written out"
            )
        element = parameter.element
        if element is not None:
            try:
                values = np.asarray(one)
            except ValueError:  # of lists of several lengths
                values = np.asarray(None)
            wanted = np.dtype("uint16" if element.dtype == "bfloat16" else element.dtype)
            if (values.shape == (element.count,) and values.dtype.kind in "biuf") or (
                values.dtype == wanted and values.nbytes == element.itemsize
            ):
                with np.errstate(all="ignore"):
                    taken = np.ascontiguousarray(values, wanted)
                lost = wanted.kind == "f" and not np.array_equal(np.isfinite(taken), np.isfinite(values))
                if lost or (wanted.kind in "iu" and not np.array_equal(taken, values)):
                    raise OverflowError(
                        f"{self._at(parameter)}: {shown(one)} is out of the range of {element.name}: give "
                        "numbers that fit"
                    )
                return taken.tobytes()
            if element.count > 1 and values.dtype.kind not in "VS" and values.dtype != np.uint8:  # its bytes
                raise TypeError(f"{self._at(parameter)}: {shown(one)}: give {element.count} numbers")
        try:
            return bytes(memoryview(one).cast("B"))
        except (TypeError, ValueError):
            raise TypeError(
                f"{self._at(parameter)}: {shown(one)}: give its bytes, as of a NumPy or ctypes structure"
            ) from None

    def _address(self, parameter: Parameter, one: Any) -> int:
        if one is None:
            return 0
        if self._cuda and self._torch is not None and type(one) is self._torch.Tensor:
            element, known = parameter.element, self._dtypes.get(one.dtype)
            fits = element is None or known == element.dtype
            here = one.is_cuda and one.get_device() == self._gpu and one.layout is self._torch.strided
            if fits and here and one.is_contiguous() and not (parameter.stores and one.requires_grad):
                address = int(one.data_ptr())
                if address != 0 and (element is None or address % element.alignment == 0):
                    return address
        if is_array(one):
            raise TypeError(
                f"{self._at(parameter)}: a penstock.Array: declare penstock::array<const T> to read it"
            )
        if isinstance(one, Folder):
            raise TypeError(f"{self._at(parameter)}: a mounted folder: declare penstock::files")
        address, dtype, gpu, writable = self._memory(parameter, one)
        element = parameter.element
        if element is not None and dtype is not None and dtype != element.dtype:
            raise TypeError(f"{self._at(parameter)}: its elements are {dtype}: give {element.dtype}")
        if (gpu is not None) != self._cuda or (self._cuda and gpu != self._gpu):
            here = f"GPU {self._gpu}" if self._cuda else "the CPU"
            raise ValueError(
                f"{self._at(parameter)}: it is not on {here}, where the kernel runs: move it there"
            )
        if element is not None and address % element.alignment != 0:
            raise ValueError(
                f"{self._at(parameter)}: it begins at no multiple of {element.alignment} bytes: give a copy, "
                f"or declare {_type_for(element.dtype)}*"
            )
        if parameter.stores and not writable:
            raise ValueError(
                f"{self._at(parameter)}: it is read-only: declare const {parameter.text}, or give a copy"
            )
        return address

    def _know(self, tensor: Any) -> None:
        """So that the next tensor like it needs no words."""
        import torch

        self._torch = torch
        self._dtypes[tensor.dtype] = str(tensor.dtype).removeprefix("torch.")

    def _memory(self, parameter: Parameter, one: Any) -> tuple[int, str | None, int | None, bool]:
        """Address, dtype, GPU (None: host memory), and whether it may be written to."""
        contiguous = f"{self._at(parameter)}: it is not contiguous: give a contiguous one"
        if is_torch(one):
            dense(one, self._at(parameter))
            self._know(one)
            if not one.is_contiguous():
                raise ValueError(contiguous)
            gpu = one.device.index if one.device.type == "cuda" else None
            if parameter.stores and one.requires_grad and one.is_leaf:
                raise ValueError(f"{self._at(parameter)}: it requires gradients: give its .detach()")
            writable = gpu is not None or not parameter.stores or takes_stores(one)
            return int(one.data_ptr()), str(one.dtype).removeprefix("torch."), gpu, writable
        if isinstance(one, np.ma.MaskedArray):
            raise TypeError(f"{self._at(parameter)}: it is masked, and memory has no mask: give .filled(...)")
        if isinstance(one, np.ndarray):
            if not one.flags.c_contiguous:
                raise ValueError(contiguous)
            if not one.dtype.isnative:
                raise ValueError(f"{self._at(parameter)}: it is of the other byte order: convert it first")
            writable = not parameter.stores or takes_stores(one)
            return int(one.ctypes.data), str(one.dtype.name), None, writable
        interface = getattr(one, "__cuda_array_interface__", None)
        if interface is None:
            raise TypeError(f"{self._at(parameter)}: {shown(one)}: give a tensor or an array in memory")
        typestr, strides = str(interface["typestr"]), interface.get("strides")
        dtype = np.dtype(typestr)
        packed = tuple(np.empty((0, *interface["shape"][1:]), dtype).strides) if interface["shape"] else ()
        if strides is not None and tuple(strides)[1:] != packed[1:]:
            raise ValueError(contiguous)
        address, read_only = interface["data"]
        return int(address or 0), str(dtype.name), self._gpu, not read_only


def _type_for(dtype: str) -> str:
    names = {"float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16"}
    return names.get(dtype, dtype if dtype == "bool" else f"{dtype}_t")
