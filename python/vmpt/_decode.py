# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Decoders and splitters of a stream."""
from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Iterator

from ._enums import Kind
from ._handle import CLOSED, Closing, Handle, Use, check
from ._structs import Owner, Packet, Slice, owner, slice_, time
from ._vmpt import ffi, lib

if TYPE_CHECKING:
    from .arrays import Array

_PACKETS = 256  # read at a time
_KINDS = {int(kind): kind for kind in Kind}


class Decoder(Closing):
    """The packets of a stream: iterate over them, or take many as an array."""

    base: int
    """What the offsets of the items of the last items() are relative to."""

    def __init__(self, trace: Handle, stream: Any, index: int, options: Any, clocks: Handle | None):
        parents = [trace, clocks] if clocks else [trace]
        self._handle = Handle(lib.vmpt_py_reader_close, *parents, keep=options)
        reader = ffi.new("struct vmpt_py_reader **")
        with Use(clocks or trace) as c:
            err = lib.vmpt_py_reader_open(reader, stream, c if clocks else ffi.NULL, index, options)
        self._handle.open(err, reader[0])
        self._timed = clocks is not None
        self._base = ffi.new("u64 *")
        self._ready: deque[Packet] = deque()  # read ahead by iteration
        self._packets = ffi.new("struct vmpt_packet[]", _PACKETS)
        self._times = ffi.new("struct vmpt_time[]", _PACKETS)
        self.base = 0

    def __iter__(self) -> Iterator[Packet]:
        return self

    def __next__(self) -> Packet:
        while not self._handle.closed:
            try:
                return self._ready.popleft()
            except IndexError:
                self._read()
        raise ValueError(CLOSED)

    def _read(self) -> None:
        """Read the next packets, or raise StopIteration."""
        packets = self._packets
        with Use(self._handle) as reader:
            count = check(lib.vmpt_py_packets(reader, _PACKETS, packets, self._times))
            last: Owner | None = None
            key = None
            for i in range(count):
                p = packets[i]
                o = p.owner
                if last is None or key != (o.vmcs, o.kind, o.sure, o.concealed):
                    key, last = (o.vmcs, o.kind, o.sure, o.concealed), owner(o)
                kind = _KINDS[p.kind]
                lost = kind is Kind.LOSS
                self._ready.append(Packet(
                    p.offset, p.payload if lost else p.size, kind, 0 if lost else p.payload, p.aux, last,
                    time(self._times[i]) if self._timed else None))
        if not count:
            raise StopIteration

    def items(self, out: Array, *, owners: Array | None = None, times: Array | None = None,
              offsets: Array | None = None) -> Array:
        """Fill @out with the next items, and return the part of it that is filled.

        The arrays are the caller's and are used again for each call; nothing is allocated. @out has the
        dtype arrays.ITEM. If given, @owners (arrays.OWNER), @times (arrays.TIME; the decoder needs
        clocks) and @offsets (arrays.OFFSET), all as long as @out, get the owner, the time and the offset
        in the stream of each item. The offset in an item is relative to .base.

        An empty result is the end. One shorter than @out is not.
        """
        from . import arrays
        if self._ready:
            raise ValueError("packets were iterated over: items() would not see those read ahead")
        if times is not None and not self._timed:
            raise ValueError("times need clocks: Stream.decode(clocks)")
        n = len(out) if hasattr(out, "__len__") else 0
        items = arrays.target(out, arrays.ITEM, "struct vmpt_item")
        own = when = where = ffi.NULL
        if owners is not None:
            own = arrays.target(owners, arrays.OWNER, "struct vmpt_owner", n)
        if times is not None:
            when = arrays.target(times, arrays.TIME, "struct vmpt_time", n)
        if offsets is not None:
            where = arrays.target(offsets, arrays.OFFSET, "uint64_t", n)
        with Use(self._handle) as reader:
            count = check(lib.vmpt_py_items(reader, n, items, own, when, where, self._base))
            if count:
                self.base = self._base[0]
        return out[:count]


class Splitter(Closing):
    """The slices of a stream, in order and without holes: iterate over them, or fill arrays."""

    def __init__(self, trace: Handle, stream: Any, options: Any):
        self._handle = Handle(lib.vmpt_splitter_close, trace, keep=options)
        split = ffi.new("struct vmpt_splitter **")
        self._handle.open(lib.vmpt_splitter_open(split, stream, options), split[0])
        self._slice = ffi.new("struct vmpt_slice *")

    def __iter__(self) -> Iterator[Slice]:
        return self

    def __next__(self) -> Slice:
        with Use(self._handle) as split:
            if not check(lib.vmpt_split_next(split, self._slice)):
                raise StopIteration
            return slice_(self._slice)

    def fill(self, out: Array) -> Array:
        """Fill @out, whose dtype is arrays.SLICE, and return the part that is filled: empty at the end."""
        from . import arrays
        slices = arrays.target(out, arrays.SLICE, "struct vmpt_slice")
        with Use(self._handle) as split:
            count = check(lib.vmpt_py_slices(split, len(out), slices))
        return out[:count]
