# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Traces and their streams."""
from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Iterator, Protocol, Union

from ._clock import Clocks, VmNames
from ._decode import Decoder, Splitter
from ._enums import CycleAcc, ErrorCode, ExtractClock, FlowReturns, GapFlags, GuestOnly, Isa, Kind, Vms
from ._flow import Flow
from ._handle import Closing, Error, Handle, Use, check, text_of
from ._image import Code
from ._structs import (
    Event, Extent, Extracted, Gap, Given, Owner, Packet, Rates, Slice, TraceInfo, VmsFound,
    event, extracted, owner, slice_, trace_info,
)
from ._timeline import Timeline
from ._vmpt import ffi, lib

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_EVENTS = 256  # read at a time


class Writer(Protocol):
    """What extract() writes to: a file that was opened with "wb" is one."""

    def write(self, data: bytes, /) -> object:
        """Append @data."""


class _Extract:
    """Calls from vmpt_extract()."""

    def __init__(self, sink: Callable[[int, Owner], Writer | None], wanted: Callable[[Slice], object] | None,
                 report: Callable[[Extracted], object] | None):
        self.sink = sink
        self.wanted = wanted
        self.report = report
        self.owners: list[Owner] = []
        self.writers: list[Writer | None] = []
        self.error: BaseException | None = None

    def failed(self, error: BaseException) -> int:
        self.error = error
        return -int(ErrorCode.INVAL)


@ffi.def_extern()  # type: ignore[misc]
def vmpt_py_stream(opaque: Any, number: int, c: Any) -> int:
    self: _Extract = ffi.from_handle(opaque)
    try:
        self.owners.append(owner(c))
        self.writers.append(self.sink(number, self.owners[-1]))
    except BaseException as error:  # it must not be lost in C
        return self.failed(error)
    return 0


@ffi.def_extern()  # type: ignore[misc]
def vmpt_py_write(opaque: Any, number: int, data: Any, size: int) -> int:
    self: _Extract = ffi.from_handle(opaque)
    try:
        writer = self.writers[number]
        if writer is not None:
            writer.write(bytes(ffi.buffer(data, size)))
    except BaseException as error:
        return self.failed(error)
    return 0


@ffi.def_extern()  # type: ignore[misc]
def vmpt_py_slice(opaque: Any, c: Any) -> int:
    self: _Extract = ffi.from_handle(opaque)
    try:
        if self.report:
            self.report(extracted(c))
    except BaseException as error:
        return self.failed(error)
    return 0


@ffi.def_extern()  # type: ignore[misc]
def vmpt_py_wanted(opaque: Any, c: Any) -> int:
    self: _Extract = ffi.from_handle(opaque)
    try:
        return int(not self.wanted or bool(self.wanted(slice_(c))))
    except BaseException as error:
        return self.failed(error)


class Stream:
    """One CPU's or thread's trace. Valid as long as its trace is open."""

    def __init__(self, trace: Trace, index: int, c: Any):
        self._trace = trace
        self._c = c
        self.index = index
        self.size: int = c.size
        self.cpu: int | None = c.cpu if c.cpu >= 0 else None
        self.tid: int | None = c.tid if c.tid >= 0 else None
        self.isa = Isa(c.isa)
        self.gaps = tuple(Gap(c.gaps[i].offset, GapFlags(c.gaps[i].flags)) for i in range(c.gap_count))
        self.extents = tuple(Extent(c.extents[i].offset, c.extents[i].size, c.extents[i].file_offset)
                             for i in range(c.extent_count))

    def __repr__(self) -> str:
        who = f", cpu={self.cpu}" if self.cpu is not None else ""
        who += f", tid={self.tid}" if self.tid is not None else ""
        return f"<vmpt.Stream {self.index}: {self.isa.name}, {self.size} bytes{who}>"

    def decode(self, clocks: Clocks | None = None) -> Decoder:
        """Open a decoder: packets, one by one or as arrays. With @clocks they have their times."""
        return Decoder(self._trace._handle, self._c, self.index, self._trace._options,
                       self._trace._own(clocks) if clocks is not None else None)

    def slices(self) -> Splitter:
        """Open a splitter: who owns which bytes."""
        return Splitter(self._trace._handle, self._c, self._trace._options)

    def read(self, offset: int, size: int) -> bytes:
        """A copy of @size bytes at @offset; fewer at the end."""
        if offset < 0 or size < 0:
            raise ValueError("negative offset or size")
        with Use(self._trace._handle):
            offset = min(offset, self.size)
            return bytes(ffi.buffer(self._c.data + offset, min(size, self.size - offset)))

    def file_offset(self, offset: int) -> int:
        """Where a byte of the stream is in the file."""
        with Use(self._trace._handle):
            value: int = lib.vmpt_stream_file_offset(self._c, offset)
        return value

    def text(self, packet: Packet) -> str:
        """A packet of this stream as vmpt dump prints it; a BIP without its meaning in its block."""
        c = ffi.new("struct vmpt_packet *", {
            "offset": packet.offset, "kind": packet.kind, "aux": packet.aux, "payload": packet.payload,
            "size": 0 if packet.kind == Kind.LOSS else packet.size})
        if packet.kind == Kind.LOSS:
            c.payload = packet.size
        buf = ffi.new("char[256]")
        with Use(self._trace._handle):
            lib.vmpt_py_text(self._c, c, buf, len(buf))
        text: bytes = ffi.string(buf)
        return text.decode()

    def flow(self, code: Code | None = None, *, blocks: bool = True, by_packet: bool = False,
             hash: bool = False, returns: FlowReturns = FlowReturns.AUTO, no_tnt: bool = False,
             memory: int = 0, no_packet_max: int = 0) -> Flow:
        """What was executed, by the images of @code: <vmpt/flow.h>, docs/flow.md. For Intel PT only.

        Without @blocks there are only gaps and totals, which is faster. @by_packet: a batch has one
        packet's blocks; @hash: Flow.hash is made; @no_tnt: IA32_RTIT_CTL.DisTNT was 1. @memory: bytes
        for tables, @no_packet_max: instructions in a row without a packet; 0: by default.
        """
        options = ffi.new("struct vmpt_flow_options *", {
            "trace": self._trace._options, "blocks": blocks, "by_packet": by_packet, "hash": hash,
            "returns": FlowReturns(returns), "no_tnt": no_tnt, "memory": memory,
            "no_packet_max": no_packet_max})
        return Flow(self._trace._handle, self._c, code, options)

    def extract(self, sink: Callable[[int, Owner], Writer | None], *, clocks: Clocks | None = None,
                clock: ExtractClock = ExtractClock.AS_IS, conceal: bool = False,
                wanted: Callable[[Slice], object] | None = None,
                report: Callable[[Extracted], object] | None = None) -> list[Owner]:
        """Take each owner's stream out, as a trace of its own: <vmpt/extract.h>.

        @sink is called with the number and the owner of each new stream, and returns what its bytes
        are written to, or None. @clock: the clock of TSC packets; all but AS_IS need @clocks.
        @conceal hides VMX. Slices for which @wanted returns something false are left out. @report is
        called for each slice with what became of it. Returns the streams' owners. An exception of one
        of these ends it and is raised.
        """
        calls = _Extract(sink, wanted, report)
        handle = ffi.new_handle(calls)
        options = ffi.new("struct vmpt_extract_options *", {
            "decode": self._trace._options[0], "clock": clock, "conceal": conceal,
            "clock_stream": self.index})
        if wanted:
            options.wanted = lib.vmpt_py_wanted
            options.wanted_opaque = handle
        ops = ffi.new("struct vmpt_extract_ops *", {
            "stream": lib.vmpt_py_stream, "write": lib.vmpt_py_write, "slice": lib.vmpt_py_slice})
        if clock != ExtractClock.AS_IS and not clocks:
            raise ValueError("times on another clock need clocks")
        with Use(self._trace._handle), Use(self._trace._own(clocks) if clocks else self._trace._handle) as c:
            options.clocks = c if clocks else ffi.NULL
            err = lib.vmpt_extract_abi(self._c, options, ops, handle, lib.VMPT_EXTRACT_ABI)
        if calls.error:
            raise calls.error
        check(err)
        return calls.owners


class Trace(Closing):
    """A trace: streams of the CPUs (or threads). vmpt.open() opens one."""

    streams: tuple[Stream, ...]
    info: TraceInfo
    warning: str
    """What could not be read, if info.incomplete; else empty."""

    def __init__(self, *paths: Path | tuple[Path, int], isa: Isa | None = None, threads: int = 1,
                 headless: bool = False, guest_only: GuestOnly = GuestOnly.AUTO,
                 host_only: bool | None = False, cycle_acc: CycleAcc = CycleAcc.AUTO):
        """See vmpt.open()."""
        if not paths:
            raise ValueError("no file to open")
        self._handle = Handle(lib.vmpt_trace_close, shared=True)
        # <vmpt/decode.h>: owned by what it was given to for each call only, but small.
        self._options = ffi.new("struct vmpt_options *", {
            "threads": threads, "headless": headless, "guest_only": GuestOnly(guest_only),
            "host_only": bool(host_only), "cycle_acc": CycleAcc(cycle_acc)})
        self.warning = ""
        self._open(paths)
        with Use(self._handle) as trace:
            if isa is not None:
                try:
                    check(lib.vmpt_trace_set_isa(trace, Isa(isa)))
                except Error:
                    self._handle.close()
                    raise
            self.info = trace_info(lib.vmpt_trace_info(trace))
            self._c = [lib.vmpt_trace_stream(trace, i) for i in range(lib.vmpt_trace_streams(trace))]
        self._array = ffi.new("struct vmpt_stream *[]", self._c)
        self.streams = tuple(Stream(self, i, c) for i, c in enumerate(self._c))
        if host_only is None and self.info.isa == Isa.PT and guest_only != GuestOnly.YES:
            self._options.host_only = self.find_vms().vms in (Vms.UNSAID, Vms.NONE)

    def _open(self, paths: Iterable[Path | tuple[Path, int]]) -> None:
        diag = ffi.new("struct vmpt_diag *")
        out = ffi.new("struct vmpt_trace **")
        for path in paths:
            if isinstance(path, tuple) and len(path) != 2:
                raise TypeError("a file is a path, or a tuple of path and CPU")
            path, cpu = path if isinstance(path, tuple) else (path, -1)
            name = os.fsencode(path)
            if b"\0" in name:
                raise ValueError("a null byte in the path")
            if not out[0]:
                err = lib.vmpt_trace_open_abi(out, name, cpu, diag, lib.VMPT_DECODE_ABI)
            else:
                err = lib.vmpt_trace_add_raw(out[0], name, cpu, diag)
            text = ffi.string(diag.text).decode(errors="backslashreplace")
            if err:
                self._handle.close()
                raise Error(ErrorCode(-err), text or text_of(err), diag.offset, os.fsdecode(path))
            self.warning = self.warning or text
            self._handle.open(0, out[0])

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        n = len(self.streams)
        return f"<vmpt.Trace: {self.info.format.name}, {n} stream{'s' * (n != 1)}{closed}>"

    def _own(self, clocks: Clocks) -> Handle:
        if not isinstance(clocks, Clocks):
            raise TypeError(f"clocks are needed, not {type(clocks).__name__}: Trace.clocks()")
        if clocks._trace is not self._handle:
            raise ValueError("the clocks are of another trace")
        return clocks._handle

    def find_vms(self) -> VmsFound:
        """Look for VMs in all streams; reads as far as the first packet of one."""
        found = ffi.new("struct vmpt_vms_found *")
        with Use(self._handle):
            check(lib.vmpt_vms_find(self._array, len(self._c), self._options, found))
        return VmsFound(Vms(found.vms), found.stream, found.offset, Kind(found.kind))

    def clocks(self, rates: Rates | None = None, given: Iterable[Given] = (),
               near_tsc: int | None = None) -> Clocks:
        """Read the whole trace once and find its clocks: needed for times.

        @rates, @given: what is known from elsewhere. @near_tsc: about the host's TSC, for bits 63:56,
        which packets do not have. Unless given, rates and near_tsc are those of the perf.data.
        """
        if not self.streams:
            raise ValueError("the trace has no streams")
        if near_tsc is None:
            near_tsc = next((e.tsc for e in self.events() if e.tsc), 0)
        with Use(self._handle) as trace:
            info = lib.vmpt_trace_info(trace)
            return Clocks(self._handle, self._array, len(self._c), self._options, info, rates, given, near_tsc)

    def timeline(self, clocks: Clocks | None = None) -> Timeline:
        """Open the time line: what ran when, on all CPUs. Without @clocks it finds its own."""
        own = self.clocks() if clocks is None else clocks
        with Use(self._handle) as trace:
            events, count = self._events(trace)
            return Timeline(self._handle, self._own(own), self._array, len(self._c), self._options, events, count)

    def _events(self, trace: Any) -> tuple[Any, int]:
        events = ffi.new("struct vmpt_event **")
        count = ffi.new("size_t *")
        check(lib.vmpt_trace_events(trace, events, count))
        return events[0], count[0]

    def events(self) -> Iterator[Event]:
        """perf's events by time: context switches, KVM's entries and exits. A raw trace has none."""
        at, count = 0, 1
        while at < count:
            with Use(self._handle) as trace:
                events, count = self._events(trace)
                part = [event(events[i]) for i in range(at, min(at + _EVENTS, count))]
            yield from part
            at += _EVENTS

    def names(self, clocks: Clocks) -> VmNames:
        """The names of the VMCSs, by the events; reads the whole trace."""
        cpus = [stream.cpu for stream in self.streams]
        with Use(self._handle) as trace:
            events, count = self._events(trace)
            return VmNames(self._handle, self._own(clocks), cpus, self._options, events, count)

    def perf_time(self, tsc: int) -> int:
        """perf's time in ns of a TSC value; info.has_time_conv must be set."""
        return self._convert(lib.vmpt_tsc_to_perf_time, tsc)

    def tsc(self, perf_time: int) -> int:
        """The host's TSC at a time of perf, in ns."""
        return self._convert(lib.vmpt_perf_time_to_tsc, perf_time)

    def _convert(self, function: Callable[[Any, int], int], value: int) -> int:
        if not self.info.has_time_conv:
            raise ValueError("the trace has no time conversion of perf")
        with Use(self._handle) as trace:
            return function(lib.vmpt_trace_info(trace), value)


def open(*paths: Path | tuple[Path, int], isa: Isa | None = None, threads: int = 1, headless: bool = False,
         guest_only: GuestOnly = GuestOnly.AUTO, host_only: bool | None = False,
         cycle_acc: CycleAcc = CycleAcc.AUTO) -> Trace:
    """Open a trace: a perf.data, or raw files, each of one CPU: a path, or a tuple of path and CPU.

    "-" is the standard input. @isa: what raw files are, which otherwise they show. The rest holds for
    all that is opened on the trace (struct vmpt_options of <vmpt/decode.h>):
    @threads: that decode, at most 12; @headless: a packet starts at the first byte; @guest_only: whether
    it holds guests only; @host_only: it has no VMs, or None: find that out, as the vmpt command does,
    which reads it all if so; @cycle_acc: RTIT with cycle counts.

    A file must not become shorter while it is open: that ends the program (SIGBUS).
    """
    return Trace(*paths, isa=isa, threads=threads, headless=headless, guest_only=guest_only,
                 host_only=host_only, cycle_acc=cycle_acc)
