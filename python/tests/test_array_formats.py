"""Arrays in files that other libraries wrote, and what those say is in them."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from broken_inputs import MAKERS, arrow, numbers
from penstock.arrays import foreign
from penstock.arrays.dtypes import DTYPES, dtype_named

IN_PLACE = ["npy", "npz", "raw", "safetensors", "index", "arrow", "stream", "hdf5", "zarr", "zarr-2"]
FIXED = ["npz"]  # in place, but with check sums


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(foreign, "has_torch", lambda: False)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path_factory.mktemp("cache")))


def made(folder: Path, name: str) -> tuple[Path, dict[str, Any]]:
    needs, make = MAKERS[name]
    if needs is not None:
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    return make(folder)


def opened(path: Path, **options: Any) -> penstock.Array:
    return penstock.open(path, **({"device": "cpu", "placement": "host"} | options))


@pytest.mark.parametrize("placement", ["host", "host-cached", "storage"])
@pytest.mark.parametrize("name", MAKERS)
def test_rows_are_what_was_written(tmp_path: Path, name: str, placement: str) -> None:
    path, options = made(tmp_path, name)
    wanted = numbers().ravel() if name == "parquet" else numbers()
    planned = penstock.plan(path, device="cpu", placement=placement, **options)
    with opened(path, placement=placement, **options) as array:
        np.testing.assert_array_equal(np.asarray(array[[299, 0, 7]]), wanted[[299, 0, 7]])
        np.testing.assert_array_equal(np.asarray(array), wanted)
        assert (array.shape, str(array.dtype)) == (wanted.shape, "float32")
        assert (planned.shape, planned.dtype) == (array.shape, "float32")
        assert array.path == str(path)
        assert bool(array.opened.notes) == (name not in IN_PLACE)


@pytest.mark.parametrize("name", MAKERS)
def test_rows_are_stored_in_place_or_refused(tmp_path: Path, name: str) -> None:
    path, options = made(tmp_path, name)
    if name in IN_PLACE and name not in FIXED:
        with opened(path, writable=True, **options) as array:
            array[7] = np.array([-1, -2, -3, -4], np.float32)
        with opened(path, **options) as array:
            np.testing.assert_array_equal(np.asarray(array[[6, 7]]), [[24, 25, 26, 27], [-1, -2, -3, -4]])
        return
    for call in (penstock.open, penstock.plan):
        with pytest.raises(ValueError, match=r"it cannot be written to: .*: save (it|the array) as \.npy"):
            call(path, device="cpu", writable=True, **options)


def test_what_was_stored_is_read_by_the_other_libraries(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    for name in ("hdf5", "zarr", "zarr-2"):
        path, options = made(tmp_path, name)
        with opened(path, writable=True, **options) as array:
            array.scatter([0, 299], np.full((2, 4), 5, np.float32))
    wanted = numbers()
    wanted[[0, 299]] = 5
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["group/v"][:], wanted)
    for name in ("a.zarr", "b.zarr"):
        np.testing.assert_array_equal(zarr.open_array(tmp_path / name, mode="r")[:], wanted)


def _sum_of(array: penstock.Array) -> float:
    return float(np.asarray(array[:]).sum())


@pytest.mark.parametrize("name", MAKERS)
def test_a_reference_finds_the_array_again(tmp_path: Path, name: str) -> None:
    path, options = made(tmp_path, name)
    with opened(path, **options) as array:
        packed = pickle.dumps(array)
        wanted = np.asarray(array[:])
    with pickle.loads(packed) as same:
        np.testing.assert_array_equal(np.asarray(same[:]), wanted)
        assert same.path == str(path)


def test_a_reference_reaches_a_spawned_process(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        for name in ("npz-packed", "hdf5", "zarr-packed"):
            path, options = made(tmp_path, name)
            with opened(path, **options) as array:
                assert pool.apply(_sum_of, (array,)) == numbers().sum()


@pytest.mark.parametrize("name", ["arrow", "stream-lz4", "hdf5", "hdf5-gzip", "zarr", "zarr-packed", "npz"])
def test_a_reference_to_a_file_that_was_written_anew_is_refused(tmp_path: Path, name: str) -> None:
    path, options = made(tmp_path, name)
    with opened(path, **options) as array:
        packed = pickle.dumps(array)
    if path.is_dir():
        import zarr

        shutil.rmtree(path)
        zarr.create_array(path, data=np.zeros((20, 3), np.float64))
    elif name.startswith("hdf5"):
        import h5py

        with h5py.File(path, "w") as file:
            file["group/v"] = np.zeros((20, 3))
    elif name == "npz":
        np.savez(path, one=np.zeros((20, 3)))
    else:
        import pyarrow as pa

        table = pa.table({"v": np.zeros(60)})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(ValueError, match=r"it holds float64 .*, and what refers to it says float32"):
        pickle.loads(packed)


@pytest.mark.parametrize("name", ["npy", "npz", "npz-packed", "arrow", "arrow-zstd", "parquet", "hdf5"])
def test_formats_are_known_by_their_first_bytes(tmp_path: Path, name: str) -> None:
    path, options = made(tmp_path, name)
    other = path.rename(tmp_path / "rows.data")
    with opened(other, **options) as array:
        np.testing.assert_array_equal(np.asarray(array[:]).ravel(), numbers().ravel())
    with pytest.raises(ValueError, match="leave"):  # none is read as raw numbers
        opened(other, dtype="uint8", **options)
    with pytest.raises(ValueError, match="its header says shape and offset: leave them out"):
        opened(other, dtype="float32", shape=(2, 2), **options)


def test_columns_of_one_batch_lie_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for stream in (False, True):
        path = tmp_path / ("a.arrows" if stream else "a.arrow")
        arrow(path, stream=stream)
        for name, wanted in (("n", np.arange(300)), ("v", numbers())):
            with opened(path, name=name) as array:
                at = array.opened.offset
                assert path.read_bytes()[at : at + wanted.nbytes] == wanted.tobytes()
                assert array.opened.data is None


def test_arrow_columns_that_are_no_numbers(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pa.table({
        "null": pa.array([1, None, 3]), "text": ["a", "b", "c"], "lists": [[1], [2, 3], []],
        "bits": [True] * 3, "when": pa.array([1, 2, 3], pa.timestamp("s")),
        "half": np.arange(3, dtype=np.float16),
    })  # fmt: skip
    for path, make in ((tmp_path / "a.arrow", pa.ipc.new_file), (tmp_path / "a.arrows", pa.ipc.new_stream)):
        with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
            writer.write_table(table)
        for name in ("null", "text", "lists", "bits", "when"):
            with pytest.raises(ValueError, match=rf"column {name} .*: give one of numbers, or of lists"):
                opened(path, name=name)
        with opened(path, name="half") as array:
            assert np.asarray(array[:]).tolist() == [0, 1, 2]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2.0])], names=["x", "x"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, twice.schema) as writer:
        writer.write_table(twice)
    with pytest.raises(ValueError, match="2 of its columns are called x: rename all but one"):
        opened(path, name="x")


def test_arrow_tensors_and_slices(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    content = np.arange(240, dtype=np.float32).reshape(40, 2, 3)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(content)
    inner = pa.FixedSizeListArray.from_arrays(pa.array(content.ravel()), 3)
    lists = pa.FixedSizeListArray.from_arrays(inner, 2)
    table = pa.table({"t": tensors, "l": lists, "n": np.arange(40)}).slice(7, 20)
    for path, make in ((tmp_path / "a.arrow", pa.ipc.new_file), (tmp_path / "a.arrows", pa.ipc.new_stream)):
        for rows in (20, 6):
            with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=rows)
            for name, wanted in (("t", content[7:27]), ("l", content[7:27]), ("n", np.arange(7, 27))):
                with opened(path, name=name) as array:
                    np.testing.assert_array_equal(np.asarray(array[:]), wanted)
                    assert bool(array.opened.notes) == (rows == 6)


def test_arrow_files_of_no_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    schema = pa.schema({"n": pa.int32(), "v": pa.list_(pa.float32(), 3)})
    for path, make in ((tmp_path / "a.arrow", pa.ipc.new_file), (tmp_path / "a.arrows", pa.ipc.new_stream)):
        with pa.OSFile(str(path), "wb") as sink, make(sink, schema):
            pass
        with opened(path, name="v") as array:
            assert array.shape == (0, 3)


def test_parquet_of_several_row_groups_and_lists(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers().ravel()), 4)
    table = pa.table({"a.b": np.arange(300, dtype=np.uint8), "v": lists, "t": ["x"] * 300})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    for name, wanted in (("v", numbers()), ("a.b", np.arange(300).astype(np.uint8))):
        with opened(tmp_path / "a.parquet", name=name) as array:
            np.testing.assert_array_equal(np.asarray(array[:]), wanted)
    with pytest.raises(ValueError, match="column t of string: give one of numbers"):
        opened(tmp_path / "a.parquet", name="t")


def test_datasets_of_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path, rows = tmp_path / "a.bin", numbers()  # known by its first bytes
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["place"], file["deep/er"] = rows, np.arange(5, dtype=np.int16)
        file["flags"], file["big"] = rows > 7, rows.astype(">f8")
        file.create_dataset("one chunk", data=rows, chunks=(300, 4))
        file.create_dataset("chunks", data=rows, chunks=(70, 3))
        file.create_dataset("grown", data=rows, chunks=(300, 4), maxshape=(None, 4))
        file.create_dataset("checked", data=rows, chunks=(300, 4), fletcher32=True)
        file.create_dataset("unwritten", (9, 2), "f4", fillvalue=3)
        file["scalar"], file["text"], file["record"] = 1.0, "hello", np.zeros(3, "f4,i4")
        file["complex"] = np.zeros(3, complex)
    path.rename(tmp_path / "a.h5")
    path = tmp_path / "a.h5"
    right = {"place": rows, "deep/er": np.arange(5), "flags": rows > 7, "one chunk": rows, "grown": rows}
    copied = {"big": rows, "chunks": rows, "checked": rows, "unwritten": np.full((9, 2), 3)}
    for name, wanted in (right | copied).items():
        with opened(path, name=name) as array:
            np.testing.assert_array_equal(np.asarray(array[:]), wanted)
            assert bool(array.opened.notes) == (name in copied), name
    refusals: list[tuple[str | None, str]] = [
        ("scalar", "has no dimensions"), ("text", "has elements of object"), ("record", "has elements of"),
        ("complex", "has elements of complex128: give one of numbers"), ("deep", "there is no deep in it"),
        ("none", r"it has 13 datasets: name one of them \(big, checked"), (None, "it has 13 datasets"),
    ]  # fmt: skip
    for asked, words in refusals:
        with pytest.raises(ValueError, match=words):
            opened(path, name=asked)


def test_hdf5_whose_elements_are_elsewhere(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("out", (4,), "f4", external=[(str(tmp_path / "raw.bin"), 0, 16)])
        file["in"] = np.arange(4.0)
        layout = h5py.VirtualLayout((4,), "f8")
        layout[:] = h5py.VirtualSource(file["in"])
        file.create_virtual_dataset("virtual", layout)
    for name in ("out", "virtual"):
        with pytest.raises(ValueError, match=f"dataset {name} has its elements in other files: open those"):
            opened(tmp_path / "a.h5", name=name)


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_of_zarr(tmp_path: Path, version: int) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    rows = numbers()
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    ways: dict[str, tuple[bool, dict[str, Any]]] = {
        "place": (True, {"chunks": (300, 4), "compressors": None}),
        "in/longer": (True, {"chunks": (512, 4), "compressors": None}),
        "wider": (False, {"chunks": (300, 8), "compressors": None}),
        "chunks": (False, {"chunks": (70, 3), "compressors": None}),
        "packed": (False, {"chunks": (300, 4)}),
        "order": (False, {"chunks": (300, 4), "compressors": None, "order": "F"} if version == 2 else {}),
        "sharded": (False, {"shards": (300, 4), "chunks": (100, 4)} if version == 3 else {}),
    }
    for name, (_, options) in ways.items():
        group.create_array(name, shape=rows.shape, dtype="f4", **options)[:] = rows
    group.create_array("empty", shape=(300, 4), chunks=(300, 4), dtype="i2", fill_value=9, compressors=None)
    for name, (in_place, _) in ways.items():
        with opened(tmp_path / "a.zarr", name=name) as array:
            np.testing.assert_array_equal(np.asarray(array[:]), rows)
            assert bool(array.opened.notes) != in_place, name
        with opened(tmp_path / "a.zarr" / name) as array:
            np.testing.assert_array_equal(np.asarray(array[:]), rows)
    with opened(tmp_path / "a.zarr", name="empty") as array:
        np.testing.assert_array_equal(np.asarray(array[:]), np.full((300, 4), 9))
    refusals: list[tuple[str | None, str]] = [
        (None, r"it has 8 arrays: name one of them \(chunks, empty, in/longer"),
        ("in", "there is no in in it"),
        ("../x", r"name \.\./x: name an array inside the store"), ("/etc", "name an array inside the store"),
    ]  # fmt: skip
    for asked, words in refusals:
        with pytest.raises(ValueError, match=words):
            opened(tmp_path / "a.zarr", name=asked)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", [name for name, dtype in DTYPES.items() if dtype.numpy.name == name])
def test_element_types_of_zarr_and_hdf5(tmp_path: Path, version: int, kind: str) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    content, how = (np.arange(60) % 2).reshape(20, 3).astype(kind), {"zarr_format": version}
    zarr.create_array(
        tmp_path / "a.zarr", data=content, chunks=(20, 3), compressors=None, zarr_format=version
    )
    zarr.create_array(tmp_path / "b.zarr", data=content, chunks=(7, 2), **how)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = content
    for path in ("a.zarr", "b.zarr", "a.h5"):
        with opened(tmp_path / path) as array:
            assert str(array.dtype) == kind
            assert bool(array.opened.notes) == (path == "b.zarr")
            np.testing.assert_array_equal(np.asarray(array[:]), content)


def test_zarr_of_types_that_are_none_of_ours(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        zarr.create_array(path, data=np.zeros(3, complex), zarr_format=version)
        with pytest.raises(ValueError, match=r"has elements of .*: give one of numbers"):
            opened(path)
    about = json.loads((path / "zarr.json").read_bytes()) | {"data_type": "bfloat16", "fill_value": 0.0}
    about["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    (path / "zarr.json").write_text(json.dumps(about))
    (path / "c").mkdir(exist_ok=True)
    (path / "c" / "0").write_bytes(np.array([0x3F80, 0x4000, 0xBF80], np.uint16).tobytes())
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with opened(path) as array:
        assert str(array.dtype) == "bfloat16"
        as_torch = torch.from_numpy(array.numpy().copy()).view(torch.bfloat16)
        assert as_torch.tolist() == [1, 2, -1]


def test_models_of_several_safetensors_files(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    from safetensors.numpy import save_file

    save_file({"a": numbers(), "b": np.arange(7)}, tmp_path / "model-1.safetensors")
    save_file({"c": numbers() + 1}, tmp_path / "model-2.safetensors")
    shards = {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": shards}))
    for name, wanted in {"a": numbers(), "b": np.arange(7), "c": numbers() + 1}.items():
        with opened(index, name=name) as array, opened(tmp_path / shards[name], name=name) as alone:
            np.testing.assert_array_equal(np.asarray(array[:]), wanted)
            assert array.opened.offset == alone.opened.offset
    with pytest.raises(ValueError, match=r"it has 3 tensors: name one of them \(a, b, c\)"):
        opened(index)
    (tmp_path / "model-2.safetensors").write_bytes(bytes(20))
    with pytest.raises(ValueError, match=r"index\.json: model-2\.safetensors: its safetensors header"):
        opened(index, name="c")
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"tensor c is in model-2\.safetensors, and there is no such"):
        opened(index, name="c")
    for bad in ("/etc/passwd.safetensors", "../x.safetensors", "model-1.bin"):
        index.write_text(json.dumps({"weight_map": {"a": bad}}))
        with pytest.raises(ValueError, match=r"tensor a is in .*: (name a file beside|convert the model)"):
            opened(index)


def test_names_of_numpy_for_element_types(tmp_path: Path) -> None:
    content = np.arange(24, dtype="<i8")
    content.tofile(tmp_path / "a.bin")
    for text in ("f4", "<i8", "=u2", "|i1", "B", "half", "d", "l", "?", "e", "q", "single", "float", "int64"):
        assert dtype_named(text).numpy == np.dtype(text)
        with opened(tmp_path / "a.bin", dtype=text) as array:
            np.testing.assert_array_equal(np.asarray(array[:]), content.view(text))
    assert dtype_named("torch.bfloat16").name == "bfloat16"
    for other in (">f4", ">i8", np.dtype(">u2")):
        with pytest.raises(ValueError, match=r"dtype >.* is of the other byte order: convert it to"):
            dtype_named(other)
    for text in ("f3", "a", "U4", "M8[s]", "object", "c8", "f4,f4", "", "float31", "(2,)f4"):
        with pytest.raises(ValueError, match="arrays have none such: choose one of"):
            dtype_named(text)
    for thing in (None, 32, object(), {"a": 1}, [("a", "f5")]):
        with pytest.raises(TypeError, match="give a name such as float32, or a dtype of NumPy or PyTorch"):
            dtype_named(thing)


@pytest.mark.parametrize("which", ["zarr.json", "c/0/0"])
def test_a_pipe_in_a_zarr_store_is_not_waited_for(tmp_path: Path, which: str) -> None:
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    zarr.create_array(tmp_path / "a", data=numbers(), chunks=(70, 3), zarr_format=3)
    (tmp_path / "a" / which).unlink()
    os.mkfifo(tmp_path / "a" / which)
    with pytest.raises((ValueError, OSError), match=r"not a regular file|open .*a"):
        opened(tmp_path / "a")
