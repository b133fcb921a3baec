"""An array in a kernel of Triton's, which links LLVM IR.

python examples/kernels/with_triton.py FILE.npy     float32, of any size
"""

import sys
from typing import Any

import penstock
import torch
import triton
import triton.language as tl
from triton.language import core


@core.extern
def load(array: Any, index: Any, _semantic: Any = None) -> Any:
    """Elements by their numbers, which are all in the array."""
    symbols = {(core.int64, core.int64): ("penstock_load_f32", core.float32)}
    return core.extern_elementwise(
        "penstock", "", [array, index], symbols, is_pure=False, _semantic=_semantic
    )


@triton.jit
def total(array, count, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, N803
    mine = tl.zeros((BLOCK,), tl.float64)
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        index = start.to(tl.int64) + tl.arange(0, BLOCK)
        mine += tl.where(index < count, load(array, tl.minimum(index, count - 1)), 0.0)
    tl.atomic_add(out, tl.sum(mine))


major, minor = torch.cuda.get_device_capability()
library = penstock.kernels.triton_library(10 * major + minor)

with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    out = torch.zeros(1, dtype=torch.float64, device="cuda")
    count = array.nbytes // 4
    total[(512,)](array.device_ptr, count, out, BLOCK=256, maxnreg=64, extern_libs={"penstock": library})
    torch.cuda.synchronize()
    array.check_replays()
    print(float(out))
