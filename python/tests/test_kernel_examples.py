"""Arrays in kernels of other libraries: the examples, run as they stand."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import penstock
import pytest
from places import DEVICES

EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"
NEEDS = {
    "with_cuda_compute.py": ("cuda.compute", "cuda.core", "torch"),
    "with_cuda_core.py": ("cuda.core", "torch"),
    "with_cupy.py": ("cupy",),
    "with_numba.py": ("numba.cuda",),
    "with_numba_cuda_mlir.py": ("numba_cuda_mlir",),
    "with_torch.py": ("torch",),
    "with_triton.py": ("triton", "torch"),
    "with_warp.py": ("warp",),
}
ON_CPU = {"with_warp.py"}


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_adds_up_a_file(name: str, tmp_path: Path) -> None:
    if "cuda" not in DEVICES and name not in ON_CPU:
        pytest.skip("there is no GPU here")
    for module in NEEDS[name]:
        if not is_there(module):
            pytest.skip(f"{module} is not installed")
    if name == "with_numba.py" and not hasattr(np, "row_stack"):
        pytest.skip("numba does not import beside this NumPy, which has no row_stack")
    content = np.random.default_rng(1).random(20_000_000, dtype=np.float32)  # five times the cache
    np.save(tmp_path / "content.npy", content)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(EXAMPLES / name), str(tmp_path / "content.npy")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    total = content.astype(np.float64).sum()
    said = [line.split() for line in done.stdout.splitlines()]
    assert np.isclose(float(said[-1][-1]), total)
    if name == "with_cuda_compute.py":
        running, ends = said[-3], said[-2]
        assert np.isclose(float(running[-1]), total)
        assert [float(end) for end in ends[-2:]] == [content.min(), content.max()]


def test_a_pointer_is_of_an_open_array(tmp_path: Path, device: str, placement: str) -> None:
    np.save(tmp_path / "content.npy", np.zeros(1000, np.float32))
    array = penstock.open(tmp_path / "content.npy", placement=placement, device=device)
    assert array.device_ptr == array.device_ptr != 0
    array.close()
    with pytest.raises(ValueError, match="it is closed"):
        array.device_ptr  # noqa: B018
