"""An array in a kernel that numba-cuda-mlir compiles.

python examples/kernels/with_numba_cuda_mlir.py FILE.npy      float32, of any size
"""

import sys

import numpy as np
import penstock
from numba_cuda_mlir import cuda, types

library = [cuda.Fatbin(code) for _, code in penstock.kernels.device_library()]
load = cuda.declare_device(
    "penstock_load_f32", types.float32(types.uint64, types.uint64), link=library, abi="c"
)


@cuda.jit(lto=True)
def total(array: int, count: int, out: np.ndarray) -> None:
    mine = 0.0
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        mine += load(array, i)
    cuda.atomic.add(out, 0, mine)


with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    out = cuda.to_device(np.zeros(1))
    # An int64 count: of a uint64 this compiler makes a loop whose i has 32 bits.
    total[256, 256](np.uint64(array.device_ptr), array.nbytes // 4, out)
    cuda.synchronize()
    array.check_replays()
    print(float(out.copy_to_host()[0]))
