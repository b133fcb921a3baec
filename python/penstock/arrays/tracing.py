"""Calls that are recorded, transformed or observed by torch instead of being made: they go through the
operators of Penstock, or are refused. Loaded where torch is.

What a native call reads by address a tracer does not see: it would record a constant, or memory that nothing
fills when the recorded function runs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_PRE_DISPATCH = torch._C.DispatchKey.PreDispatch


def sees_operators_alone() -> bool:
    """Whether a call goes to a tracer (torch.compile, torch.export, torch.jit.trace, make_fx), a transform
    (torch.func) or a dispatch mode, none of which sees what is not an operator."""
    return bool(
        torch.compiler.is_compiling()  # first: the compiler reads no further
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state() is not None
        or torch._C._are_functorch_transforms_active()
        or torch._C._dispatch_tls_is_dispatch_key_included(_PRE_DISPATCH)
    )


def is_symbol(given: Any) -> bool:
    """Whether this is a value of torch.fx.symbolic_trace, which has neither shape nor numbers."""
    return isinstance(given, torch.fx.Proxy)


def traces(rows: Any) -> bool:
    """Whether a call with these rows goes through an operator."""
    return sees_operators_alone() or type(rows) is not Tensor


def _recorder() -> str | None:
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace"
    if torch._C._dispatch_tls_is_dispatch_key_included(_PRE_DISPATCH):
        return "make_fx"
    if torch._C._len_torch_dispatch_stack():
        from torch.fx.experimental.proxy_tensor import get_proxy_mode

        return "make_fx" if get_proxy_mode() is not None else None
    return None


def check_not_recorded(what: str) -> None:
    """ValueError where a tracer records, which sees no native call. what: the operation and its object."""
    recorder = _recorder()
    if recorder is not None:
        raise ValueError(
            f"{what}: {recorder} records no such call: take rows by a tensor of integers (array[rows], "
            "array.gather(rows)), and leave everything else outside of what is traced"
        )


def check_has_numbers(given: Tensor, what: str) -> None:
    """ValueError for what a native call cannot read by its address, or must not while a tracer records.

    Args:
        given: the tensor.
        what: the operation and its object, for the message.
    """
    check_not_recorded(what)
    if type(given) is Tensor and not torch._C._are_functorch_transforms_active() and not given.is_meta:
        return
    without = (
        given.is_meta
        or torch._C._functorch.is_functorch_wrapped_tensor(given)
        or isinstance(given, torch._subclasses.FakeTensor)
    )
    if without:
        raise ValueError(
            f"{what}: a {type(given).__name__} of torch.vmap, of FakeTensorMode or on device meta has no "
            "numbers "
            "here: take rows by array[rows] or array.gather(rows), or give a tensor with memory"
        )
