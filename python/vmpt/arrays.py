# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""numpy's types of the library's structs, for arrays that Decoder.items(), Splitter.fill(),
Timeline.fill() and Flow.fill() fill.

Sizes and offsets are those that the C compiler found. Times are struct vmpt_time: tsc, and how much
earlier and later it may have been.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._vmpt import ffi

Array = npt.NDArray[Any]


def _format(ctype: Any) -> Any:
    """numpy's type for a C type."""
    if ctype.kind == "struct":
        return _dtype(ctype)
    if ctype.kind == "array":
        return (_format(ctype.item), (ctype.length,))
    if ctype.kind == "primitive":
        name = {"_Bool": "?", "double": "f8"}.get(ctype.cname)
        return name or ("i" if int(ffi.cast(ctype, -1)) < 0 else "u") + str(ffi.sizeof(ctype))
    raise TypeError(f"{ctype.cname} has no numpy type")


def _dtype(ctype: Any) -> np.dtype[np.void]:
    fields = ctype.fields
    return np.dtype({
        "names": [name for name, _ in fields],
        "formats": [_format(field.type) for _, field in fields],
        "offsets": [field.offset for _, field in fields],
        "itemsize": ffi.sizeof(ctype),
    })


ITEM: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_item"))
"""A packet or a run: payload, offset, size, kind, aux. struct vmpt_item of <vmpt/decode.h> says
what payload and aux hold for each Kind."""

OWNER: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_owner"))
"""Whose bytes: vmcs, kind (OwnerKind), sure (Sure), concealed."""

TIME: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_time"))
"""A time: tsc (vmpt.TIME_NONE: not known), early, late (vmpt.TIME_OPEN: no bound)."""

SLICE: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_slice"))
"""struct vmpt_slice: offset, size, owner, begin, …"""

BLOCK: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_flow_block"))
"""struct vmpt_flow_block of <vmpt/flow.h>: ip, end_ip, next, target, space, instructions, end (FlowEnd)."""

BATCH: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_py_batch"))
"""A part of the flow, as in struct vmpt_flow_batch: kind (FlowKind), offset, end; of blocks count ids from
first on, last; of a gap reason (FlowReason), ip, space."""

ID: np.dtype[np.uint32] = np.dtype(np.uint32)
"""Ids of blocks."""

COUNT: np.dtype[np.uint64] = np.dtype(np.uint64)
"""How often something ran."""

SPAN: np.dtype[np.void] = _dtype(ffi.typeof("struct vmpt_span"))
"""struct vmpt_span: stream, kind, owner, start, end, offset, size, exit, …"""

OFFSET: np.dtype[np.uint64] = np.dtype(np.uint64)
"""Offsets in a stream."""


def target(array: Array, dtype: np.dtype[Any], ctype: str, length: int | None = None) -> Any:
    """The memory of @array, which the library may fill."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"an array of numpy is needed, not {type(array).__name__}")
    if array.dtype is not dtype and array.dtype != dtype:
        raise TypeError(f"the array's dtype has to be {ctype}'s: vmpt.arrays")
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError("the array has to be contiguous, of one dimension")
    if not array.flags.writeable:
        raise ValueError("the array is read-only")
    if not len(array):
        raise ValueError("the array is empty")
    if length is not None and len(array) != length:
        raise ValueError(f"the arrays' lengths differ: {len(array)} and {length}")
    return ffi.from_buffer(ctype + "[]", array, require_writable=True)
