"""An array and tensors in a kernel, on torch's current stream and inside a CUDA graph.

python examples/kernels/with_torch.py FILE.npy   float32, of any size
"""

import sys

import penstock
import torch

kernel = penstock.kernel("""
extern "C" __global__ void total(penstock::array<const float> a, double* out) {
  double mine = 0;
  penstock::for_each_index(a.size(), [&](auto i) { mine += a[i]; });
  atomicAdd(out, mine);
}
""")

with penstock.open(sys.argv[1], placement="storage", cache="16MiB") as array:
    out = torch.zeros(1, dtype=torch.float64, device="cuda")
    kernel(array, out).wait()  # before it is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out.zero_()
        kernel(array, out)
    graph.replay()
    graph.replay()
    array.check_replays()
    print(float(out))
