# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the library returns, as tuples with names. Offsets and sizes are bytes."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ._enums import (
    Back, Begin, Edge, ErrorCode, EventKind, FlowEnd, FlowReason, GapFlags, Isa, Kind, MapSource,
    OwnerKind, Paging, ReasonSource, SpanKind, Sure, TraceFormat, Vms,
)
from ._vmpt import ffi, lib

TIME_NONE: int = lib.VMPT_TIME_NONE
TIME_OPEN: int = lib.VMPT_TIME_OPEN


def _name(value: Any) -> str | None:
    """A C string."""
    text: bytes = ffi.string(value) if value else b""
    return text.decode(errors="backslashreplace") if value else None


class Owner(NamedTuple):
    """Whose bytes they are."""

    kind: OwnerKind
    vmcs: int = 0
    """OwnerKind.VM: the physical address of its VMCS."""
    sure: Sure = Sure.KNOWN
    concealed: bool = False
    """The host, or a guest that is concealed."""

    def same(self, other: Owner) -> bool:
        """Whether both are the same owner, however certain."""
        return self.kind == other.kind and (self.kind != OwnerKind.VM or self.vmcs == other.vmcs)

    def __str__(self) -> str:
        return f"{self.vmcs:x}" if self.kind == OwnerKind.VM else self.kind.name.lower()

    def __repr__(self) -> str:
        vmcs = f", vmcs={self.vmcs:#x}" if self.kind == OwnerKind.VM else ""
        concealed = ", concealed=True" if self.concealed else ""
        return f"Owner({self.kind!r}{vmcs}, sure={self.sure!r}{concealed})"


def owner(c: Any) -> Owner:
    return Owner(OwnerKind(c.kind), c.vmcs, Sure(c.sure), c.concealed)


class Time(NamedTuple):
    """The time of a packet: in [tsc - early, tsc + late], in ticks of the host's TSC."""

    tsc: int
    early: int | None
    """None: no bound."""
    late: int | None

    def __repr__(self) -> str:
        early, late = ("?" if bound is None else bound for bound in (self.early, self.late))
        return f"Time({self.tsc:#x}, -{early}, +{late})"


def time(c: Any) -> Time | None:
    """None: nothing is known of it."""
    if c.tsc == TIME_NONE:
        return None
    return Time(c.tsc, None if c.early == TIME_OPEN else c.early, None if c.late == TIME_OPEN else c.late)


class Gap(NamedTuple):
    """The bytes at offset do not continue those before them: the recorder lost some."""

    offset: int
    flags: GapFlags


class Extent(NamedTuple):
    """Where a part of a stream lies in its file."""

    offset: int
    size: int
    file_offset: int


class TraceInfo(NamedTuple):
    """What a perf.data says of the whole trace: struct vmpt_trace_info of <vmpt/decode.h>."""

    format: TraceFormat
    isa: Isa
    has_time_conv: bool
    time_shift: int
    time_mult: int
    time_zero: int
    snapshot: bool
    pipe: bool
    compressed: bool
    threads: bool
    incomplete: bool
    """Part of the file could not be read; Trace.warning says which."""
    has_config: bool
    config: int
    tsc_ctc_numerator: int
    tsc_ctc_denominator: int
    mtc_freq_bits_shift: int
    max_nonturbo_ratio: int
    lost_events: int
    truncated_buffers: int

    @property
    def tsc_hz(self) -> float | None:
        """The TSC's frequency, from perf's time conversion."""
        if not self.has_time_conv or not self.time_mult or self.time_shift > 63:
            return None
        return 1e9 * (1 << self.time_shift) / self.time_mult


def trace_info(c: Any) -> TraceInfo:
    plain = (getattr(c, name) for name in TraceInfo._fields[2:])
    return TraceInfo(TraceFormat(c.format), Isa(c.isa), *plain)


class VmsFound(NamedTuple):
    """Whether a trace has VMs. stream, offset, kind: the first packet of one, if vms is Vms.SEEN."""

    vms: Vms
    stream: int
    offset: int
    kind: Kind


class Packet(NamedTuple):
    """A packet, or a loss: bytes that are no packets."""

    offset: int
    size: int
    """Bytes of a packet, or of the loss."""
    kind: Kind
    payload: int
    """By kind: struct vmpt_item in <vmpt/decode.h>. Packets with an IP have the full one."""
    aux: int
    owner: Owner
    time: Time | None
    """None: not known, or the decoder was opened without clocks."""

    @property
    def name(self) -> str:
        """The kind's name in the manual: "TIP.PGE"."""
        kind = self.kind
        if kind >= Kind.RTIT_TNT and kind < Kind.RTIT_CYC:
            return _name(lib.vmpt_rtit_name(kind - Kind.RTIT_TNT)) or "?"
        if kind >= Kind.RUN:
            return {Kind.LOSS: "LOST", Kind.RTIT_CYC: "CYC"}.get(kind, kind.name)
        return _name(lib.vmpt_pt_name(kind)) or "?"

    @property
    def loss(self) -> ErrorCode | None:
        """The cause of a loss."""
        return ErrorCode(self.aux) if self.kind == Kind.LOSS else None


class Slice(NamedTuple):
    """A run of bytes of one owner, as long as possible."""

    offset: int
    size: int
    owner: Owner
    begin: Begin
    """Why it begins."""
    loss: ErrorCode | None
    """The cause, if begin is Begin.LOSS: bytes that are no packets."""
    by_group: bool
    first_tsc: int | None
    """As in the packets: 56 bits, the owner's clock. None: it has no TSC packet."""
    last_tsc: int | None
    cr3s: tuple[int, ...]
    """The first distinct ones."""
    more_cr3s: bool
    overflows: int
    failed_entries: int
    doubts: int
    enables: int
    """RTIT: FUP.PGEs, and FUP.PGDs."""
    disables: int

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.offset + self.size

    @property
    def unproven(self) -> bool:
        """After an OVF or a TIP.PGD nothing proved the owner."""
        return self.begin == Begin.DOUBT and self.owner.kind == OwnerKind.UNKNOWN


def slice_(c: Any) -> Slice:
    cr3s: int = c.cr3_count
    return Slice(
        c.offset, c.size, owner(c.owner), Begin(c.begin),
        ErrorCode(c.loss) if c.begin == Begin.LOSS else None, c.by_group,
        c.first_tsc if c.has_tsc else None, c.last_tsc if c.has_tsc else None,
        tuple(c.cr3)[:cr3s], cr3s > lib.VMPT_SLICE_CR3S,
        c.overflows, c.failed_entries, c.doubts, c.enables, c.disables)


class Exit(NamedTuple):
    """A VM exit, as far as the trace shows it."""

    reason: int | None
    """The basic exit reason (SDM 3, Appendix C). None: not known."""
    source: ReasonSource
    """Where the reason comes from; CODE and PATTERN are guesses."""
    ip: int | None
    cr3: int | None
    qualification: int | None
    msr: int | None
    gpa: int | None
    halted: bool
    no_halt: bool

    @property
    def name(self) -> str:
        """The reason in words: "EPT violation"."""
        return exit_reason_name(self.reason) if self.reason is not None else "unknown"


def exit_reason_name(reason: int) -> str:
    """The words for a basic exit reason; its number if the manual has none."""
    return _name(lib.vmpt_exit_reason_name(reason)) or f"reason {reason}"


class Span(NamedTuple):
    """A stretch of one CPU with one owner."""

    stream: int
    """The stream's index in Trace.streams."""
    kind: SpanKind
    owner: Owner
    start: Time | None
    end: Time | None
    began: Edge
    ended: Edge
    offset: int
    size: int
    exit: Exit | None
    """Of a guest's span that ended by a VM exit."""
    overflows: int
    failed_entries: int
    back: Back
    """Why the stream's time went back in it."""
    losses: int
    loss: ErrorCode | None
    unproven: int

    @property
    def ticks(self) -> int | None:
        """How long it was, in ticks. None: not known."""
        return self.end.tsc - self.start.tsc if self.start and self.end else None


def span(c: Any) -> Span:
    e = c.exit
    left = Exit(
        None if e.reason == lib.VMPT_REASON_UNKNOWN else e.reason, ReasonSource(e.source),
        e.ip if e.has_ip else None, e.cr3 or None, e.qualification if e.has_qualification else None,
        e.msr if e.has_msr else None, e.gpa if e.has_gpa else None, e.halted, e.no_halt,
    ) if c.kind == SpanKind.GUEST and c.ended == Edge.EXIT else None
    return Span(
        c.stream, SpanKind(c.kind), owner(c.owner), time(c.start), time(c.end), Edge(c.began),
        Edge(c.ended), c.offset, c.size, left, c.overflows, c.failed_entries, Back(c.back), c.losses,
        ErrorCode(c.loss) if c.kind == SpanKind.LOST else None, c.unproven)


class Event(NamedTuple):
    """An event of a perf.data; <vmpt/events.h> says what each kind has."""

    kind: EventKind
    time: int
    """perf's, ns; 0: it has none."""
    tsc: int
    """The same as the host's TSC; 0: not known."""
    cpu: int
    """-1: not known, and of pid, tid."""
    pid: int
    tid: int
    ip: int
    info1: int
    info2: int
    vcpu: int | None
    reason: int | None
    flag: bool
    text: str | None


_KVM = (EventKind.KVM_ENTRY, EventKind.KVM_EXIT)


def event(c: Any) -> Event:
    kind = EventKind(c.kind)
    return Event(
        kind, c.time, c.tsc, c.cpu, c.pid, c.tid, c.ip, c.info1, c.info2,
        c.vcpu if kind in _KVM and c.vcpu != lib.VMPT_EVENT_NO_VCPU else None,
        c.reason if kind == EventKind.KVM_EXIT and c.reason != lib.VMPT_EVENT_NO_REASON else None,
        c.flag, _name(c.text))


class Rates(NamedTuple):
    """Rates of the processor's clocks. 0, or None: not known."""

    tsc_num: int = 0
    """CPUID.15H: tsc_num / tsc_den ticks of the TSC per tick of the crystal clock."""
    tsc_den: int = 0
    nominal: int = 0
    """The maximum non-turbo ratio, in the units of CBR."""
    mtc_freq: int | None = None
    found: bool = False
    """Some of it was derived from the trace."""


def rates(c: Any) -> Rates:
    return Rates(c.tsc_num, c.tsc_den, c.nominal, c.mtc_freq if c.has_mtc_freq else None, c.found)


class TscMap(NamedTuple):
    """A guest's TSC: (host TSC * multiplier >> 48) + offset."""

    offset: int
    multiplier: int = lib.VMPT_TSC_UNSCALED

    def to_guest(self, host: int) -> int:
        """The guest's TSC at a host's."""
        value: int = lib.vmpt_tsc_to_guest(self._c(), host)
        return value

    def to_host(self, guest: int, near: int) -> int:
        """The host's TSC at a guest's, the one nearest to @near: 56 bits of @guest count."""
        value: int = lib.vmpt_tsc_to_host(self._c(), guest, near)
        return value

    def _c(self) -> Any:
        return ffi.new("struct vmpt_tsc_map *", {"multiplier": self.multiplier, "offset": self.offset})


class Given(NamedTuple):
    """A map of a VMCS's TSC that is known from elsewhere, from host tick since on."""

    vmcs: int
    map: TscMap
    since: int = 0
    source: MapSource = MapSource.USER


class Epoch(NamedTuple):
    """A stretch of the host's time over which one map of a VMCS holds."""

    start: int
    end: int
    map: TscMap
    offset_error: int | None
    """±, ticks; None: not known."""
    multiplier_ppm: float | None
    source: MapSource
    scaled: bool
    pairs: int
    """TSC packets of the guest that agree, and those that do not."""
    outliers: int


def epoch(c: Any) -> Epoch:
    return Epoch(
        getattr(c, "from"), c.to, TscMap(c.map.offset, c.map.multiplier),
        None if c.offset_error == TIME_NONE else c.offset_error,
        None if c.multiplier_ppm < 0 else c.multiplier_ppm,
        MapSource(c.source), c.scaled, c.pairs, c.outliers)


class ClockCounts(NamedTuple):
    """Counts of packets and events that the clock of a stream has seen."""

    tscs: int
    guest_tscs: int
    unmapped: int
    """guest_tscs without a map."""
    tmas: int
    tmas_bad: int
    mtcs: int
    mtcs_lost: int
    cycs: int
    cbrs: int
    ovfs: int
    backs: int
    contradictions: int


def clock_counts(c: Any) -> ClockCounts:
    return ClockCounts(*(getattr(c, name) for name in ClockCounts._fields))


class VmName(NamedTuple):
    """The VM that a VMCS belonged to in [start, end) of the host's TSC."""

    vmcs: int
    start: int
    end: int
    vm: str | None
    pid: int
    """-1: not known, and of tid, vcpu."""
    tid: int
    vcpu: int
    runs: int
    """Runs of the guest that agree, and those that do not."""
    against: int


def vm_name(c: Any) -> VmName:
    return VmName(c.vmcs, getattr(c, "from"), c.to, _name(c.vm), c.pid, c.tid, c.vcpu, c.runs, c.against)


class Extracted(NamedTuple):
    """A slice and what became of it in extract()."""

    slice: Slice
    stream: int | None
    """None: it was not written."""
    out_offset: int
    out_size: int
    head: bool
    returned: bool
    left: bool


def extracted(c: Any) -> Extracted:
    return Extracted(slice_(c.slice), None if c.stream < 0 else c.stream, c.out_offset, c.out_size,
                     c.head, c.returned, c.left)


class Space(NamedTuple):
    """An address space, as Intel PT shows it."""

    owner: Owner
    cr3: int | None
    """As a PIP has it: bits 4:0 are 0. None: no PIP was seen."""
    bits: int = 64
    """MODE.Exec: 16, 32 or 64."""
    tsc: int = 0
    """Where in the trace, for images that have code of several times: the host's TSC; 0: the end."""


def space(c: Any) -> Space:
    return Space(owner(c.owner), None if c.no_cr3 else c.cr3, c.exec, c.tsc)


def space_c(s: Space) -> Any:
    own = {"kind": s.owner.kind, "vmcs": s.owner.vmcs}
    return ffi.new("struct vmpt_space *", {
        "owner": own, "cr3": s.cr3 or 0, "no_cr3": s.cr3 is None, "exec": s.bits, "tsc": s.tsc})


class Page(NamedTuple):
    """A page of 4 KiB of an image."""

    data: bytes
    known: int
    """Bit n: byte n is known."""
    start: int | None
    """The host's TSC at which its bytes came to be, and that at which they ceased. None: not known."""
    end: int | None


def page(c: Any) -> Page:
    size = lib.VMPT_PAGE
    known = (1 << size) - 1
    if c.valid:
        known = int.from_bytes(ffi.buffer(c.valid, size // 8), "little")
    start = getattr(c, "from")
    return Page(bytes(ffi.buffer(c.bytes, size)), known, start or None, c.to if c.to != TIME_NONE else None)


class ImageInfo(NamedTuple):
    """What is in an image."""

    linear: int
    """Bytes by linear address, and by physical address."""
    physical: int
    cr3s: tuple[int, ...]
    """Of the vCPUs with paging when a dump was made, if it says so."""
    paging: Paging


def image_info(c: Any) -> ImageInfo:
    return ImageInfo(c.linear, c.physical, tuple(c.cr3[i] for i in range(c.cr3_count)), Paging(c.paging))


class ImageCounts(NamedTuple):
    """What became of the questions put to an image."""

    found: int
    absent: int
    """Nothing is known at this address."""
    not_present: int
    """An entry of the page tables has P = 0."""
    no_table: int
    """A page table is not in the image: it is of another VM, or was freed."""
    reserved: int
    """An entry has a reserved bit set: it was no page table."""
    no_memory: int
    """The tables translate, to memory that is not in the image."""


def image_counts(c: Any) -> ImageCounts:
    return ImageCounts(*(getattr(c, name) for name in ImageCounts._fields))


class Block(NamedTuple):
    """Straight code: only its last instruction may be a branch."""

    ip: int
    end_ip: int
    """Of the last instruction."""
    next: int
    """The address after it."""
    target: int
    """FlowEnd.COND, JMP, CALL: where the branch goes."""
    space: int
    """Index: Flow.space()."""
    instructions: int
    end: FlowEnd


def block(c: Any) -> Block:
    return Block(c.ip, c.end_ip, c.next, c.target, c.space, c.instructions, FlowEnd(c.end))


class FlowBlocks(NamedTuple):
    """Blocks that were executed, in order."""

    offset: int
    """The packets in [offset, end) of the stream prove them."""
    end: int
    blocks: Sequence[int]
    """Ids: Flow.block(). All instructions of each were executed, but for the last one."""
    last: int
    """Instructions of the last block that were executed."""


class FlowGap(NamedTuple):
    """The flow is not known from here on, up to the next packet that gives an IP."""

    offset: int
    """Of the packet at which it was lost."""
    end: int
    reason: FlowReason
    ip: int | None
    space: int | None
    """Index: Flow.space()."""


class FlowCounts(NamedTuple):
    """What was executed, and where the flow was lost."""

    instructions: int
    branches: int
    """All but MOV CR3 of FlowEnd."""
    calls: int
    """Of the branches: near calls."""
    gaps: dict[FlowReason, int]


def flow_counts(c: Any) -> FlowCounts:
    return FlowCounts(c.instructions, c.branches, c.calls, {r: c.gaps[r] for r in FlowReason})


__all__ = [
    "Block", "ClockCounts", "Epoch", "Event", "Exit", "Extent", "Extracted", "FlowBlocks", "FlowCounts",
    "FlowGap", "Gap", "Given", "ImageCounts", "ImageInfo", "Owner", "Packet", "Page", "Rates", "Slice",
    "Space", "Span", "TIME_NONE", "TIME_OPEN", "Time", "TraceInfo", "TscMap", "VmName",
    "VmsFound", "exit_reason_name",
]
