"""Registers of kernels linked with the library's cold functions, beside the same over plain arrays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from machine_code import HERE, ROOT, Resources, functions_of, missing_for_cuda, nvcc, nvlink, resources_of

MISSING = missing_for_cuda()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

MOST_REGISTERS = 40
KERNELS = ("gather", "gather32", "sum")

Kernels = dict[str, Resources]


def cold_cap() -> str:
    """The cap that the library is built with."""
    text = (ROOT / "cmake/penstock_cuda.cmake").read_text()
    found = re.search(r"set\(PENSTOCK_COLD_REGISTERS (\d+) CACHE", text)
    assert found
    return found.group(1)


def documented_cost() -> int:
    found = re.search(r"adds at most (\d+) registers", (ROOT / "docs/HIT_PATH.md").read_text())
    assert found, "docs/HIT_PATH.md says how many registers a[i] adds at most"
    return int(found.group(1))


@pytest.fixture(scope="module", params=["sm_80", "sm_90"])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def parts(arch: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp(arch)
    kernels, cold = folder / "kernels.cubin", folder / "cold.cubin"
    nvcc(kernels, arch, "-rdc=true", "-cubin", source=HERE / "linked.cu")
    flags = ("-rdc=true", "-cubin", f"-maxrregcount={cold_cap()}")
    nvcc(cold, arch, *flags, source=ROOT / "src/device/read_slowly.cu")
    return kernels, cold


@pytest.fixture(scope="module")
def linked(arch: str, parts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    target = tmp_path_factory.mktemp(arch) / "linked.cubin"
    nvlink(target, arch, *parts)
    return resources_of(target)


def test_a_linked_kernel_stays_within_its_registers(arch: str, linked: Kernels, measured: list[str]) -> None:
    for name in KERNELS:
        ours, plain = linked[f"{name}_view"], linked[f"{name}_plain"]
        measured.append(f"{arch} {name}, linked: {ours.registers} registers, plain {plain.registers}")
        assert ours.registers <= MOST_REGISTERS, name


def test_an_array_read_adds_no_more_registers_than_documented(linked: Kernels) -> None:
    added = [linked[f"{name}_view"].registers - linked[f"{name}_plain"].registers for name in KERNELS]
    assert max(added) <= documented_cost()


def test_only_cold_functions_have_a_stack(parts: tuple[Path, Path]) -> None:
    kernels = resources_of(parts[0])
    assert [kernels[f"{name}_view"].stack_bytes for name in KERNELS] == [0] * len(KERNELS)


def test_nothing_is_spilled_between_the_loads_that_copy_a_line(parts: tuple[Path, Path]) -> None:
    """What is spilled between them waits for the load before it: a round trip to the host for each."""
    functions = functions_of(parts[1])
    copies = {name: copy for name, copy in functions.items() if "copy_rounds_to_frame" in name}
    assert len(copies) == 2, "of a warp, and of a lone thread"
    for name, copy in copies.items():
        order = [i.mnemonic.split(".")[0] for i in copy.instructions]
        loads = [at for at, what in enumerate(order) if what == "LDG"]
        assert len(loads) == 4, name
        assert not {"STL", "STG"} & set(order[loads[0] : loads[-1]]), name
