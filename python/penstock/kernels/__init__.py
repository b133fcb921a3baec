"""Kernels of the user's own over arrays wherever they lie: `penstock.kernel`."""

from penstock.kernels.functions import Function, function
from penstock.kernels.launching import Kernel, Launch, kernel
from penstock.kernels.locations import device_library, host_calls, include_dirs, lto_ir, triton_library

__all__ = [
    "Function",
    "Kernel",
    "Launch",
    "device_library",
    "function",
    "host_calls",
    "include_dirs",
    "kernel",
    "lto_ir",
    "triton_library",
]
