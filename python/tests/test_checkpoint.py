"""Checkpoints: the numbers of a run come back, and what is damaged or does not fit changes nothing."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from broken_inputs import check_sentence
from places import check_same

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.checkpoint  # noqa: E402
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402
from checkpoint_run import ROWS, WIDTH, Run  # noqa: E402
from penstock.nn.checksums import Checksum  # noqa: E402
from penstock.nn.snapshots import checksum_of, copy_table  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables

KINDS = ["SGD", "Adagrad", "RowWiseAdagrad", "SparseAdam", "RowWiseAdam"]


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def same(ours: list[Any], theirs: list[Any]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_on_from_the_numbers_of_its_checkpoint(tmp_path: Path, device: str, kind: str) -> None:
    """The table is ahead of the checkpoint when it is loaded, in the same process and in another."""
    for name in ("whole", "half"):
        (tmp_path / name).mkdir()
    whole = Run(tmp_path / "whole", kind, device)
    whole.train(range(9))
    half = Run(tmp_path / "half", kind, device)
    half.train(range(4))
    made = penstock.checkpoint.save(tmp_path / "saved", **half.all, extra={"step": 4})
    assert made == tmp_path / "saved/checkpoint-00000000"
    at_four = half.numbers()
    half.train(range(4, 7))
    assert not same(half.numbers(), at_four)
    array = half.model["table"].array
    assert penstock.checkpoint.load(tmp_path / "saved", **half.all) == {"step": 4}
    assert half.model["table"].array is array
    assert same(half.numbers(), at_four)
    half.train(range(4, 6))
    half.close()
    again = Run(tmp_path / "half", kind, device)
    assert penstock.checkpoint.load(tmp_path / "saved", **again.all) == {"step": 4}
    again.train(range(4, 9))
    for ours, theirs in zip(again.numbers(), whole.numbers(), strict=True):
        check_same(ours, theirs, device == "cuda", near=1e-6)
    again.close()
    assert np.array_equal(np.load(tmp_path / "half/t.npy"), whole.numbers()[0].numpy())
    whole.close()


def test_as_many_stay_as_are_kept(tmp_path: Path) -> None:
    run = Run(tmp_path)
    found = []
    for k in range(5):
        run.train(range(k, k + 1))
        penstock.checkpoint.save(tmp_path / "saved", **run.all, extra=k, keep=2)
        found.append(run.numbers())
    assert penstock.checkpoint.numbers(tmp_path / "saved") == [3, 4]
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        ".lock",
        "checkpoint-00000003",
        "checkpoint-00000004",
    ]
    newest = run.numbers()
    extras = [penstock.checkpoint.read_extra(tmp_path / "saved", number=number) for number in (3, None)]
    assert (extras, same(run.numbers(), newest)) == ([3, 4], True)
    assert penstock.checkpoint.load(tmp_path / "saved", **run.all, number=3) == 3
    assert same(run.numbers(), found[3])
    assert penstock.checkpoint.load(tmp_path / "saved", **run.all) == 4
    assert same(run.numbers(), found[4])
    with pytest.raises(FileNotFoundError, match=r"load checkpoint 1 from .*saved: it has 3, 4: name"):
        penstock.checkpoint.load(tmp_path / "saved", **run.all, number=1)
    penstock.checkpoint.save(tmp_path / "saved", **run.all, keep=None)
    assert penstock.checkpoint.numbers(tmp_path / "saved") == [3, 4, 5]
    one, other = (tmp_path / f"saved/checkpoint-0000000{k}/0.npy" for k in (4, 5))
    assert one.samefile(other), "a table that has not changed is linked, not copied"
    run.train(range(5, 6))
    penstock.checkpoint.save(tmp_path / "saved", **run.all, keep=None)
    assert not one.samefile(tmp_path / "saved/checkpoint-00000006/0.npy")
    run.close()


def test_copies_are_plain_arrays_and_progress_counts_them(tmp_path: Path) -> None:
    run = Run(tmp_path)
    seen: list[Any] = []
    run.train(range(2))
    made = penstock.checkpoint.save(tmp_path / "saved", **run.all, progress=lambda *given: seen.append(given))
    assert np.array_equal(np.load(made / "0.npy"), run.numbers()[0].numpy())
    assert np.array_equal(np.load(made / "1.npy"), np.load(tmp_path / "t.adagrad.npy"))
    assert seen[-1] == ("copy", 2 * ROWS * WIDTH * 4, 2 * ROWS * WIDTH * 4)
    run.train(range(2, 3))
    seen.clear()
    penstock.checkpoint.load(tmp_path / "saved", **run.all, progress=lambda *given: seen.append(given))
    total = sum((made / name).stat().st_size for name in ("0.npy", "1.npy"))
    assert list(dict.fromkeys(one for one in seen if one[1] == total)) == [
        ("check", total, total),
        ("restore", total, total),
    ]
    assert {one[2] for one in seen} == {total}
    run.close()


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.train(range(2))
    saved = tmp_path / "saved"
    penstock.checkpoint.save(saved, **run.all)
    run.train(range(2, 4))
    before = run.numbers()

    def refused(match: str, error: type[Exception] = ValueError, **given: Any) -> None:
        with pytest.raises(error, match=match) as caught:
            penstock.checkpoint.load(saved, **{**run.all, **given})
        assert "\n" not in str(caught.value)
        assert same(run.numbers(), before), "nothing was changed"

    more = torch.nn.ModuleDict({**run.model, "more": torch.nn.Linear(1, 1)})
    refused("the checkpoint has no 'more.bias'", model=more)
    refused("the model has no 'head.bias'", model=torch.nn.ModuleDict({"table": run.model["table"]}))
    other = torch.nn.ModuleDict({"table": run.model["table"], "head": torch.nn.Linear(WIDTH, 2)})
    refused(r"head.weight has shape \(1, 5\) there and \(2, 5\) in the model", model=other)
    refused(r"it has optimizers \['dense', 'rate', 'sparse'\], and \['0'\] were given", optimizers=run.sparse)
    wrong = {**run.all["optimizers"], "sparse": penstock.optim.SGD(run.model["table"])}
    refused("optimizer sparse was Adagrad and is SGD", optimizers=wrong)
    refused("a checkpoint of a list: give a torch.nn.Module", TypeError, model=[run.model])
    refused("a checkpoint of optimizer 0, a int: give optimizers", TypeError, optimizers=[3])
    (tmp_path / "o").mkdir()
    wide = Run(tmp_path / "o", rows=ROWS + 1)
    wide.model["head"].load_state_dict(run.model["head"].state_dict())
    with pytest.raises(ValueError, match=r"table 'table' was float32 \(60, 5\), and .* \(61, 5\): copy"):
        penstock.checkpoint.load(saved, **wide.all)
    with pytest.raises(ValueError, match="the model does not hold that table: give a model that does"):
        penstock.checkpoint.save(saved, model=run.model, optimizers=wide.sparse)
    with pytest.raises(ValueError, match="keep 0: give a number from 1"):
        penstock.checkpoint.save(saved, **run.all, keep=0)
    with pytest.raises(FileNotFoundError, match=r"load a checkpoint from .*none: it has none"):
        penstock.checkpoint.load(tmp_path / "none", **run.all)
    with pytest.raises(
        TypeError, match=r"holds objects that torch\.load does not take with weights_only=True"
    ):
        penstock.checkpoint.save(saved, **run.all, extra=object)
    with pytest.raises(NotADirectoryError, match=r"t\.npy: there is a file of that name: name a folder"):
        penstock.checkpoint.save(tmp_path / "t.npy", **run.all)
    assert penstock.checkpoint.numbers(saved) == [0]
    assert not list(saved.glob(".draft-*"))
    (saved / "checkpoint-00000000/manifest.json").write_text("{}")
    refused("it is no manifest of this version of Penstock")
    penstock.checkpoint.save(saved, **run.all)
    assert penstock.checkpoint.load(saved, **run.all) is None
    for one in (run, wide):
        one.close()


def files_of(checkpoint: Path) -> list[Path]:
    return sorted(checkpoint.iterdir())


def test_checksums_are_those_of_zlib(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.train(range(2))
    made = penstock.checkpoint.save(tmp_path / "saved", **run.all)
    manifest = json.loads((made / "manifest.json").read_text())
    saved = {part["file"]: part["written"] for part in manifest["parts"]} | {"state.pt": manifest["state"]}
    for name, written in saved.items():
        content = (made / name).read_bytes()
        assert written == {"nbytes": len(content), "crc32": zlib.crc32(content)}
    run.close()


@pytest.mark.parametrize("holes", [0, 1, 7, 4096, 1 << 20, (1 << 33) + 5])
def test_zeros_are_added_without_being_made(holes: int) -> None:
    zeros, taken = zlib.crc32(b"head"), 0
    while taken < holes and holes < 1 << 30:
        taken, zeros = taken + 1, zlib.crc32(b"\0", zeros)
    checksum = Checksum()
    checksum.add(b"head")
    for part in (holes // 3, holes - holes // 3):
        checksum.add_zeros(part)
    if holes < 1 << 30:
        assert checksum.value == zeros
    else:
        assert checksum.value == crc_of_zeros(zlib.crc32(b"head"), holes)


def crc_of_zeros(crc: int, count: int) -> int:
    """By the linearity of the register in its 32 bits: a table of what 2**k zero bytes make of each."""

    def one(register: int) -> int:
        return zlib.crc32(b"\0", register ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    register, columns = crc ^ 0xFFFFFFFF, [one(1 << bit) for bit in range(32)]

    def apply(columns: list[int], register: int) -> int:
        made = 0
        for bit, column in enumerate(columns):
            made ^= column if register >> bit & 1 else 0
        return made

    while count:
        register = apply(columns, register) if count & 1 else register
        columns, count = [apply(columns, column) for column in columns], count >> 1
    return register ^ 0xFFFFFFFF


def test_a_table_with_holes_has_the_checksum_of_its_bytes(tmp_path: Path) -> None:
    """Which are read of the table, of what another format has behind a head, and of the copy."""
    content = np.zeros((4096, 256), np.float32)
    content[[7, 900, 4000]] = 1.5
    how: dict[str, Any] = {"placement": "host", "writable": True, "device": "cpu"}
    for name, offset in [("t.npy", None), ("t.bin", 5000)]:
        path = tmp_path / name
        if offset is None:
            penstock.empty(path, content.shape, "float32", device="cpu").close()
            array = penstock.open(path, **how)
        else:
            path.touch()
            os.truncate(path, offset + content.nbytes)
            array = penstock.open(path, dtype="float32", shape=content.shape, offset=offset, **how)
        array[[7, 900, 4000]] = 1.5
        array.flush()
        copy, checksum, seen = tmp_path / f"{name}.copy", Checksum(), list[int]()
        copy_table(array, copy, seen.append, checksum)
        array.close()
        np.testing.assert_array_equal(np.load(copy), content)
        assert checksum.value == zlib.crc32(copy.read_bytes()) == checksum_of(copy)
        assert copy.stat().st_blocks * 512 < content.nbytes // 2, "holes stay holes"
        assert sum(seen) >= content.nbytes


def test_a_damaged_file_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    run, saved = Run(tmp_path, "SparseAdam"), tmp_path / "saved"
    run.train(range(2))
    made = penstock.checkpoint.save(saved, **run.all, extra=2)
    run.train(range(2, 4))
    before, draw = run.numbers(), random.Random(5)
    for path in files_of(made):
        content = path.read_bytes()
        places = [0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(8))]
        damaged = [
            content[:k] + bytes([content[k] ^ 1 << draw.randrange(8)]) + content[k + 1 :] for k in places
        ]
        if path.suffix == ".json":
            damaged = [content.replace(b"1", b"2", 1), content[:-9], b"[]", b"\0" * len(content)]
        for bad in [*damaged, content[:-1], content + b"\0", b""]:
            path.write_bytes(bad)
            with pytest.raises(ValueError, match=r"load another checkpoint, by its number$") as caught:
                penstock.checkpoint.load(saved, **run.all)
            check_sentence(caught.value, str(path), "load")
            assert same(run.numbers(), before)
        path.unlink()
        with pytest.raises(
            FileNotFoundError, match=r"it is missing, and the checkpoint is not whole"
        ) as lost:
            penstock.checkpoint.load(saved, **run.all)
        check_sentence(lost.value, str(path), "load")
        path.write_bytes(content)
    assert same(run.numbers(), before)
    assert penstock.checkpoint.load(saved, **run.all) == 2
    run.close()


def test_a_link_keeps_the_checksum_of_what_it_shares(tmp_path: Path) -> None:
    run, saved = Run(tmp_path), tmp_path / "saved"
    run.train(range(2))
    made = [penstock.checkpoint.save(saved, **run.all, checksums=k != 0) for k in range(3)]
    assert (made[0] / "0.npy").samefile(made[2] / "0.npy")
    sums = [json.loads((one / "manifest.json").read_text())["parts"][0]["written"]["crc32"] for one in made]
    assert sums == [None, *[zlib.crc32((made[0] / "0.npy").read_bytes())] * 2]
    run.train(range(2, 3))
    content = bytearray((made[0] / "0.npy").read_bytes())
    content[-1] ^= 1
    (made[0] / "0.npy").write_bytes(content)
    with pytest.raises(ValueError, match="its bytes have the CRC-32"):
        penstock.checkpoint.load(saved, **run.all)
    penstock.checkpoint.load(saved, **run.all, number=0)  # without checksums damage is not noticed
    assert run.numbers()[0].numpy().tobytes() == content[-ROWS * WIDTH * 4 :]
    run.close()


def test_a_folder_has_one_process_that_saves(tmp_path: Path) -> None:
    run = Run(tmp_path)
    penstock.checkpoint.save(tmp_path / "saved", **run.all)
    hold = (
        "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); "
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, tmp_path / "saved/.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(BlockingIOError, match="another process saves there"):
            penstock.checkpoint.save(tmp_path / "saved", **run.all)
        other.communicate(b"\n")
    penstock.checkpoint.save(tmp_path / "saved", **run.all)
    run.close()


def test_tables_in_raw_files_and_tied_ones_are_restored(tmp_path: Path) -> None:
    content = torch.randn(2, ROWS, WIDTH)
    (tmp_path / "two.bin").write_bytes(b"head!" + content.numpy().tobytes())
    how: dict[str, Any] = {"placement": "host", "writable": True, "device": "cpu", "dtype": "float32"}
    arrays = [
        penstock.open(tmp_path / "two.bin", shape=(ROWS, WIDTH), offset=5 + k * content[0].nbytes, **how)
        for k in range(2)
    ]
    modules = [penstock.nn.Embedding.from_pretrained(array, freeze=False) for array in [*arrays, arrays[0]]]
    model = torch.nn.ModuleList(modules)
    optimizer = penstock.optim.SparseAdam(model, lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        sum(module(torch.tensor([3, 59])).square().sum() for module in modules).backward()
        optimizer.step()

    step()
    made = penstock.checkpoint.save(tmp_path / "saved", model=model, optimizers=optimizer)
    assert len(list(made.glob("*.npy"))) == 6  # two tables with two moments each
    at_one = (tmp_path / "two.bin").read_bytes()
    step()
    for array in arrays:
        array.flush()
    assert (tmp_path / "two.bin").read_bytes() != at_one
    penstock.checkpoint.load(tmp_path / "saved", model=model, optimizers=optimizer)
    assert (tmp_path / "two.bin").read_bytes() == at_one
    step()
