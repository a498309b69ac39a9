# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Memory images, and what a trace's code is."""
from __future__ import annotations

import os
from typing import Any, Iterable, Union

from ._enums import ErrorCode, ImageKind, Paging
from ._handle import Closing, Error, Handle, Use, check, text_of
from ._structs import (
    ImageCounts, ImageInfo, Owner, Page, Space, image_counts, image_info, page, space_c,
)
from ._vmpt import ffi, lib

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _linear(address: int) -> int:
    if address % lib.VMPT_PAGE:
        raise ValueError(f"the address has to be a multiple of {lib.VMPT_PAGE}")
    return address


class Image(Closing):
    """A source of code: a memory dump, a program's file, a set of pages. <vmpt/image.h>

    @paging: where the image does not say how linear addresses are translated. @address: linear, of a
    file's first byte (ImageKind.BYTES) or its first page (ELF); of a perf.data a process id. @ranges: of
    raw memory (physical, size, offset in the file). @live: pages are read when they are asked for.
    """

    warning: str
    """What could not be read of the file; else empty."""

    def __init__(self, path: Path, *, kind: ImageKind = ImageKind.AUTO, paging: Paging = Paging.AUTO,
                 address: int | None = None, live: bool = False,
                 ranges: Iterable[tuple[int, int, int]] = ()):
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("a null byte in the path")
        parts = ffi.new("struct vmpt_ram_range[]", list(ranges))
        options = ffi.new("struct vmpt_image_options *", {
            "kind": ImageKind(kind), "paging": Paging(paging), "has_address": address is not None,
            "address": address or 0, "live": live, "ranges": parts, "range_count": len(parts)})
        self._handle = Handle(lib.vmpt_image_close, shared=True)
        diag = ffi.new("struct vmpt_diag *")
        image = ffi.new("struct vmpt_image **")
        err = lib.vmpt_image_open_abi(image, name, options, diag, lib.VMPT_IMAGE_ABI)
        self.warning = ffi.string(diag.text).decode(errors="backslashreplace")
        if err:
            self._handle.close()
            raise Error(ErrorCode(-err), self.warning or text_of(err), diag.offset, os.fsdecode(path))
        self._handle.open(0, image[0])

    @property
    def info(self) -> ImageInfo:
        """What is in it."""
        info = ffi.new("struct vmpt_image_info *")
        with Use(self._handle) as image:
            lib.vmpt_image_info(image, info)
            return image_info(info)

    @property
    def counts(self) -> ImageCounts:
        """What was asked so far."""
        counts = ffi.new("struct vmpt_image_counts *")
        with Use(self._handle) as image:
            lib.vmpt_image_counts(image, counts)
        return image_counts(counts)

    def page(self, space: Space, linear: int, nth: int = 0) -> Page | None:
        """The page at @linear of @space; @nth: of several versions that it has. None: there is none."""
        out = ffi.new("struct vmpt_page *")
        with Use(self._handle) as image:
            found = check(lib.vmpt_image_page(image, space_c(space), _linear(linear), nth, out))
            return page(out) if found else None

    def physical(self, address: int) -> Page | None:
        """The page at a (guest-)physical address."""
        out = ffi.new("struct vmpt_page *")
        with Use(self._handle) as image:
            return page(out) if check(lib.vmpt_image_physical(image, _linear(address), out)) else None

    def translate(self, space: Space, linear: int) -> int | None:
        """The physical address of @linear in @space, or None."""
        out = ffi.new("u64 *")
        with Use(self._handle) as image:
            found = check(lib.vmpt_image_translate(image, space_c(space), linear, out))
        return out[0] if found else None


class Code(Closing):
    """What a trace's code is: images, in the order in which they are tried."""

    def __init__(self, *images: Image):
        self._handle = Handle(lib.vmpt_code_free, shared=True)
        self._asked = False
        code = ffi.new("struct vmpt_code **")
        self._handle.open(lib.vmpt_code_new_abi(code, lib.VMPT_IMAGE_ABI), code[0])
        for image in images:
            self.add(image)

    def add(self, image: Image, owner: Owner | None = None, cr3: int | None = None) -> None:
        """Add an image: of every owner, of @owner, or of its address space @cr3. Before it is used."""
        if self._asked:
            raise ValueError("the code is in use: images are added before")
        c: Any = ffi.NULL
        if owner is not None:
            c = ffi.new("struct vmpt_owner *", {"kind": owner.kind, "vmcs": owner.vmcs})
        only = ffi.NULL if cr3 is None else ffi.new("u64 *", cr3)
        self._handle.add_parent(image._handle)
        with Use(self._handle) as code, Use(image._handle) as i:
            check(lib.vmpt_code_add(code, c, only, i))

    @property
    def changes(self) -> bool:
        """Whether an image has code of several times."""
        with Use(self._handle) as code:
            return bool(lib.vmpt_code_changes(code))

    def page(self, space: Space, linear: int, nth: int = 0) -> Page | None:
        """The page at @linear of @space, of the first image that has it; @nth: of the following ones."""
        self._asked = True
        out = ffi.new("struct vmpt_page *")
        with Use(self._handle) as code:
            found = check(lib.vmpt_code_page(code, space_c(space), _linear(linear), nth, out))
            return page(out) if found else None
