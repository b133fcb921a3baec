"""`penstock.kernel`: a kernel of the user's own over arrays (docs/tasks/PYTHON_KERNELS.md)."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.arrays.devices import executor_for
from penstock.arrays.libraries import library_for
from penstock.arrays.messages import shown
from penstock.errors import Error
from penstock.kernels.arguments import Packer
from penstock.kernels.call import Call
from penstock.kernels.host_compiler import load_for_host
from penstock.kernels.nvrtc import compile_for_gpu
from penstock.kernels.signature import find_kernel
from penstock.kernels.source import Source
from penstock.sizes import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock import _native
    from penstock.arrays.array import Array
    from penstock.kernels.arguments import Lent
    from penstock.kernels.signature import Signature

_Extent = tuple[int, int, int]

_BLOCK = 256  # threads
_MOST_BLOCK = 1024
_MOST_BLOCK_Z = 64
_MOST_THREADS = 2**40 - 1
_KEPT_SHAPES = 64
_POLL_SECONDS = 0.0002
_GRACE_SECONDS = 2.0


class Launch:
    """A launch under way. What went wrong in it is raised by `wait`, and by the next waiting call of one of
    its arrays (`check_errors`, `flush`, `close`)."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: list[Array],
        calls: list[_native.RowCall],
        end: _native.LaunchEnd | None,
        kept: Any,
    ) -> None:
        self._kernel, self._end = kernel, end
        self._calls = list(zip(arrays, calls, strict=True))
        self._turn = threading.RLock()
        self._waits = self._ended = False
        self._kept = kept  # arguments that the kernel reads until it ends

    @property
    def done(self) -> bool:
        """Whether the kernel has ended."""
        if self._waits:  # for what a thread waits that thread knows
            return self._ended
        return all(call.done for _, call in self._calls) and (self._end is None or self._end.done)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the kernel to end.

        Args:
            timeout: Seconds; None: as long as it takes. At the deadline `penstock::stopped()` becomes true in
                the kernel's threads, which have two seconds to leave. CPU: the kernel is over before this is
                called: give the call a `timeout`.

        Raises:
            TimeoutError: It ran past its deadline, with the kernel's name.
            IndexError: A thread named an element that an array does not have (`check_bounds=True`).
            penstock.Error: What could not be read or written, with file and offset.
        """
        if timeout is not None:
            self._wait_until(time.monotonic() + _seconds(timeout), timeout)
        problem: Exception | None = None
        with self._turn:
            self._waits = True
            calls, self._calls = self._calls, []
            try:
                if self._end is not None:
                    self._end.wait()
                for array, call in calls:
                    try:
                        array._check(self._kernel._what, None, call.wait())
                    except Exception as met:
                        problem = problem or met
            finally:
                self._ended = True
                self._kept = None
        if problem is not None:
            raise problem

    def settle(self, what: str) -> None:
        """Wait for the end, and leave what went wrong to `wait`. penstock.Error: it is past its deadline, and
        runs still."""
        while not self.done:
            if self._kernel._late is self:
                raise Error(
                    f"{what}: the kernel {self._kernel.name} passed its deadline and still runs: let its "
                    "loops ask penstock::stopped(), and start this process anew"
                )
            time.sleep(_POLL_SECONDS)

    def _wait_until(self, deadline: float, timeout: float) -> None:
        while not self.done:
            if time.monotonic() >= deadline:
                self._kernel._stop(self, timeout)
            time.sleep(_POLL_SECONDS)


class Kernel:
    """Made by `penstock.kernel`. On the CPU launches may come from several threads, and take turns; on a GPU
    from one at a time."""

    def __init__(self, source: Source, signature: Signature, device: Any) -> None:
        self._source, self._signature = source, signature
        self.name = signature.name
        self._what = f"kernel {self.name} over"
        self._executor = executor_for(device)
        self._cuda = self._executor.cuda
        self._library = library_for(self._executor)
        self._on_torch = self._library.reuses_in_order
        self._packer = Packer(signature, self._cuda, self._executor.gpu)
        self._process = os.getpid()
        self._late: Launch | None = None  # it has passed its deadline
        self._image: bytes | None = None
        self._native = self._load()
        self._new_arguments = _arguments_class()
        self._shapes: dict[Any, tuple[_Extent, _Extent]] = {}

    def _load(self) -> _native.UserKernel:
        from penstock import _native

        if not self._cuda:
            return load_for_host(
                self._source,
                self._signature,
                lambda library: _native.UserKernel.load_host(self._executor, self.name, library),
            )
        architecture = _native.gpu_architecture(self._executor)
        self._image, mangled = compile_for_gpu(self._source, self._signature, architecture)
        return _native.UserKernel.load_cuda(self._executor, mangled, self._image)

    @property
    def cubin(self) -> bytes | None:
        """The linked image, for other libraries that load kernels; None on the CPU."""
        return self._image

    def __repr__(self) -> str:
        takes = ", ".join(f"{p.text} {p.name}".strip() for p in self._signature.parameters)
        return f"penstock.Kernel({self.name}({takes}), {self._executor.device})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its source: loading compiles it, or takes what is kept."""
        return _again, (self._source, "cuda" if self._cuda else "cpu")

    def __call__(
        self,
        *arguments: Any,
        threads: int | None = None,
        block: int | Sequence[int] | None = None,
        grid: int | Sequence[int] | None = None,
        shared: int = 0,
        stream: Any = None,
        timeout: float | None = None,
    ) -> Launch:
        """Launch the kernel over its arguments.

        Args:
            arguments: One for each parameter: a penstock.Array for a `penstock::array<T>`, a folder of
                `penstock.fs.mount` for a `penstock::files`, a tensor or an array in memory for a pointer,
                numbers for scalars, bytes for structures.
            threads: Of the launch, rounded up to whole blocks. Neither this nor `grid`: as many as run at
                once, for kernels that walk over their items (`penstock::for_each_index`).
            block: Threads of a block; up to three numbers, x first. By default 256, or all of `threads` where
                those are fewer.
            grid: Blocks; likewise.
            shared: Bytes of dynamic shared memory of a block.
            stream: A torch.cuda.Stream or a cudaStream_t; torch's current one by default. Captured into a
                CUDA graph, where the arguments are the same in each replay.
            timeout: CPU: seconds after which `penstock::stopped()` is true and no block begins. On a GPU give
                it to `wait`.

        Returns:
            The launch. CPU: it is over.

        Raises:
            TypeError, ValueError, OverflowError: An argument that the parameter does not take, by position
                and name; a shape that the device does not have.
            TimeoutError: CPU: the kernel ran past its deadline.
            penstock.Error: As Launch.wait, of launches that are over when this returns.
        """
        self._check_usable()
        packed = self._new_arguments()
        lent = self._packer.pack(arguments, packed)
        block_size, grid_size = self._shape(threads, grid, block, shared)
        limit = 0 if timeout is None else int(_seconds(timeout) * 1e9)
        if limit and self._cuda:
            raise ValueError(
                f"kernel {self.name}: timeout: a launch on a GPU returns at once: give it to wait()"
            )
        shape = (grid_size, block_size, shared)
        if not lent.folders:
            return self._launch(arguments, lent, packed, shape, stream, limit)
        call = Call(self.name)
        try:
            for folder in lent.folders:
                folder.lend(call)
            return self._launch(arguments, lent, packed, shape, stream, limit)
        finally:
            call.end()

    def _launch(
        self,
        arguments: tuple[Any, ...],
        lent: Lent,
        packed: _native.KernelArguments,
        shape: tuple[_Extent, _Extent, int],
        stream: Any,
        limit: int,
    ) -> Launch:
        needed = (self._native, *[folder.native for folder in lent.folders])
        if stream is None and self._on_torch:
            calls, end, in_time = self._native.launch(
                packed, *shape, self._library.current_stream(), limit, needed
            )
        else:
            with self._library.on(stream) as handle:
                calls, end, in_time = self._native.launch(packed, *shape, handle, limit, needed)
        launch = Launch(self, lent.arrays, calls, end, arguments)
        if not self._cuda:
            if not in_time:
                raise TimeoutError(f"kernel {self.name}: it ran past its deadline of {limit / 1e9:g} s")
            launch.wait()
            return launch
        for folder in lent.folders:
            folder.lend(launch)
        for array, call in zip(lent.arrays, calls, strict=True):
            array._leave(self._what, None, call, arguments, stream)
        return launch

    def report(self, block: int = _BLOCK, shared: int = 0) -> dict[str, Any]:
        """What the kernel takes: `registers` of a thread, `local_bytes` (stack and spills) of a thread,
        `shared_bytes`, `max_block_threads`, `blocks_per_unit` that fit a multiprocessor, `occupancy`
        (threads of those over the multiprocessor's `unit_threads`), `units` (multiprocessors, or CPU
        threads). Zeros on the CPU for what it does not have."""
        sizes = [whole_number(given) for given in (block, shared)]
        if None in sizes or not 0 < (sizes[0] or 0) <= _MOST_BLOCK or not 0 <= (sizes[1] or 0) < 2**31:
            raise ValueError(f"report: block {shown(block)}, shared {shown(shared)}: give threads and bytes")
        facts = self._native.facts(block, shared)
        threads = facts["unit_threads"]
        facts["occupancy"] = facts["blocks_per_unit"] * block / threads if threads else 0.0
        return facts

    # Inside

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            if self._cuda:
                raise ValueError(
                    f"kernel {self.name}: this process was forked from the one that made it, and CUDA does "
                    "not survive that: start workers with 'spawn'"
                )
            self._executor, self._process = executor_for("cpu"), os.getpid()
            self._native = self._load()
        if self._late is not None:
            if not self._late.done:
                raise Error(
                    f"launch the kernel {self.name}: a launch that passed its deadline still runs: let its "
                    "loops ask penstock::stopped(), and start this process anew"
                )
            self._late = None
            self._native.set_stopped(False)

    def _stop(self, launch: Launch, timeout: float) -> None:
        self._native.set_stopped(True)
        self._late = launch
        until = time.monotonic() + _GRACE_SECONDS
        while not launch.done and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        still = "" if launch.done else ", and still runs: let its loops ask penstock::stopped()"
        raise TimeoutError(f"kernel {self.name}: it ran past its deadline of {timeout:g} s{still}")

    def _shape(self, threads: Any, grid: Any, block: Any, shared: int) -> tuple[_Extent, _Extent]:
        """Of a block, and of the grid."""
        asked = (threads, grid, block, shared)
        try:
            if asked in self._shapes:
                return self._shapes[asked]
        except TypeError:  # a list
            return self._new_shape(threads, grid, block, shared)
        made = self._new_shape(threads, grid, block, shared)
        if len(self._shapes) < _KEPT_SHAPES:
            self._shapes[asked] = made
        return made

    def _new_shape(self, threads: Any, grid: Any, block: Any, shared: int) -> tuple[_Extent, _Extent]:
        size = _extent(_BLOCK if block is None else block, "block")
        if math.prod(size) > _MOST_BLOCK or size[2] > _MOST_BLOCK_Z:
            raise ValueError(
                f"kernel {self.name}: block {shown(block)}: a block has 1 to {_MOST_BLOCK} threads, up to "
                f"{_MOST_BLOCK_Z} of them along z"
            )
        if whole_number(shared) is None or not 0 <= shared < 2**31:
            raise ValueError(f"kernel {self.name}: shared {shown(shared)}: give bytes, as a whole number")
        if threads is not None:
            if grid is not None:
                raise ValueError(f"kernel {self.name}: threads and grid: give one of them")
            wanted = whole_number(threads)
            if wanted is None or not 0 < wanted <= _MOST_THREADS:
                raise ValueError(
                    f"kernel {self.name}: threads {shown(threads)}: give a whole number from 1 to "
                    f"{_MOST_THREADS}"
                )
            if block is None:
                size = (min(wanted, _BLOCK), 1, 1)
            return size, (-(-wanted // math.prod(size)), 1, 1)
        if grid is not None:
            return size, _extent(grid, "grid")
        facts = self._native.facts(math.prod(size), shared)
        per_unit = facts["blocks_per_unit"] if self._cuda else 1
        return size, (max(1, per_unit * facts["units"]), 1, 1)


def _again(source: Source, device: str) -> Kernel:
    return Kernel(source, find_kernel(source.text, source.name, source.names()), device)


def _seconds(timeout: Any) -> float:
    """ValueError for what is no time to wait."""
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 1e-6 <= timeout <= 1e9:
        return float(timeout)
    raise ValueError(f"timeout {shown(timeout)}: give seconds, more than none")


def _arguments_class() -> type[_native.KernelArguments]:
    from penstock import _native

    return _native.KernelArguments


def _extent(given: Any, what: str) -> _Extent:
    numbers = given if isinstance(given, (tuple, list)) else (given,)
    whole = [whole_number(number) for number in numbers]
    if not 1 <= len(whole) <= 3 or any(number is None or not 0 < number < 2**31 for number in whole):
        raise ValueError(f"{what} {shown(given)}: give one to three whole numbers from 1 to 2147483647")
    x, y, z = (*(int(number or 1) for number in whole), 1, 1)[:3]
    return x, y, z


def kernel(
    source: str | Path,
    name: str | None = None,
    *,
    device: Any = "auto",
    check_bounds: bool = False,
    defines: dict[str, object] | None = None,
    include_dirs: Sequence[str | Path] = (),
) -> Kernel:
    """Compile a kernel of the user's own, whose parameters are arrays wherever they lie.

    `penstock::array<const T> a` reads (`a[i]`, `a.warp_read`, `a.prefetch`), `penstock::array<T> a` writes,
    too (`a[i] = v`, `a.fetch_add(i, v)`, `fetch_min`, `compare_exchange`); `penstock::files` takes a mounted
    folder, pointers tensors, scalars numbers. On a GPU NVRTC compiles it and nvJitLink links it with the
    library's hit path; without one the host's C++ compiler does, for the CPU executor. What was compiled is
    kept and loads in milliseconds.

    Args:
        source: CUDA C++, or the path of a file of it, whose `#include` looks beside it.
            `penstock/kernels/kernel.hpp` is included before it.
        name: Of the `__global__` function; may be left out where there is one alone.
        device: Where it runs: auto, cpu, cuda, cuda:1, or a torch.device.
        check_bounds: An index out of range is an IndexError instead of undefined.
        defines: Macros, by name.
        include_dirs: Further folders for #include.

    Returns:
        The kernel, to be called as `k(array, tensor, 3.0)`.

    Raises:
        ValueError: The source does not compile: the compiler's message, in the source's own lines.
        penstock.Error: A compiler, or one of its libraries, is missing: which to install.
    """
    file = f"{name or 'kernel'}.cu"
    beside: tuple[str, ...] = ()
    if isinstance(source, Path):
        file, beside, source = str(source), (str(source.parent),), _read(source)
    if isinstance(source, str) and source.endswith((".cu", ".cuh", ".cpp")) and "\n" not in source:
        raise ValueError(f"penstock.kernel: source {source}: of a file give pathlib.Path({source!r})")
    if not isinstance(source, str):
        raise TypeError(f"penstock.kernel: source {shown(source)}: give text, or a pathlib.Path")
    source = source.removeprefix("\ufeff").replace("\r\n", "\n")  # as editors write files
    if (wrong := re.search(r"[\0\ud800-\udfff]", source)) is not None:
        raise ValueError(
            f"penstock.kernel: the source has {wrong.group()!a} at position {wrong.start()}, which is no "
            "text: leave it out"
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"penstock.kernel: name {shown(name)}: give the name of a kernel")
    if defines is not None and not isinstance(defines, dict):
        raise TypeError(f"penstock.kernel: defines {shown(defines)}: give a dictionary of names and values")
    if isinstance(include_dirs, (str, Path)):
        raise TypeError(f"penstock.kernel: include_dirs {shown(include_dirs)}: give a list of folders")
    for folder in include_dirs:
        if not isinstance(folder, (str, Path)) or not Path(folder).is_dir():
            raise ValueError(f"penstock.kernel: include_dirs {shown(folder)}: there is no such folder")
    if not isinstance(check_bounds, bool):
        raise TypeError(f"penstock.kernel: check_bounds {shown(check_bounds)}: give True or False")
    macros = tuple(_macro(key, value) for key, value in (defines or {}).items())
    folders = (*beside, *(str(folder) for folder in include_dirs))
    made = Source(source, name or "", file, check_bounds, folders, macros)
    signature = find_kernel(source, name, made.names())
    return Kernel(dataclasses.replace(made, name=signature.name), signature, device)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except OSError as problem:
        raise Error(
            f"compile the kernel in {file}: {problem.strerror}: give a file of CUDA C++", problem.errno or 0
        ) from problem
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"compile the kernel in {file}: its byte {problem.start} is no UTF-8: save it as UTF-8"
        ) from None


def _macro(name: object, value: object) -> str:
    """NAME=VALUE, the value as C++ has it."""
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z_]\w*(\([\w, .]*\))?", name) is None:
        raise ValueError(f"penstock.kernel: defines {shown(name)}: give the name of a macro")
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if "\n" in text:
        raise ValueError(f"penstock.kernel: defines {name}: {shown(text)}: give one line")
    return f"{name}={text}"
