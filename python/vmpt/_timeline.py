# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What ran when."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from ._enums import Edge
from ._handle import Closing, Handle, Use, check
from ._structs import Span, span
from ._vmpt import ffi, lib

if TYPE_CHECKING:
    from .arrays import Array


class Timeline(Closing):
    """The spans of all CPUs by start: iterate over them, or fill arrays. docs/timeline.md"""

    def __init__(self, trace: Handle, clocks: Handle, streams: Any, count: int, options: Any, events: Any,
                 event_count: int):
        opts = ffi.new("struct vmpt_timeline_options *", {
            "decode": options[0], "events": events, "event_count": event_count})
        self._handle = Handle(lib.vmpt_timeline_close, trace, clocks, keep=streams)
        timeline = ffi.new("struct vmpt_timeline **")
        with Use(clocks) as c:
            err = lib.vmpt_timeline_open_abi(timeline, c, streams, count, opts, lib.VMPT_TIMELINE_ABI)
        self._handle.open(err, timeline[0])
        self._span = ffi.new("struct vmpt_span *")

    def __iter__(self) -> Iterator[Span]:
        return self

    def __next__(self) -> Span:
        with Use(self._handle) as timeline:
            if not check(lib.vmpt_timeline_next(timeline, self._span)):
                raise StopIteration
            return span(self._span)

    def exits(self) -> Iterator[Span]:
        """The remaining guests' spans that ended by a VM exit: their .exit has its reason."""
        return (s for s in self if s.ended == Edge.EXIT and s.exit)

    def fill(self, out: Array) -> Array:
        """Fill @out, whose dtype is arrays.SPAN, and return the part that is filled: empty at the end."""
        from . import arrays
        spans = arrays.target(out, arrays.SPAN, "struct vmpt_span")
        with Use(self._handle) as timeline:
            count = check(lib.vmpt_py_spans(timeline, len(out), spans))
        return out[:count]
