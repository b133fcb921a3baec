"""Arrays on the CPU executor: every placement that it has, files and memory, with and without torch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import Here, host, on_the_cpu, opened, saved, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from leaks import check_leaves_nothing
from penstock.arrays import foreign
from penstock.arrays.dtypes import DTYPES
from places import PLACEMENTS

pytestmark = pytest.mark.usefixtures("here")


def test_rows_are_taken_as_numpy_takes_them(tmp_path: Path, placement: str, library: str) -> None:
    content = table()
    with opened(saved(tmp_path, content), placement) as array:
        keys: list[Any] = [
            5, -1, np.int32(7), slice(3, 9), slice(None, None, -7), slice(90, 200), [1, 1, 99, -100], [],
            np.array([[3, 4], [5, -6]], dtype=np.int32), np.arange(100) % 3 == 0,
            np.array([7], dtype=np.uint8),
        ]  # fmt: skip
        for key in keys:
            taken = array[key]
            if Here.device == "cpu":
                assert type(taken).__module__.partition(".")[0] == library
            wanted = content[np.asarray(key, dtype=np.int64)] if isinstance(key, list) else content[key]
            np.testing.assert_array_equal(host(taken), wanted)


@pytest.mark.parametrize("dtype", [name for name, d in DTYPES.items() if d.numpy.name == name])
def test_every_element_type_comes_back(tmp_path: Path, dtype: str, library: str) -> None:
    content = table(30, 3, dtype)
    with opened(saved(tmp_path, content), "storage") as array:
        assert array.dtype.name == dtype
        taken = host(array[[29, 0, 3]])
        assert taken.dtype == content.dtype
        np.testing.assert_array_equal(taken, content[[29, 0, 3]])


def test_types_that_numpy_does_not_have_are_their_bytes(tmp_path: Path, library: str) -> None:
    content = table(10, 4, "uint16")
    with opened(saved(tmp_path, content), dtype="bfloat16") as array:
        taken = array[[3]]
        if library == "torch":
            import torch

            assert taken.dtype == torch.bfloat16
            taken = taken.view(torch.uint16)
        np.testing.assert_array_equal(host(taken), content[[3]])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 50),
    width=st.integers(1, 700),
    picks=st.lists(st.integers(-50, 49), max_size=80),
    placement=st.sampled_from(PLACEMENTS),
)
def test_any_width_and_any_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: int, width: int, picks: list[int], placement: str
) -> None:
    content = table(rows, width, "uint8")
    picks = [p % (2 * rows) - rows for p in picks]
    path = tmp_path_factory.mktemp("any") / "raw.bin"
    path.write_bytes(b"head" + content.tobytes())
    with opened(path, placement, dtype="uint8", shape=(rows, width), offset=4) as array:
        np.testing.assert_array_equal(host(array[picks]), content[np.array(picks, dtype=np.int64)])


def test_an_index_out_of_range_is_named_with_its_position(
    tmp_path: Path, placement: str, library: str
) -> None:
    with opened(saved(tmp_path, table()), placement) as array:
        with pytest.raises(IndexError, match=r"index 100 at position 2 is out of range: it has 100 rows"):
            array[[0, 99, 100, -101]]
        with pytest.raises(IndexError, match=r"index -101 at position \(1, 0\)"):
            array[np.array([[0, 1], [-101, 5]])]
        with pytest.raises(IndexError):
            array[100]


@on_the_cpu
def test_bad_keys_are_refused(tmp_path: Path, library: str) -> None:
    with opened(saved(tmp_path, table())) as array:
        for key, words in [
            ([0.5], "give integers"), (np.array([True, False]), "a mask of shape"), ((1, 2, 3), "too many"),
            (True, "one boolean"),
        ]:  # fmt: skip
            with pytest.raises(IndexError, match=words):
                array[key]
        with pytest.raises(ValueError, match="choose auto, as-asked"):
            array.gather([1], order="random")
        with pytest.raises(ValueError, match="the rows are float32"):
            array.gather([1], out=np.empty((1, 7), np.float64))
        with pytest.raises(ValueError, match="sms -1"):
            array.gather([1], sms=-1)


@on_the_cpu
def test_out_is_filled(tmp_path: Path, library: str) -> None:
    content = table()
    with opened(saved(tmp_path, content)) as array:
        out: Any = np.zeros((3, 7), np.float32)
        if library == "torch":
            import torch

            out = torch.zeros((3, 7))
        assert array.gather([4, 5, 4], out=out) is out
        np.testing.assert_array_equal(np.asarray(out), content[[4, 5, 4]])
        handle = array.gather_async([1, 2])
        np.testing.assert_array_equal(host(handle.wait()), content[[1, 2]])
        np.testing.assert_array_equal(host(handle.wait()), content[[1, 2]])
        bad = array.gather_async([1, 100])
        for _ in range(2):
            with pytest.raises(IndexError, match="index 100 at position 1 is out of range"):
                bad.wait()


def test_a_gather_that_was_waited_for_keeps_no_file(tmp_path: Path) -> None:
    path = saved(tmp_path, table())
    with opened(path, "storage", writable=True) as array:
        handle = array.gather_async([1, 2])
        handle.wait()
    with opened(path, "storage", writable=True) as array:
        np.testing.assert_array_equal(host(array[[1, 2]]), host(handle.wait()))


def test_options_that_there_are_not_and_those_without_effect_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, table())
    for make in (penstock.open, penstock.plan):
        with pytest.raises(TypeError, match=r"^open .*array\.npy: cash: there is no such option; there are "):
            make(path, cash="1MiB")  # type: ignore[call-arg]
    for line in (512, 4096, "4KiB"):
        for make in (penstock.open, penstock.plan):
            with pytest.raises(ValueError, match=f"line {line}: placement host has no cache: leave it out"):
                make(path, placement="host", device=Here.device, line=line)


def test_what_is_stored_is_in_the_file(tmp_path: Path, placement: str, library: str) -> None:
    if Here.device == "cuda" and placement == "host":
        pytest.skip("a GPU cannot store into a mapped file")
    content = table()
    path = saved(tmp_path, content)
    with opened(path, placement, writable=True) as array:
        array.scatter([3, 97], np.full((2, 7), 9, np.float32))
        array[5] = 2.5
        array[10:12] = np.arange(14, dtype=np.float32).reshape(2, 7)
        array.scatter([20] * 50, np.ones((50, 7), np.float32), reduce="add")
        content[[3, 97]] = 9
        content[5] = 2.5
        content[10:12] = np.arange(14).reshape(2, 7)
        content[20] += 50
        np.testing.assert_array_equal(host(array[:]), content)
        array.flush()
    np.testing.assert_array_equal(np.load(path), content)


def test_bad_stores_are_refused(tmp_path: Path, library: str) -> None:
    path = saved(tmp_path, table())
    with opened(path) as array, pytest.raises(ValueError, match="opened read-only"):
        array.scatter([1], np.zeros((1, 7), np.float32))
    with opened(path, "storage", writable=True) as array:
        for rows, values, problem, words in [
            ([1], np.zeros((1, 6), np.float32), ValueError, "values of shape"),
            ([1], np.zeros((1, 7), np.int16), TypeError, "values of type int16"),
            ([200], np.zeros((1, 7), np.float32), IndexError, "index 200 at position 0"),
        ]:
            with pytest.raises(problem, match=words):
                array.scatter(rows, values)
        with pytest.raises(ValueError, match="reduce 'mean'"):
            array.scatter([1], np.zeros((1, 7), np.float32), reduce="mean")
    halves = opened(saved(tmp_path, table(dtype="float16")), "storage", writable=True)
    with halves, pytest.raises(ValueError, match="only 4- and 8-byte numbers"):
        halves.scatter([1], np.zeros((1, 7), np.float16), reduce="add")


def test_masks_are_masks_for_every_call(tmp_path: Path, library: str) -> None:
    mask: Any = np.arange(100) % 2 == 0
    if library == "torch":
        import torch

        mask = torch.from_numpy(mask)
    with opened(saved(tmp_path, table()), "storage", writable=True) as array:
        for use in (
            array.gather,
            array.prefetch,
            lambda rows: array.scatter(rows, np.zeros((100, 7), np.float32)),
        ):
            with pytest.raises(IndexError, match="give integers"):
                use(mask)
        np.testing.assert_array_equal(host(array[mask]), table()[::2])


@on_the_cpu
def test_what_views_an_array_keeps_its_memory(tmp_path: Path) -> None:
    content = table(5000, 64)
    with opened(saved(tmp_path, content)) as array:
        seen = array.numpy()
    np.testing.assert_array_equal(seen, content)


@on_the_cpu
def test_threads_gather_side_by_side(tmp_path: Path) -> None:
    content = table(3000, 40)
    path = saved(tmp_path, content)
    with opened(path) as first, opened(path, "storage") as second, ThreadPoolExecutor(4) as threads:

        def take(seed: int) -> bool:
            rows = np.random.default_rng(seed).integers(0, 3000, 2000)
            return bool((host((first if seed % 2 else second)[rows]) == content[rows]).all())

        assert all(threads.map(take, range(60)))


@on_the_cpu
def test_the_other_byte_order_is_refused_in_place_and_converted_when_stored(tmp_path: Path) -> None:
    swapped = np.arange(8, dtype=">f4").reshape(4, 2)
    with pytest.raises(ValueError, match="byte order"):
        penstock.from_tensor(swapped, device="cpu")
    with opened(saved(tmp_path, table(4, 2)), "storage", writable=True) as array:
        array.scatter([0, 1, 2, 3], swapped)
        np.testing.assert_array_equal(host(array[:]), swapped)


def test_rows_begin_where_lines_do_whatever_lies_before_them(tmp_path: Path) -> None:
    path = tmp_path / "raw.bin"
    path.write_bytes(bytes(4 + 512 * 300))
    options: dict[str, Any] = {"dtype": "float64", "shape": (300, 64), "offset": 4, "writable": True}
    with opened(path, "storage", **options) as array:
        array.scatter([1, 1], np.ones((2, 64)), reduce="add")
        array.scatter([299], np.full((1, 64), 5.0))
        np.testing.assert_array_equal(host(array[[1, 2, 299]])[:, 0], [2, 0, 5])
        assert array.stats()["fills"] == 2, (
            "a line for each row, and none to fill for a row that is stored whole"
        )
    np.testing.assert_array_equal(np.fromfile(path, offset=4).reshape(300, 64)[[1, 2, 299], 63], [2, 0, 5])


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint32", "int64"])
@pytest.mark.parametrize("where", ["host", "storage", "direct", "memory"])
def test_numbers_that_are_not_aligned_are_added_to(
    tmp_path: Path, library: str, where: str, dtype: str
) -> None:
    if Here.device == "cuda" and where == "host":
        pytest.skip("a GPU cannot store into a mapped file")
    content = table(100, 5, dtype)
    path = tmp_path / "raw.bin"
    whole = b"abc" + content.tobytes()
    path.write_bytes(whole + bytes(-len(whole) % 4096))  # direct writes are of whole blocks
    layout: dict[str, Any] = {"dtype": dtype, "shape": (100, 5), "offset": 3, "writable": True}
    if where == "memory":
        memory = np.ndarray((100, 5), dtype, buffer=bytearray(path.read_bytes()), offset=3)
        array = penstock.from_tensor(memory, device=Here.device)
    else:
        array = opened(path, "storage" if where == "direct" else where, direct=where == "direct", **layout)
    with array:
        rows, values = [[7, 99], [-93, 7]], np.arange(20).reshape(2, 2, 5).astype(dtype)
        array.scatter(rows, values, reduce="add")
        np.add.at(content, np.array(rows), values)
        with pytest.raises(IndexError, match=r"scatter to .*index 100 at position 1 is out"):
            array.scatter([3, 100, 3, -101], np.ones((4, 5), dtype), reduce="add")
        content[3] += np.ones(5, dtype) * 2  # those in range are stored
        array.scatter([0], np.full((1, 5), 9, dtype))
        content[0] = 9
        np.testing.assert_array_equal(host(array[:]), content)


def test_a_closed_array_says_so(tmp_path: Path) -> None:
    array = opened(saved(tmp_path, table()))
    array.close()
    array.close()
    assert "closed" in repr(array)
    for use in (lambda: array[0], lambda: array.flush(), lambda: array.stats(), lambda: array.__enter__()):
        with pytest.raises(ValueError, match="it is closed"):
            use()


@on_the_cpu
def test_a_tensor_in_memory_is_read_and_written_in_place(library: str) -> None:
    content = table()
    given_to: Any = content
    if library == "torch":
        import torch

        given_to = torch.from_numpy(content)
    with penstock.from_tensor(given_to, device=Here.device) as array:
        assert array.placement == "host"
        np.testing.assert_array_equal(host(array[[3, 1]]), content[[3, 1]])
        array[3] = 7
        assert (content[3] == 7).all()
        assert array.numpy().base is not None
        content[4] = 8
        np.testing.assert_array_equal(array.numpy(), content)
    with pytest.raises(ValueError, match="contiguous"):
        penstock.from_tensor(content[:, ::2], device=Here.device)
    with pytest.raises(ValueError, match="no GPU"):
        penstock.from_tensor(content, "hbm", device=Here.device)


def test_a_new_file_is_zeros_until_stored(tmp_path: Path) -> None:
    path = tmp_path / "new.npy"
    with penstock.empty(path, (1000, 33), "int32", device=Here.device) as array:
        array[999] = np.arange(33, dtype=np.int32)
    content = np.load(path)
    assert content.shape == (1000, 33)
    assert content[:999].sum() == 0
    np.testing.assert_array_equal(content[999], np.arange(33))
    with pytest.raises(FileExistsError):
        penstock.empty(path, (1,), "int32", device=Here.device)
    with pytest.raises(ValueError, match=r"not end with \.npy: give one"):
        penstock.empty(tmp_path / "new.bin", (1,), "int32")


@on_the_cpu
def test_the_plan_says_what_goes_where(tmp_path: Path) -> None:
    path = saved(tmp_path, table(1000, 64))
    plan = penstock.plan(path, placement="storage", device=Here.device, cache="2MiB")
    assert plan.storage_bytes == 256_000
    assert plan.host_bytes == 2 << 20
    assert plan.metadata_bytes > 0
    writable = penstock.plan(path, placement="storage", device=Here.device, cache="2MiB", writable=True)
    assert 0 < plan.transit_bytes < writable.transit_bytes, "which has buffers for what is written back"
    cost = plan.cost("980pro", bytes_written_per_s=256_000 / 86_400)
    in_dram = (2 << 20) + plan.metadata_bytes + plan.transit_bytes
    assert cost.dollars == pytest.approx({"hbm": 0, "dram": in_dram * 11.13e-9, "980pro": 256_000 * 0.51e-9})
    assert cost.dram_dollars == pytest.approx(256_000 * 11.13e-9)
    assert cost.drive_writes_per_day == pytest.approx(1.0)
    assert "left on storage" in str(plan)
    assert "rings and buffers" in str(plan)
    assert penstock.plan(path, device=Here.device).placement == "host"
    assert penstock.plan(path, device=Here.device, writable=True).placement == "storage"
    with pytest.raises(ValueError, match="there is no GPU for placement hbm"):
        penstock.plan(path, placement="hbm", device=Here.device)
    with pytest.raises(ValueError, match="placement 'tape'"):
        penstock.plan(path, placement="tape", device=Here.device)


@on_the_cpu
def test_bad_calls_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    path = saved(tmp_path, table())
    with opened(path) as array:
        check_leaves_nothing(
            [
                lambda: array[[1000]],
                lambda: array[[0.5]],
                lambda: array.gather([1], out=np.empty(3)),
                lambda: penstock.open(tmp_path / "none.npy", device=Here.device),
                lambda: penstock.open(path, placement="hbm", device=Here.device),
                lambda: penstock.open(path, placement="storage", device=Here.device, line=77),
            ]
        )
