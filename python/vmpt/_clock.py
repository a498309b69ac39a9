# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The clocks of a trace, and the names of its VMs."""
from __future__ import annotations

from bisect import bisect_right
from typing import Any, Iterable, Iterator, Sequence

from ._enums import TimeBase
from ._handle import Closing, Handle, Use, check
from ._structs import (
    ClockCounts, Epoch, Given, Rates, VmName, clock_counts, epoch, rates as rates_of, vm_name,
)
from ._vmpt import ffi, lib


class Clocks(Closing):
    """How the clocks of CPUs and guests follow from each other: <vmpt/clock.h>, docs/time.md."""

    def __init__(self, trace: Handle, streams: Any, count: int, options: Any, info: Any,
                 rates: Rates | None, given: Iterable[Given], near_tsc: int):
        maps = ffi.new("struct vmpt_given[]", [
            {"vmcs": g.vmcs, "from": g.since, "source": g.source,
             "map": {"multiplier": g.map.multiplier, "offset": g.map.offset}} for g in given])
        opts = ffi.new("struct vmpt_clocks_options *", {
            "decode": options[0], "given": maps, "given_count": len(maps), "near_tsc": near_tsc})
        if rates is None:
            lib.vmpt_rates_from_info(ffi.addressof(opts, "rates"), info)
        else:
            opts.rates = {"tsc_num": rates.tsc_num, "tsc_den": rates.tsc_den, "nominal": rates.nominal,
                          "mtc_freq": rates.mtc_freq or 0, "has_mtc_freq": rates.mtc_freq is not None}
        self._trace = trace
        # The library keeps both arrays.
        self._handle = Handle(lib.vmpt_clocks_close, trace, shared=True, keep=(maps, streams))
        self._streams = count
        clocks = ffi.new("struct vmpt_clocks **")
        err = lib.vmpt_clocks_open_abi(clocks, streams, count, opts, lib.VMPT_CLOCK_ABI)
        self._handle.open(err, clocks[0])

    def __repr__(self) -> str:
        return "<vmpt.Clocks, closed>" if self.closed else f"<vmpt.Clocks: {self.base!r}, {self.rates!r}>"

    @property
    def base(self) -> TimeBase:
        """What the time line is: the host's TSC, or a guest's."""
        with Use(self._handle) as c:
            return TimeBase(lib.vmpt_clocks_base(c))

    @property
    def base_vmcs(self) -> int | None:
        """TimeBase.GUEST: which guest."""
        with Use(self._handle) as c:
            vmcs: int = lib.vmpt_clocks_base_vmcs(c)
            return vmcs if lib.vmpt_clocks_base(c) == TimeBase.GUEST else None

    @property
    def rates(self) -> Rates:
        """The rates of the processor's clocks, given or derived."""
        with Use(self._handle) as c:
            return rates_of(lib.vmpt_clocks_rates(c))

    @property
    def vmcss(self) -> list[int]:
        """The VMCSs with a TSC packet or a given map."""
        with Use(self._handle) as c:
            return [lib.vmpt_clocks_vmcs(c, i) for i in range(lib.vmpt_clocks_vmcs_count(c))]

    def epochs(self, vmcs: int) -> list[Epoch]:
        """The maps of a guest's TSC, by time."""
        count = ffi.new("size_t *")
        with Use(self._handle) as c:
            for i in range(lib.vmpt_clocks_vmcs_count(c)):
                if lib.vmpt_clocks_vmcs(c, i) == vmcs:
                    found = lib.vmpt_clocks_epochs(c, i, count)
                    return [epoch(found[k]) for k in range(count[0])]
        return []

    def at(self, vmcs: int, tsc: int) -> Epoch | None:
        """The map of a guest's TSC at the host's @tsc, the nearest one; None: there is none."""
        with Use(self._handle) as c:
            found = lib.vmpt_clocks_at(c, vmcs, tsc)
            return epoch(found) if found else None

    def counts(self, stream: int) -> ClockCounts | None:
        """What the clock of stream number @stream has seen. None: it has no clock."""
        if not 0 <= stream < self._streams:
            raise IndexError("no such stream")
        with Use(self._handle) as c:
            found = lib.vmpt_clocks_counts(c, stream)
            return clock_counts(found) if found else None


class VmNames(Sequence[VmName]):
    """The names of VMCSs, by VMCS and time. A VMCS's page is reused, so a name holds for a time."""

    def __init__(self, trace: Handle, clocks: Handle, cpus: Sequence[int | None], options: Any, events: Any,
                 count: int):
        opts = ffi.new("struct vmpt_names_options *", {"events": events, "event_count": count})
        out = ffi.new("struct vmpt_names **")
        found = ffi.new("size_t *")
        handle = Handle(lib.vmpt_names_close, trace, clocks)
        handle.open(lib.vmpt_names_open_abi(out, opts, lib.VMPT_NAMES_ABI), out[0])
        try:
            with Use(clocks) as c, Use(handle) as names:
                for i, cpu in enumerate(cpus):
                    if cpu is not None:
                        check(lib.vmpt_names_stream(names, c, i, cpu, options))
                check(lib.vmpt_names_finish(names))
                array = lib.vmpt_names_list(names, found)
                self._names = [vm_name(array[i]) for i in range(found[0])]
        finally:
            handle.close()
        self._keys = [(name.vmcs, name.start) for name in self._names]

    def __repr__(self) -> str:
        return f"<vmpt.VmNames: {self._names!r}>"

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: Any) -> Any:
        return self._names[i]

    def __iter__(self) -> Iterator[VmName]:
        return iter(self._names)

    def at(self, vmcs: int, tsc: int) -> VmName | None:
        """The name of @vmcs at the host's @tsc."""
        i = bisect_right(self._keys, (vmcs, tsc)) - 1
        if i < 0 or self._names[i].vmcs != vmcs or tsc >= self._names[i].end:
            return None
        return self._names[i]
