"""Tables in raw files whose rows lie anywhere: trained as those of torch, and as one that is aligned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from places import check_same, small_cache
from trained_tables import weights_of

torch = pytest.importorskip("torch", reason="torch is not installed")
import penstock.nn  # noqa: E402
import penstock.optim  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch's own tables

ROWS, BATCHES = 150, 6
WHERE = ["host", "storage", "direct", "memory"]
KINDS = ["SGD", "Adagrad", "RowWiseAdagrad"]
# Bytes of a row: 12, 20, 40 and 14, of numbers of 4, 4, 8 and 2.
TABLES = [("float32", 3), ("float32", 5), ("float64", 5), ("bfloat16", 7)]


@pytest.fixture
def deterministic() -> Any:
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def content_of(dtype: str, width: int) -> Any:
    generator = torch.Generator().manual_seed(width)
    return torch.randn(ROWS, width, generator=generator, dtype=torch.float64).to(getattr(torch, dtype))


def raw_table(path: Path, content: Any, offset: int, where: str, device: str) -> penstock.Array:
    """The content behind so many bytes that are none of it."""
    whole = bytearray(b"?" * offset + content.view(torch.uint8).numpy().tobytes())
    dtype = str(content.dtype).removeprefix("torch.")
    if where == "memory":
        return penstock.from_tensor(np.ndarray(tuple(content.shape), dtype, whole, offset), device=device)
    path.write_bytes(whole + bytes(-len(whole) % 4096))  # direct writes are of whole blocks
    placement = "storage" if where == "direct" else where
    how: dict[str, Any] = {
        "writable": True,
        "device": device,
        "placement": placement,
        **small_cache(placement),
    }
    how |= {"direct": True} if where == "direct" else {}
    return penstock.open(path, dtype=dtype, shape=tuple(content.shape), offset=offset, **how)


def skip_what_cannot_be(where: str, dtype: str, device: str) -> None:
    if device == "cuda" and where == "host":
        pytest.skip("a GPU cannot store into a mapped file")
    if where == "memory" and dtype == "bfloat16":
        pytest.skip("NumPy has no bfloat16, and torch no tensor that is not aligned")


def batch(seed: int) -> Any:
    drawn = torch.rand((40, 4), generator=torch.Generator().manual_seed(seed))
    return (drawn**3 * ROWS).long()  # few rows often


def train(table: Any, optimizer: Any) -> None:
    for k in range(BATCHES):
        optimizer.zero_grad()
        (table(batch(k)).double() - 1).square().mean().backward()
        optimizer.step()


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "width"), TABLES)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("offset", [3, 4, 20])
def test_they_are_trained_bit_for_bit_as_aligned_ones(
    tmp_path: Path, device: str, kind: str, dtype: str, width: int, where: str, offset: int
) -> None:
    skip_what_cannot_be(where, dtype, device)
    content, trained = content_of(dtype, width), []
    for place in (raw_table(tmp_path / "table.bin", content, offset, where, device),
                  raw_table(tmp_path / "aligned.bin", content, 0, "storage", device)):  # fmt: skip
        with place as array:
            table = penstock.nn.Embedding.from_pretrained(array, freeze=False)
            train(table, getattr(penstock.optim, kind)(table, lr=0.1))
            trained.append(weights_of(array))
    assert not torch.equal(trained[0], content)
    assert torch.equal(*trained)
    if where != "memory":
        stored = (tmp_path / "table.bin").read_bytes().rstrip(b"\0")
        assert stored == (b"?" * offset + trained[0].view(torch.uint8).numpy().tobytes()).rstrip(b"\0")


@pytest.mark.parametrize("kind", ["SGD", "Adagrad"])
@pytest.mark.parametrize("where", WHERE)
def test_they_are_trained_as_in_torch(tmp_path: Path, device: str, kind: str, where: str) -> None:
    skip_what_cannot_be(where, "float32", device)
    content = content_of("float32", 3)
    theirs = torch.nn.Embedding(ROWS, 3, sparse=True, _weight=content.clone())
    reference = getattr(torch.optim, kind)(theirs.parameters(), lr=0.1)
    with raw_table(tmp_path / "table.bin", content, 7, where, device) as array:
        ours: Any = penstock.nn.Embedding.from_pretrained(array, freeze=False)
        assert torch.equal(ours(batch(0)).cpu(), theirs(batch(0)))
        for table in (ours, theirs):
            (table(batch(0)).double() - 1).square().mean().backward()
        found, wanted = ours.gradient().cpu(), theirs.weight.grad.coalesce()
        assert torch.equal(found.indices(), wanted.indices())
        check_same(found.values(), wanted.values(), array.on_gpu)
        train(ours, getattr(penstock.optim, kind)(ours, lr=0.1))
        train(theirs, reference)
        if (
            kind == "SGD"
        ):  # torch adds as often as a row was asked for, and rows that are not aligned are summed
            torch.testing.assert_close(weights_of(array), theirs.weight.detach(), rtol=1e-5, atol=1e-6)
        else:
            check_same(weights_of(array), theirs.weight.detach(), array.on_gpu)


def test_tables_of_one_raw_file_have_sums_of_their_own(tmp_path: Path) -> None:
    first, second = content_of("float32", 3), content_of("float32", 3) + 1
    path = tmp_path / "tables.bin"
    path.write_bytes(first.numpy().tobytes() + second.numpy().tobytes())
    how: dict[str, Any] = {"placement": "host", "writable": True, "device": "cpu", "dtype": "float32"}
    tables, alone = [], []
    for offset, content in ((0, first), (first.nbytes, second)):
        array = penstock.open(path, shape=(ROWS, 3), offset=offset, **how)
        in_memory = penstock.from_tensor(content, device="cpu")
        tables.append(penstock.nn.Embedding.from_pretrained(array, freeze=False))
        alone.append(penstock.nn.Embedding.from_pretrained(in_memory, freeze=False))
    optimizer = penstock.optim.Adagrad(tables, lr=0.1)
    for k in range(BATCHES):
        optimizer.zero_grad()
        sum((table(batch(k)).double() - 1).square().mean() for table in tables).backward()
        optimizer.step()
    state = optimizer.state_dict()["tables"]
    assert state[0]["sums"]["path"] != state[1]["sums"]["path"]
    for table, other in zip(tables, alone, strict=True):
        train(other, penstock.optim.Adagrad(other, lr=0.1))
        check_same(weights_of(table.array), weights_of(other.array), on_gpu=False)


def test_a_tensor_over_numbers_that_are_not_aligned_is_for_the_cpu(tmp_path: Path, device: str) -> None:
    content = content_of("float32", 3)
    (tmp_path / "table.bin").write_bytes(b"abc" + content.numpy().tobytes())
    how: dict[str, Any] = {"dtype": "float32", "shape": (ROWS, 3), "offset": 3, "placement": "host"}
    with penstock.open(tmp_path / "table.bin", device=device, **how) as array:
        if device == "cpu":
            assert torch.equal(array.tensor(), content)
        else:
            with pytest.raises(ValueError, match="not aligned to their size"):
                array.tensor()
            assert torch.equal(array[:].cpu(), content)
