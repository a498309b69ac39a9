# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Objects of the library: each is closed once, and only when nothing opened on it needs it.

What is opened on an object (a decoder on its trace) holds a use of it, as does each call into the
library, during which other threads run. close() forbids new uses; the last use that ends frees the
object. So neither the order in which objects are closed, nor that in which Python collects them, nor
a thread in the middle of a call matters.
"""
from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Generic, TypeVar

from ._enums import ErrorCode
from ._vmpt import ffi, lib

CLOSED = "the object, or what it was opened on, is closed"

Self = TypeVar("Self", bound="Closing")


class Error(Exception):
    """The library reports an error.

    code: what (ErrorCode); text: a sentence; offset: where in the file, if that is known; path: of
    the file, if it is about one.
    """

    def __init__(self, code: ErrorCode, text: str, offset: int | None = None, path: str | None = None):
        super().__init__(code, text, offset, path)
        self.code = code
        self.text = text
        self.offset = offset
        self.path = path

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path is not None else ""
        at = f" (at offset {self.offset:#x})" if self.offset else ""
        return f"{where}{self.text}{at}"


def text_of(err: int) -> str:
    """The library's sentence for an error."""
    text: bytes = ffi.string(lib.vmpt_strerror(err))
    return text.decode()


def check(err: int) -> int:
    """Raise Error if @err is one."""
    if err < 0:
        raise Error(ErrorCode(-err), text_of(err))
    return err


class Use:
    """One call: the object cannot be freed in it. Unless it is shared, other threads wait."""

    __slots__ = ("handle",)

    def __init__(self, handle: Handle):
        self.handle = handle

    def __enter__(self) -> Any:
        return self.handle.begin(self)

    def __exit__(self, *exc: object) -> None:
        self.handle.end(self)


class Handle:
    """A C object. @free closes it; @parents are what it was opened on; @keep is memory it uses."""

    __slots__ = ("_box", "_free", "_parents", "_uses", "_lock", "_thread", "_keep", "closed", "__weakref__")

    def __init__(self, free: Callable[[Any], None], *parents: Handle, shared: bool = False, keep: Any = None):
        self._box: list[Any] = [None]  # the pointer; empty once it is freed
        self._free = free
        self._parents: list[Handle] = []
        # Single operations on it are atomic: Uses, and what was opened on this.
        self._uses: dict[object, weakref.ref[Handle] | None] = {}
        self._lock = None if shared else threading.Lock()
        self._thread = 0
        self._keep = keep
        self.closed = False
        for parent in parents:
            parent.begin_child(self)
            self._parents.append(parent)

    def open(self, err: int, pointer: Any) -> None:
        """What the library's open function returned."""
        if err < 0:
            self.close()
            check(err)
        self._box[0] = pointer

    def add_parent(self, parent: Handle) -> None:
        """From now on it uses @parent, too."""
        if not any(p is parent for p in self._parents):
            parent.begin_child(self)
            self._parents.append(parent)

    def begin_child(self, child: Handle) -> None:
        self._uses[id(child)] = weakref.ref(child)
        if self.closed:
            self.end_child(child)
            raise ValueError(CLOSED)

    def end_child(self, child: Handle) -> None:
        self._uses.pop(id(child), None)
        self._reap()

    def begin(self, use: Use) -> Any:
        if self._lock and not self._lock.acquire(blocking=False):
            if self._thread == threading.get_ident():
                raise RuntimeError("the object is in use by this thread")
            self._lock.acquire()
        self._thread = threading.get_ident()
        self._uses[use] = None
        if self.closed:
            self.end(use)
            raise ValueError(CLOSED)
        return self._box[0]

    def end(self, use: Use) -> None:
        self._uses.pop(use, None)
        self._thread = 0
        if self._lock:
            self._lock.release()
        self._reap()

    def _reap(self) -> None:
        """Free it if it is closed and not in use; what it was opened on may be next."""
        if not self.closed or self._uses:
            return
        try:
            pointer = self._box.pop()
        except IndexError:
            return
        if pointer is not None:
            self._free(pointer)
        parents, self._parents = self._parents, []
        for parent in parents:
            parent.end_child(self)

    def close(self) -> None:
        self.closed = True
        for ref in tuple(self._uses.values()):
            child = ref() if ref else None
            if child:
                child.close()
        self._reap()

    def __del__(self) -> None:
        # Before what was opened on it only where both are garbage in a cycle: then that frees this.
        self.closed = True
        self._reap()


class Closing:
    """A context manager, whose close() may be called again."""

    _handle: Handle

    def close(self) -> None:
        """Close it, and what was opened on it. Any later use of these raises ValueError."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._handle.closed

    def __enter__(self: Self) -> Self:
        if self._handle.closed:
            raise ValueError(CLOSED)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
