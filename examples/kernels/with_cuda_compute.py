"""An array as the input of cuda.compute's algorithms (package cuda-cccl).

python examples/kernels/with_cuda_compute.py FILE.npy       float32, of any size
"""

import struct
import sys

import numpy as np
import penstock
import torch
from cuda.compute import CountingIterator, OpKind, TransformIterator, reduce_into, types
from cuda.compute.op import RawOp
from cuda.core import Device, Program, ProgramOptions

# An element by its number, as float64. The state is the array's address.
SOURCE = """
#include <penstock/kernels/kernel.hpp>
extern "C" __device__ void element(void* state, void* number, void* result) {
  auto const& a = **static_cast<penstock::array<const float> const**>(state);
  *static_cast<double*>(result) = a[*static_cast<unsigned long long*>(number)];
}
"""

device = Device()
device.set_current()
options = ProgramOptions(
    arch=f"sm_{device.arch}",
    std="c++17",
    relocatable_device_code=True,
    link_time_optimization=True,
    device_as_default_execution_space=True,
    include_path=penstock.include_dirs(),
)
element = bytes(Program(SOURCE, "c++", options).compile("ltoir").code)

with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    read = RawOp(
        name="element",
        ltoir=element,
        state=struct.pack("Q", array.device_ptr),
        state_alignment=8,
        extra_ltoirs=[penstock.kernels.lto_ir(device.arch)],
    )
    elements = TransformIterator(CountingIterator(np.uint64(0)), read, types.float64)
    out = torch.zeros(1, dtype=torch.float64, device="cuda")
    reduce_into(d_in=elements, d_out=out, num_items=array.nbytes // 4, op=OpKind.PLUS, h_init=np.zeros(1))
    torch.cuda.synchronize()
    array.check_replays()
    print(float(out))
