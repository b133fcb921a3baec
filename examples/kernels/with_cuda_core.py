"""An array in a kernel that cuda.core compiles and launches.

python examples/kernels/with_cuda_core.py FILE.npy       float32, of any size
"""

import sys

import penstock
import torch
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch

SOURCE = """
#include <penstock/kernels/kernel.hpp>
extern "C" __global__ void total(penstock::array<const float> const* a, double* out) {
  double mine = 0;
  penstock::for_each_index(a->size(), [&](auto i) { mine += (*a)[i]; });
  atomicAdd(out, mine);
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
parts = [ObjectCode.from_fatbin(code) for _, code in penstock.kernels.device_library()]
program = Program(SOURCE, "c++", options).compile("ltoir")
linked = Linker(
    program, *parts, options=LinkerOptions(arch=f"sm_{device.arch}", link_time_optimization=True)
).link("cubin")
kernel = linked.get_kernel("total")

with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    out = torch.zeros(1, dtype=torch.float64, device="cuda")
    stream = device.create_stream()
    torch.cuda.synchronize()
    launch(stream, LaunchConfig(grid=256, block=256), kernel, array.device_ptr, out.data_ptr())
    stream.sync()
    array.check_replays()
    print(float(out))
