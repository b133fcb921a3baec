"""An array that has an address, in GPU memory or the host's, as one of Warp's.

Warp links no library: of a file behind a cache it takes rows that `array.gather` has copied.

python examples/kernels/with_warp.py FILE.npy       float32
"""

import sys

import penstock
import warp as wp


@wp.kernel
def total(elements: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float64)):  # type: ignore[no-untyped-def, valid-type]  # noqa: ANN201
    mine = wp.float64(0.0)
    for i in range(wp.tid(), elements.shape[0], 1024):
        mine += wp.float64(elements[i])
    wp.atomic_add(out, 0, mine)


wp.init()
with penstock.open(sys.argv[1], placement="host") as array:
    elements = wp.from_dlpack(array)
    out = wp.zeros(1, dtype=wp.float64, device=elements.device)
    wp.launch(total, dim=1024, inputs=[elements], outputs=[out], device=elements.device)
    print(float(out.numpy()[0]))
