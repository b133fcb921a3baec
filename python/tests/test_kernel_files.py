"""Folders of files as parameters of kernels of the user's own: `penstock::files`."""

from __future__ import annotations

import errno
import gc
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.fs
import pytest
from kernels_here import results
from penstock import _native
from penstock.fs import folder as folders
from penstock.kernels.call import Call
from penstock.kernels.signature import find_kernel

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("kernel_cache")

COUNT = """
__global__ void count(penstock::files fs, penstock::array<long long> lines, penstock::array<int> errors,
                      int files) {
  penstock::for_each_index(files, [&](auto k) {
    char name[] = "parts/000", text[300];
    for (int digit = 0, left = k; digit < 3; ++digit, left /= 10) name[8 - digit] += left % 10;
    auto file = fs.open(name);
    errors[k] = file.error;
    if (!file.ok()) return;
    long long mine = 0;
    for (size_t at = 0;;) {
      const auto got = fs.pread(file, text, sizeof text, at);
      if (!got.ok() || got.value == 0) break;
      for (size_t i = 0; i < got.value; ++i) mine += text[i] == '\\n';
      at += got.value;
    }
    fs.close(file);
    lines.fetch_add(0, mine);
  });
}
"""


def mounted(folder: Path, device: Any, **options: Any) -> penstock.fs.Folder:
    return penstock.fs.mount(folder, executor=device, cache="1MiB", **options)


def codes(count: int, device: str) -> tuple[Any, penstock.Array]:
    return results(np.full(count, -1, np.int32), device)


def test_threads_open_and_read_files_by_name(tmp_path: Path, device: str) -> None:
    (tmp_path / "parts").mkdir()
    rng = np.random.default_rng(3)
    wanted = 0
    for k in range(40):
        text = bytes(rng.integers(9, 14, int(rng.integers(0, 9000))).astype(np.uint8))
        if k % 10 != 7:
            (tmp_path / "parts" / f"{k:03}").write_bytes(text)
            wanted += text.count(b"\n")
    lines, total = results(np.zeros(1, np.int64), device)
    met, errors = codes(40, device)
    with mounted(tmp_path, device) as folder:
        penstock.kernel(COUNT, device=device)(folder, total, errors, 40).wait()
        assert folder.inspect()["open_files"] == 0
    assert lines[0] == wanted
    assert [k for k in range(40) if met[k] != 0] == [7, 17, 27, 37]
    assert met[7] == errno.ENOENT


def test_a_warp_reads_and_writes_together(tmp_path: Path, device: str) -> None:
    content = np.random.default_rng(4).integers(0, 2**31, 3000).astype(np.int32)
    (tmp_path / "from").write_bytes(content.tobytes())
    kernel = penstock.kernel(
        """__global__ void doubled(penstock::files fs, penstock::array<int> errors) {
             __shared__ int values[8][256];
             const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
             const auto all = fs.warp();
             const auto from = all.open("from"), to = all.open("deep/to", "r+");
             if (lane == 0) errors[warp] = from.error != 0 ? from.error : to.error;
             for (size_t at = warp * 1024;; at += warps * 1024) {
               const auto got = all.pread(from, values[warp], 1024, at);
               if (got.value == 0) break;
               __syncwarp();
               for (size_t i = lane; i < got.value / 4; i += 32) values[warp][i] *= 2;
               all.pwrite(to, values[warp], got.value, at);
               __syncwarp();
             }
             all.close(from);
             const int lost = all.close(to);
             if (lost != 0 && lane == 0) errors[warp] = lost;
           }""",
        device=device,
    )
    met, errors = codes(4, device)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "to").touch()
    with mounted(tmp_path, device, writable=True) as folder:
        kernel(folder, errors, grid=1, block=128).wait()
        assert folder.inspect()["open_files"] == 0
    assert met.tolist() == [0, 0, 0, 0]
    assert np.array_equal(np.frombuffer((tmp_path / "deep" / "to").read_bytes(), np.int32), content * 2)


CALLS = """
__global__ void calls(penstock::files fs, penstock::array<long long> out) {
  const auto log = fs.open("log", "a");
  fs.pwrite(log, "one ", 4, 100);
  fs.pwrite(log, "two ", 4, 0);
  out[0] = fs.size_of(log).value;
  out[1] = fs.sync(log);
  fs.truncate(log, 6);
  fs.close(log);
  const auto facts = fs.stat("log");
  out[2] = facts.size;
  out[3] = facts.mode;
  const auto again = fs.open("log", "r+");
  auto held = fs.map(again, 0, 100, true);
  out[4] = held.count;
  held.bytes[1] = 'N';
  out[5] = fs.unmap(again, held);
  fs.close(again);
  out[6] = fs.rename("log", "logs/first");
  out[7] = fs.unlink("old");
  alignas(8) char names[8192];
  unsigned long long cursor = 0;
  out[8] = 0;
  for (;;) {
    const auto got = fs.read_folder("logs", cursor, names);
    if (!got.ok() || got.value == 0) break;
    for (size_t at = 0; at < got.value;) {
      auto const& each = *reinterpret_cast<penstock::kernels::folder_name const*>(names + at);
      if (each.name_bytes == 5 && each.name()[0] == 'f' && each.name()[5] == 0) out[8] += 1;
      at += each.bytes;
    }
  }
}
"""


def test_a_kernel_has_the_other_calls_of_a_folder(tmp_path: Path, device: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "old").touch()
    memory, out = results(np.full(9, -1, np.int64), device)
    with mounted(tmp_path, device, writable=True) as folder:
        penstock.kernel(CALLS, device=device)(folder, out, threads=1).wait()
    assert memory[:3].tolist() == [8, 0, 6]
    assert stat.S_ISREG(int(memory[3]))
    assert memory[4:].tolist() == [6, 0, 0, 0, 1]
    assert (tmp_path / "logs" / "first").read_bytes() == b"oNe tw"
    assert not (tmp_path / "old").exists()


NOTHING_HELD = """
__global__ void hold_nothing(penstock::files fs, penstock::array<int> out) {
  const auto file = fs.open("file", "r+"), reader = fs.open("file");
  const auto behind = fs.map(file, 100, 8, true), refused = fs.map(reader, 0, 8, true);
  out[0] = behind.count + refused.count;
  out[1] = fs.unmap(file, behind);
  out[2] = fs.unmap(reader, refused);
  out[3] = fs.pwrite(file, "NEW", 3, 0).error;
  out[4] = fs.close(reader);
  out[5] = fs.close(file);
}
"""


def test_a_map_of_nothing_ends_no_descriptor(tmp_path: Path, device: str) -> None:
    (tmp_path / "file").write_bytes(b"old text")
    memory, out = codes(6, device)
    with mounted(tmp_path, device, writable=True) as folder:
        penstock.kernel(NOTHING_HELD, device=device)(folder, out, threads=1).wait()
    assert memory.tolist() == [0] * 6
    assert (tmp_path / "file").read_bytes() == b"NEW text"


MODES = """
__global__ void modes(penstock::files fs, penstock::array<int> errors) {
  errors[0] = fs.open("there", "r").error;
  errors[1] = fs.open("there", "r+").error;
  errors[2] = fs.open("there", "x").error;
  errors[3] = fs.open("not there").error;
  errors[4] = fs.open("../there").error;
  errors[5] = fs.open("there", "rw").error;
  errors[6] = fs.open("there", "").error;
  errors[7] = fs.open("there", "o+").error;
  char byte = 0;
  errors[8] = fs.pread({}, &byte, 1, 0).error;
  errors[9] = fs.pwrite(fs.open("there"), &byte, 1, 0).error;
  errors[10] = fs.unlink("there");
}
"""


@pytest.mark.parametrize("writable", [False, True])
def test_errors_of_calls_are_errnos(tmp_path: Path, device: str, writable: bool) -> None:
    (tmp_path / "there").write_bytes(b"text")
    met, errors = codes(11, device)
    with mounted(tmp_path, device, writable=writable) as folder:
        penstock.kernel(MODES, device=device)(folder, errors, threads=1).wait()
    write, new, away = (0, errno.EEXIST, 0) if writable else (errno.EROFS,) * 3
    wanted = [0, write, new, errno.ENOENT, errno.EXDEV, *[errno.EINVAL] * 3, errno.EBADF, errno.EBADF, away]
    assert met.tolist() == wanted


def test_what_is_no_open_folder_is_refused(tmp_path: Path) -> None:
    kernel = penstock.kernel("__global__ void f(penstock::files fs, int n) {}", device="cpu")
    folder = mounted(tmp_path, "cpu")
    kernel(folder, 1).wait()
    for given in (str(tmp_path), None, 0, np.zeros(1)):
        with pytest.raises(
            TypeError, match=r"argument 1 \(penstock::files fs\): .*give a folder of penstock"
        ):
            kernel(given, 1)
    folder.close()
    with pytest.raises(ValueError, match=r"argument 1 .*: it is closed: mount it again"):
        kernel(folder, 1)
    with mounted(tmp_path, "cpu") as folder, pytest.raises(TypeError, match="declare penstock::files"):
        penstock.kernel("__global__ void f(char* to) {}", device="cpu")(folder)


def test_a_folder_of_another_device_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = penstock.kernel("__global__ void f(penstock::files fs) {}", device="cpu")

    class OnGpu:
        cuda, gpu = True, 1

    with mounted(tmp_path, "cpu") as folder:
        monkeypatch.setattr(folder, "_native", OnGpu())
        with pytest.raises(ValueError, match=r"is mounted for GPU 1, and .*: mount it with executor='cpu'"):
            kernel(folder)
        monkeypatch.undo()


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void f(penstock::files fs) {}",
        "__global__ void f(const ::penstock :: files) {}",
        "using penstock::files; __global__ void f(files fs) {}",
        "using folder = penstock::files; __global__ void f(folder fs) {}",
    ],
)
def test_a_folder_is_found_in_a_signature(text: str) -> None:
    assert [parameter.kind for parameter in find_kernel(text, None).parameters] == ["files"]


def test_another_type_of_the_name_is_refused() -> None:
    with pytest.raises(ValueError, match="parameter 1 of f is not what its type seems to be"):
        penstock.kernel("struct files { int n; }; __global__ void f(files fs) {}", device="cpu")


def run_until(kernel: penstock.Kernel, folder: penstock.fs.Folder, seconds: float, device: str) -> None:
    if device == "cpu":
        kernel(folder, threads=1, timeout=seconds)
    else:
        kernel(folder, threads=1).wait(timeout=seconds)


def test_a_kernel_that_waits_for_a_file_is_stopped_by_name(tmp_path: Path, device: str) -> None:
    kernel = penstock.kernel(
        """__global__ void waits(penstock::files fs) {
             while (!penstock::stopped() && !fs.stat("never").ok()) __nanosleep(1000);
           }""",
        device=device,
    )
    with (
        mounted(tmp_path, device) as folder,
        pytest.raises(TimeoutError, match="kernel waits: it ran past its"),
    ):
        run_until(kernel, folder, 0.3, device)


def test_a_folder_closes_behind_the_kernels_that_have_it(tmp_path: Path) -> None:
    folder = mounted(tmp_path, "cpu")
    met: list[str] = []

    class Running:
        done = False

        def settle(self, what: str) -> None:
            met.append(f"{what}: closed {folder.closed}")
            self.done = True

    running = Running()
    folder.lend(running)
    folder.close()
    assert met == [f"close the folder {tmp_path}: closed False"]
    assert folder.closed
    with mounted(tmp_path, "cpu") as other:
        other.lend(Running())
        assert all(held is not folder for held, _ in folders._under_way)


SLOW = """
__global__ void slow(penstock::files fs, penstock::array<int> steps) {
  const auto file = fs.open("f", "w+");
  steps[0] = 1;
  while (steps.fetch_add(1, 0) == 0 && !penstock::stopped()) __nanosleep(1000);
  for (int i = 0; i < 1000; ++i) fs.pwrite(file, &i, 4, 4 * i);
  fs.close(file);
  steps[2] = 1;
}
"""


@pytest.mark.parametrize("what", ["close", "flush", "collect"])
def test_a_folder_waits_for_the_kernel_of_another_thread(tmp_path: Path, device: str, what: str) -> None:
    kernel = penstock.kernel(SLOW, device=device)
    steps, out = results(np.zeros(3, np.int32), device)
    folder: penstock.fs.Folder | None = mounted(tmp_path, device, writable=True)
    runs = threading.Thread(target=kernel_to_its_end, args=(kernel, [folder], out))
    runs.start()
    while steps[0] == 0 and runs.is_alive():
        time.sleep(0.001)
    met: list[int] = []

    def ends(folder: penstock.fs.Folder) -> None:
        getattr(folder, what)()
        met.append(int(steps[2]))

    if what == "collect":
        folder = None
        gc.collect()
        let_go(steps, runs)
    else:
        assert folder is not None
        waits = [threading.Thread(target=ends, args=(folder,)) for _ in range(2)]
        for thread in waits:
            thread.start()
        waits[0].join(0.1)
        early = list(met)
        let_go(steps, runs)
        for thread in waits:
            thread.join()
        assert early == []
        assert met == [1, 1]
    runs.join()
    if folder is not None:
        folder.close()
    assert np.array_equal(np.fromfile(tmp_path / "f", np.int32), np.arange(1000))
    assert folders._under_way == []


def let_go(steps: np.ndarray[Any, Any], runs: threading.Thread) -> None:
    while runs.is_alive():  # an atomic of the kernel's that is under way on PCIe undoes a store
        steps[1] = 1
        time.sleep(0.001)


def kernel_to_its_end(kernel: penstock.Kernel, holds: list[Any], out: penstock.Array) -> None:
    kernel(holds.pop(), out, threads=1).wait()
    folders.forget_ended()


def test_a_folder_waits_for_a_kernel_that_has_not_begun(tmp_path: Path) -> None:
    first, behind = (penstock.kernel(SLOW, device="cpu") for _ in range(2))
    steps, out = results(np.zeros(3, np.int32), "cpu")
    done, last = results(np.array([0, 1, 0], np.int32), "cpu")
    (tmp_path / "other").mkdir()
    with mounted(tmp_path, "cpu", writable=True) as one:
        other = mounted(tmp_path / "other", "cpu", writable=True)
        runs = [threading.Thread(target=kernel_to_its_end, args=(first, [one], out))]
        runs[0].start()
        while steps[0] == 0:
            time.sleep(0.001)
        runs.append(threading.Thread(target=kernel_to_its_end, args=(behind, [other], last)))
        runs[1].start()
        while not any(held is other for held, _ in folders._under_way):
            time.sleep(0.001)
        closes = threading.Thread(target=other.close)
        closes.start()
        steps[1] = 1
        for thread in (closes, *runs):
            thread.join()
    assert done[2] == 1
    assert (tmp_path / "other" / "f").stat().st_size == 4000


def test_a_closed_folder_is_lent_to_no_launch(tmp_path: Path) -> None:
    folder = mounted(tmp_path, "cpu")
    folder.close()
    with pytest.raises(ValueError, match="it is closed: mount it again"):
        folder.lend(Call("f"))


def test_a_thread_does_not_wait_for_its_own_kernel(tmp_path: Path) -> None:
    folder = mounted(tmp_path, "cpu")
    call = Call("mine")
    folder.lend(call)
    with pytest.raises(penstock.Error, match=r"close the folder .*: this thread runs the kernel mine: do it"):
        folder.close()
    assert not folder.closed
    call.end()
    folder.close()


def roots_open(folder: Path) -> int:
    """Descriptors of a folder that this process has."""
    return sum(os.path.realpath(name) == str(folder.resolve()) for name in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not _native.cuda_usable()[0], reason="CUDA graphs need a GPU")
def test_a_graph_keeps_its_folder_and_its_kernel(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (tmp_path / "f").write_bytes(b"1234")
    found = torch.zeros(1, dtype=torch.int32).cuda()
    folder: Any = mounted(tmp_path, "cuda", writable=True)
    kernel: Any = penstock.kernel(
        """__global__ void next(penstock::files fs, int* found) {
             const auto file = fs.open("f", "r+");
             fs.pread(file, found, 4, 0);
             const int more = *found + 1;
             fs.pwrite(file, &more, 4, 0);
             fs.close(file);
           }""",
        device="cuda",
    )
    graph: Any = torch.cuda.CUDAGraph()
    kernel(folder, found, threads=1).wait()
    with torch.cuda.graph(graph):
        kernel(folder, found, threads=1)
    folder.close()
    del kernel, folder
    gc.collect()
    first = int.from_bytes(b"1234", "little")
    for k in range(3):
        graph.replay()
        assert int(found.cpu()) == first + 1 + k
    assert roots_open(tmp_path) == 1
    del graph
    gc.collect()
    torch.cuda.synchronize()
    with mounted(tmp_path, "cuda"):
        pass
    assert roots_open(tmp_path) == 0
    assert int.from_bytes((tmp_path / "f").read_bytes(), "little") == first + 4
