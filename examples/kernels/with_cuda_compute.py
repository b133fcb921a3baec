"""An array as the input of cuda.compute's algorithms (package cuda-cccl).

python examples/kernels/with_cuda_compute.py FILE.npy       float32, of any size
"""

import struct
import sys
from typing import Any

import numpy as np
import penstock
import torch
from cuda.compute import (
    CountingIterator,
    OpKind,
    TransformIterator,
    inclusive_scan,
    merge_sort,
    reduce_into,
    types,
)
from cuda.compute.op import RawOp
from cuda.core import Device, Program, ProgramOptions

# An element by its number. The state is the array's address.
SOURCE = """
#include <penstock/kernels/kernel.hpp>
extern "C" __device__ void element(void* state, void* number, void* result) {
  auto const& a = **static_cast<penstock::array<const TYPE> const**>(state);
  *static_cast<TYPE*>(result) = a[*static_cast<unsigned long long*>(number)];
}
"""


def elements_of(array: penstock.Array, name: str, value_type: Any) -> TransformIterator:
    """An iterator over them. `name`: of their type in C++, `value_type`: the same of cuda.compute's types."""
    device = Device()
    device.set_current()
    options = ProgramOptions(
        arch=f"sm_{device.arch}",
        std="c++17",
        define_macro=("TYPE", name),
        relocatable_device_code=True,
        link_time_optimization=True,
        device_as_default_execution_space=True,
        include_path=penstock.include_dirs(),
    )
    read = RawOp(
        name="element",
        ltoir=bytes(Program(SOURCE, "c++", options).compile("ltoir").code),
        state=struct.pack("Q", array.device_ptr),
        state_alignment=8,
        extra_ltoirs=[penstock.kernels.lto_ir(device.arch)],
    )
    return TransformIterator(CountingIterator(np.uint64(0)), read, value_type)


def main(path: str) -> None:
    with penstock.open(path, placement="storage", cache="16MiB") as array:
        elements = elements_of(array, "float", types.float32)
        count, none = array.nbytes // 4, np.zeros(1)
        running = torch.empty(count, dtype=torch.float64, device="cuda")
        ordered = torch.empty(count, dtype=torch.float32, device="cuda")
        total = torch.zeros(1, dtype=torch.float64, device="cuda")
        inclusive_scan(d_in=elements, d_out=running, op=OpKind.PLUS, init_value=none, num_items=count)
        merge_sort(d_in_keys=elements, d_out_keys=ordered, op=OpKind.LESS, num_items=count)
        reduce_into(d_in=elements, d_out=total, op=OpKind.PLUS, h_init=none, num_items=count)
        torch.cuda.synchronize()
        array.check_replays()
        print("running sums end with", float(running[-1]))
        print("smallest and largest", float(ordered[0]), float(ordered[-1]))
        print("sum", float(total))


if __name__ == "__main__":
    main(sys.argv[1])
