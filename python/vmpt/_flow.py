# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What was executed."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Union

from ._enums import FlowKind, FlowReason
from ._handle import Closing, Handle, Use, check
from ._image import Code
from ._structs import (
    Block, FlowBlocks, FlowCounts, FlowGap, Space, block, flow_counts, space,
)
from ._vmpt import ffi, lib

if TYPE_CHECKING:
    from .arrays import Array

_NO_SPACE = 0xFFFFFFFF


class Flow(Closing):
    """The flow of a stream: iterate over batches of blocks and gaps, or take many as arrays.

    Totals, spaces and counts of blocks are of what was returned so far.
    """

    def __init__(self, trace: Handle, stream: Any, code: Code | None, options: Any):
        parents = [trace, code._handle] if code else [trace]
        self._handle = Handle(lib.vmpt_py_flow_close, *parents, keep=options)
        flow = ffi.new("struct vmpt_py_flow **")
        with Use(code._handle if code else trace) as c:
            if code:
                code._asked = True
            err = lib.vmpt_py_flow_open(flow, stream, c if code else ffi.NULL, options)
        self._handle.open(err, flow[0])
        self._batch = ffi.new("struct vmpt_flow_batch *")

    def __iter__(self) -> Iterator[Union[FlowBlocks, FlowGap]]:
        return self

    def __next__(self) -> Union[FlowBlocks, FlowGap]:
        b = self._batch
        with Use(self._handle) as flow:
            if not check(lib.vmpt_py_flow_next(flow, b)):
                raise StopIteration
            if b.kind == FlowKind.GAP:
                return FlowGap(b.offset, b.end, FlowReason(b.reason), b.ip or None,
                               b.space if b.space != _NO_SPACE else None)
            ids = memoryview(bytes(ffi.buffer(b.blocks, 4 * b.count))).cast("I")
            return FlowBlocks(b.offset, b.end, ids, b.last)

    def fill(self, batches: Array, ids: Array) -> tuple[Array, Array]:
        """Fill @batches (arrays.BATCH) and @ids (arrays.ID) with the next ones, and return the parts of
        them that are filled: empty ones at the end. The blocks of a batch are ids[first:first + count].
        A batch that does not fit is cut.
        """
        from . import arrays
        to = arrays.target(batches, arrays.BATCH, "struct vmpt_py_batch")
        to_ids = arrays.target(ids, arrays.ID, "uint32_t")
        with Use(self._handle) as flow:
            count = check(lib.vmpt_py_flow_fill(flow, len(batches), to, len(ids), to_ids))
            used = to[count - 1].first + to[count - 1].count if count else 0
        return batches[:count], ids[:used]

    # ---- blocks ----

    def _id(self, flow: Any, id: int) -> int:
        if not 0 <= id < lib.vmpt_flow_blocks(flow):
            raise IndexError("there is no such block")
        return id

    @property
    def blocks(self) -> int:
        """How many blocks there are: ids are below."""
        with Use(self._handle) as f:
            count: int = lib.vmpt_flow_blocks(lib.vmpt_py_flow_of(f))
        return count

    def block(self, id: int) -> Block:
        """The block @id."""
        out = ffi.new("struct vmpt_flow_block *")
        with Use(self._handle) as f:
            flow = lib.vmpt_py_flow_of(f)
            lib.vmpt_flow_block(flow, self._id(flow, id), out)
        return block(out)

    def code(self, id: int) -> bytes:
        """The code of block @id, as it was decoded."""
        # A block is of one page but for its last instruction.
        out = ffi.new("u8[]", lib.VMPT_PAGE + 16)
        with Use(self._handle) as f:
            flow = lib.vmpt_py_flow_of(f)
            size = check(lib.vmpt_flow_code(flow, self._id(flow, id), out, len(out)))
        return bytes(ffi.buffer(out, size))

    def executed(self, id: int) -> tuple[int, int]:
        """How often block @id ran completely, and how many instructions of it more."""
        whole, more = ffi.new("u64 *"), ffi.new("u64 *")
        with Use(self._handle) as f:
            flow = lib.vmpt_py_flow_of(f)
            lib.vmpt_flow_executed(flow, self._id(flow, id), whole, more)
        return whole[0], more[0]

    def fill_blocks(self, out: Array, first: int = 0, *, whole: Array | None = None,
                    instructions: Array | None = None) -> Array:
        """Fill @out (arrays.BLOCK) with the blocks from @first on, and return the part that is filled.

        If given, @whole and @instructions (arrays.COUNT), as long as @out, get what executed() returns.
        """
        from . import arrays
        to = arrays.target(out, arrays.BLOCK, "struct vmpt_flow_block")
        counts = [ffi.NULL if a is None else arrays.target(a, arrays.COUNT, "uint64_t", len(out))
                  for a in (whole, instructions)]
        with Use(self._handle) as flow:
            count = min(len(out), max(0, lib.vmpt_flow_blocks(lib.vmpt_py_flow_of(flow)) - first))
            if first < 0:
                raise IndexError("there is no such block")
            lib.vmpt_py_flow_blocks(flow, first, count, to, *counts)
        return out[:count]

    # ---- totals ----

    @property
    def total(self) -> FlowCounts:
        """Of the whole stream."""
        counts = ffi.new("struct vmpt_flow_counts *")
        with Use(self._handle) as f:
            lib.vmpt_flow_total(lib.vmpt_py_flow_of(f), counts, ffi.NULL)
        return flow_counts(counts)

    @property
    def hash(self) -> int:
        """The ordered hash of all instructions (docs/flow.md), if the flow was opened with hash=True."""
        counts, out = ffi.new("struct vmpt_flow_counts *"), ffi.new("u64 *")
        with Use(self._handle) as f:
            lib.vmpt_flow_total(lib.vmpt_py_flow_of(f), counts, out)
        value: int = out[0]
        return value

    @property
    def spaces(self) -> tuple[tuple[Space, FlowCounts], ...]:
        """Address spaces as they were first entered, each with its counts. Where code changes, one may
        come several times."""
        with Use(self._handle) as f:
            flow = lib.vmpt_py_flow_of(f)
            return tuple(self._space(flow, i) for i in range(lib.vmpt_flow_spaces(flow)))

    def space(self, index: int) -> Space:
        """The address space of a block or a gap."""
        with Use(self._handle) as f:
            flow = lib.vmpt_py_flow_of(f)
            if not 0 <= index < lib.vmpt_flow_spaces(flow):
                raise IndexError("there is no such address space")
            return self._space(flow, index)[0]

    def _space(self, flow: Any, index: int) -> tuple[Space, FlowCounts]:
        out, counts = ffi.new("struct vmpt_space *"), ffi.new("struct vmpt_flow_counts *")
        lib.vmpt_flow_space(flow, index, out, counts)
        return space(out), flow_counts(counts)
