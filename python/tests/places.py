"""Where the kernels of a test run: on the GPU too, where there is one."""

from __future__ import annotations

from penstock import _native

DEVICES = ["cpu", "cuda"] if _native.cuda_usable()[0] else ["cpu"]
