"""A machine for the doctor: what is not given is missing, and nothing of the real one is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock import doctor
from penstock.machine import Driver, DriverMissing, Gpu, Machine

H200 = Gpu("NVIDIA H200", (9, 0), 139 << 30, 132)


def no_driver() -> Driver:
    raise DriverMissing("libcuda.so.1 is not installed")


def make_machine(root: Path, files: dict[str, str] | None = None, **changes: Any) -> Machine:
    for name, text in (files or {}).items():
        path = root / name.lstrip("/")
        if text == "/":
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    defaults: dict[str, Any] = {
        "root": root,
        "driver": no_driver,
        "built_cuda": lambda: None,
        "io_uring": lambda: (True, ""),
        "free": lambda folder: 100 << 30,
        "page_bytes": 4096,
        "architecture": "x86_64",
        "cache_dir": root / "cache",
    }
    return Machine(**{**defaults, **changes})


def row(machine: Machine, what: str) -> doctor.Row:
    return next(r for r in doctor.examine(machine) if r.what == what)
