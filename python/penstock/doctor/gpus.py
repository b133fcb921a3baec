"""GPUs, their driver, and what this installation can do with them."""

from __future__ import annotations

from penstock.doctor.rows import REINSTALL, Row, version_of
from penstock.machine import Driver, DriverMissing, Machine
from penstock.sizes import format_bytes

OLDEST_GPU = (8, 0)
DRIVER_WITH_SM_SHARES = (12, 5)  # streams of green contexts


def probe_gpu(machine: Machine) -> Row:
    gives = "kernels on the CUDA executor"
    try:
        driver = machine.driver()
    except DriverMissing as reason:
        remedy = "install NVIDIA's driver where there is a GPU; all works on the CPU executor meanwhile"
        return Row("GPU", "missing", str(reason), gives, remedy)
    if not driver.gpus:
        return Row(
            "GPU", "missing", f"driver for CUDA {driver.version}, no GPU", gives, "give the process a GPU"
        )
    texts = [
        f"{g.name} (sm_{g.capability[0]}{g.capability[1]}, {format_bytes(g.memory_bytes)})"
        for g in driver.gpus
    ]
    found = f"{', '.join(texts)}; driver for CUDA {driver.version}"
    nodes = sorted({g.numa_node for g in driver.gpus if g.numa_node >= 0})
    if nodes:
        found += f"; pinned memory from NUMA node {', '.join(map(str, nodes))}, the GPU's"
    if all(g.capability < OLDEST_GPU for g in driver.gpus):
        return Row("GPU", "limited", found, gives, "Penstock needs compute capability 8.0 (A100) or newer")
    return Row("GPU", "ok", found, gives)


def probe_build(machine: Machine) -> Row:
    gives = "the CUDA executor in this installation"
    try:
        built = machine.built_cuda()
    except ImportError as problem:
        return Row("CUDA build", "missing", f"no compiled part: {problem}", gives, REINSTALL)
    if not built:
        remedy = f"install the CUDA toolkit (nvcc) and {REINSTALL}"
        return Row("CUDA build", "missing", "built without CUDA", gives, remedy)
    try:
        driver = machine.driver()
    except DriverMissing:
        return Row("CUDA build", "ok", f"CUDA {built}, unused without a driver", gives)
    if version_of(driver.version)[:1] < version_of(built)[:1]:
        remedy = f"update the driver to one for CUDA {built}"
        return Row(
            "CUDA build", "limited", f"CUDA {built}, the driver is for {driver.version}", gives, remedy
        )
    return Row("CUDA build", "ok", f"CUDA {built}", gives)


def probe_sm_shares(machine: Machine) -> Row:
    gives = "executors bounded to some SMs of a GPU, so that others have the rest"
    try:
        driver = machine.driver()
    except DriverMissing as reason:
        return Row(
            "SM shares", "missing", str(reason), gives, "needs a GPU; a CPU executor takes so many threads"
        )
    gpus = [g for g in driver.gpus if g.capability >= OLDEST_GPU]
    if not gpus:
        return Row("SM shares", "missing", "no GPU of compute capability 8.0 or newer", gives, "needs one")
    if version_of(driver.version) < DRIVER_WITH_SM_SHARES:
        remedy = "update the driver to one for CUDA 12.5 or newer; until then an executor takes all SMs"
        return Row("SM shares", "missing", f"driver for CUDA {driver.version}", gives, remedy)
    texts = []
    for gpu in gpus:
        least, step = (8, 8) if gpu.capability >= (9, 0) else (4, 2)
        texts.append(f"{gpu.multiprocessors} SMs, from {least} on by {step}")
    return Row("SM shares", "ok", "; ".join(texts), gives)


def probe_peers(machine: Machine) -> Row:
    gives = "modelled drives on a second GPU; arrays spread over the memory of several"
    try:
        driver = machine.driver()
    except DriverMissing:
        driver = Driver("")
    count = len(driver.gpus)
    if count < 2:
        remedy = "needs two GPUs, best with NVLink"
        return Row("peer-to-peer", "missing", f"{count} GPU{'' if count == 1 else 's'}", gives, remedy)
    pairs = count * (count - 1)
    found = f"{len(driver.peers)} of {pairs} ordered pairs of GPUs reach each other"
    if len(driver.peers) == pairs:
        return Row("peer-to-peer", "ok", found, gives)
    remedy = "GPUs behind one PCIe switch or NVLink reach each other; turn off ACS where it is safe"
    return Row("peer-to-peer", "limited" if driver.peers else "missing", found, gives, remedy)
