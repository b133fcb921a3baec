"""An array in a kernel that CuPy launches.

python examples/kernels/with_cupy.py FILE.npy        float32, of any size
"""

import sys
import tempfile

import cupy
import penstock

SOURCE = """
extern "C" __global__ void total(penstock::array<const float> const* a, double* out) {
  double mine = 0;
  penstock::for_each_index(a->size(), [&](auto i) { mine += (*a)[i]; });
  atomicAdd(out, mine);
}
"""

with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as image:
        image.write(penstock.kernel(SOURCE).cubin)
        image.flush()
        kernel = cupy.RawModule(path=image.name).get_function("total")
    out = cupy.zeros(1, cupy.float64)
    kernel((256,), (256,), (cupy.uint64(array.device_ptr), out))
    cupy.cuda.get_current_stream().synchronize()
    array.check_replays()
    print(float(out[0]))
