"""Arrays in C++ that torch compiles: torch.utils.cpp_extension.load_inline, on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import penstock
import pytest
from places import small_cache

if TYPE_CHECKING:
    from pathlib import Path

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
cpp_extension: Any = pytest.importorskip("torch.utils.cpp_extension", reason="torch is not installed")

SOURCE = """
#include <penstock/kernels/kernel.hpp>

void use_calls(int64_t address) { penstock::kernels::use_calls(address); }

at::Tensor gather(int64_t array, at::Tensor rows) {
  auto const& a = *reinterpret_cast<penstock::array<const float> const*>(array);
  const auto width = static_cast<int64_t>(a.shape(1));
  auto out = at::empty({rows.size(0), width});
  auto const* const from = rows.data_ptr<int64_t>();
  auto* const to = out.data_ptr<float>();
  at::parallel_for(0, rows.size(0), 16, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      for (int64_t c = 0; c < width; ++c) to[k * width + c] = a(from[k], c);
    }
  });
  return out;
}

void add(int64_t array, at::Tensor rows, double value) {
  auto const& a = *reinterpret_cast<penstock::array<float> const*>(array);
  auto const* const to = rows.data_ptr<int64_t>();
  for (int64_t k = 0; k < rows.size(0); ++k) a.fetch_add(to[k] * a.shape(1), float(value));
}
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not cpp_extension.is_ninja_available():
        pytest.skip("torch compiles extensions with ninja, which is not installed")
    made = cpp_extension.load_inline(
        "penstock_rows",
        SOURCE,
        functions=["use_calls", "gather", "add"],
        extra_cflags=["-std=c++20", "-O1"],
        extra_include_paths=penstock.include_dirs(),
        build_directory=str(tmp_path_factory.mktemp("extension")),
    )
    made.use_calls(penstock.kernels.host_calls())
    return made


@pytest.mark.parametrize("placement", ["host", "storage"])
def test_an_extension_reads_an_array_wherever_it_lies(extension: Any, tmp_path: Path, placement: str) -> None:
    content = np.random.default_rng(1).random((20_000, 50), dtype=np.float32)
    np.save(tmp_path / "rows.npy", content)
    rows = torch.randint(0, len(content), (3000,))
    with penstock.open(
        tmp_path / "rows.npy", placement=placement, device="cpu", **small_cache(placement)
    ) as array:
        found = extension.gather(array.device_ptr, rows)
        array.check_replays()
    assert np.array_equal(found.numpy(), content[rows.numpy()])


def test_what_an_extension_adds_is_in_the_file(extension: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((5000, 50), np.float32))
    rows = torch.randint(0, 5000, (4000,))
    with penstock.open(
        tmp_path / "rows.npy", placement="storage", device="cpu", writable=True, **small_cache("storage")
    ) as array:
        extension.add(array.device_ptr, rows, 0.5)
        array.check_replays()
    wanted = 0.5 * np.bincount(rows.numpy(), minlength=5000)
    assert np.array_equal(np.load(tmp_path / "rows.npy")[:, 0], wanted.astype(np.float32))


def test_a_read_that_fails_is_raised_by_the_array(extension: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((20_000, 50), np.float32))
    with penstock.open(path, placement="storage", device="cpu", **small_cache("storage")) as array:
        address = array.device_ptr
        with path.open("r+b") as file:
            file.truncate(100_000)
        extension.gather(address, torch.tensor([19_999]))
        with pytest.raises(penstock.Error, match=r"rows\.npy"):
            array.check_replays()
