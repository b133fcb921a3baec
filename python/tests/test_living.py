"""Objects that are listed while other threads make and drop them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest
from penstock.living import Living


class One:
    pass


@pytest.fixture
def hasty() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_it_lists_what_is_there() -> None:
    living: Living[One] = Living()
    kept, dropped = One(), One()
    living.add(kept)
    living.add(dropped)
    del dropped
    assert living.all() == [kept]


@pytest.mark.usefixtures("hasty")
def test_it_is_listed_while_it_grows_and_shrinks() -> None:
    living: Living[One] = Living()
    kept = [One() for _ in range(300)]
    for one in kept:
        living.add(one)
    is_over = threading.Event()

    def change() -> None:
        while not is_over.is_set():
            some = [One() for _ in range(20)]
            for one in some:
                living.add(one)

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert set(kept) <= set(living.all())
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
