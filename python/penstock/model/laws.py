"""The papers' equations. Rates are per second, bandwidths bytes per second, times seconds."""

from __future__ import annotations

from penstock.model.hardware import Gpu

WARP = 32


def in_flight(rate: float, latency: float) -> float:
    """Requests on their way that a rate needs: Little's law (BaM dissertation, 4.5)."""
    return rate * latency


def rate_of(requests: float, latency: float) -> float:
    """The rate that so many requests on their way allow."""
    return requests / latency


def header_share(payload_bytes: int, header_bytes: int) -> float:
    """Of a link's bytes (zero-copy dissertation, 2.3.3)."""
    return header_bytes / (payload_bytes + header_bytes)


def lines_by_elements(gpu: Gpu, element_bytes: int, line_bytes: int) -> float:
    """Lines that a GPU full of threads asks for where neighbours read neighbours (BaM dissertation, 6.1)."""
    return gpu.sms * gpu.warps_per_sm * WARP * element_bytes / line_bytes


def lines_by_warps(gpu: Gpu, lanes: int = WARP) -> float:
    """The same where each warp, or part of a warp, has a line of its own (BaM dissertation, 6.2 and 6.3)."""
    return gpu.sms * gpu.warps_per_sm * WARP / lanes


def multiprocessors_for(requests: float, gpu: Gpu) -> float:
    """Multiprocessors whose warps have so many requests on their way (zero-copy dissertation, 3.3.2)."""
    return requests / gpu.warps_per_sm


def least_cache_bytes(gpu: Gpu, line_bytes: int) -> int:
    """A line for each warp that can run: what tiles need (BaM dissertation, 7.1.7)."""
    return gpu.sms * gpu.warps_per_sm * line_bytes


def roofline(lines: float, line_bytes: int, latency: float, bandwidth: float) -> float:
    """Bandwidth that so many lines on their way reach: bound by latency, then by what serves them (6.1.1)."""
    return min(lines * line_bytes / latency, bandwidth)


def ridge(line_bytes: int, latency: float, bandwidth: float) -> float:
    """Lines on their way from which on bandwidth is the bound."""
    return bandwidth * latency / line_bytes
