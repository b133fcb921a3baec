"""Bytes that a GPU counts on its link to the host, by NVML."""

from __future__ import annotations

import ctypes

RECEIVED_BYTES = 198  # NVML_FI_DEV_PCIE_COUNT_RX_BYTES
UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT


class CountersMissing(Exception):  # noqa: N818
    """The machine counts no bytes of a link; the text says why."""


class _FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; the value is a union of 8 bytes."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class LinkCounters:
    """What GPU `number` of this process has received over its link since it started."""

    def __init__(self, number: int = 0) -> None:
        """Raises CountersMissing."""
        self.library = _library("libnvidia-ml.so.1")
        self._check("nvmlInit_v2")
        self.device = ctypes.c_void_p()
        self._check("nvmlDeviceGetHandleByPciBusId_v2", _bus_id(number), ctypes.byref(self.device))
        self.begun, self.bits = self._read()

    def received(self) -> int:
        """Bytes since this was made; a counter of 32 bits may have begun again once."""
        return (self._read()[0] - self.begun) % (1 << self.bits)

    def _read(self) -> tuple[int, int]:
        asked = _FieldValue(field=RECEIVED_BYTES)
        self._check("nvmlDeviceGetFieldValues", self.device, 1, ctypes.byref(asked))
        if asked.status != 0:
            raise CountersMissing(f"this GPU does not count bytes of its link (NVML error {asked.status})")
        return asked.value, 32 if asked.type == UNSIGNED_INT else 64

    def _check(self, function: str, *arguments: object) -> None:
        code = getattr(self.library, function)(*arguments)
        if code != 0:
            raise CountersMissing(f"{function} fails with NVML error {code}")


def _library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise CountersMissing(f"{name} is not installed") from None


def _bus_id(number: int) -> bytes:
    """Of a GPU as CUDA numbers them, which differs from NVML's numbers."""
    cuda = _library("libcuda.so.1")
    device, name = ctypes.c_int(), ctypes.create_string_buffer(32)
    code = cuda.cuInit(0)
    code = code or cuda.cuDeviceGet(ctypes.byref(device), number)
    code = code or cuda.cuDeviceGetPCIBusId(name, len(name), device)
    if code != 0:
        raise CountersMissing(f"CUDA error {code}")
    return name.value
