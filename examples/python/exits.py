#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Why do VMs exit, and for how long are they out? With numpy, of a trace of any size:

    exits.py perf.data
    exits.py cpu0.pt@0 cpu1.pt@1

The time line comes as arrays of spans, which are used again and again. An exit lasts from its
guest's span to the next one of the same VMCS, on whatever CPU that is.
"""
import sys

import numpy as np

import vmpt
from vmpt import arrays

SPANS = 1 << 14


def file_and_cpu(word):
    """FILE@CPU, as the vmpt command takes it."""
    path, at, cpu = word.rpartition("@")
    return (path, int(cpu)) if at and cpu.isdigit() else word


def main(words):
    spans = np.empty(SPANS, arrays.SPAN)
    count, out, left = {}, {}, {}
    with vmpt.open(*map(file_and_cpu, words), host_only=None) as trace, trace.timeline() as timeline:
        hz = trace.info.tsc_hz
        while len(view := timeline.fill(spans)):
            guests = view[(view["kind"] == vmpt.SpanKind.GUEST) & (view["start"]["tsc"] != vmpt.TIME_NONE)]
            for vmcs in np.unique(guests["owner"]["vmcs"]):
                runs = guests[guests["owner"]["vmcs"] == vmcs]
                vmcs = int(vmcs)
                exited = runs["ended"] == vmpt.Edge.EXIT
                count[vmcs] = count.get(vmcs, 0) + int(exited.sum())
                # Ticks from each exit to the next entry; the first entry's exit is in an array before.
                start = runs["start"]["tsc"].astype(np.int64)
                end = np.concatenate(([left.get(vmcs, start[0])], runs["end"]["tsc"].astype(np.int64)))
                left[vmcs] = end[-1]
                out.setdefault(vmcs, []).append(np.maximum(start - end[:-1], 0))
    unit = "µs" if hz else "ticks"
    print(f"{'VMCS':12} {'EXITS':>8} {'OUT: P50':>12} {'P95':>10} {'MAX':>10}  {unit}")
    for vmcs in sorted(count, key=count.get, reverse=True):
        ticks = np.concatenate(out[vmcs])
        low, high, most = np.percentile(ticks, (50, 95, 100)) * (1e6 / hz if hz else 1)
        print(f"{vmcs:<12x} {count[vmcs]:>8,} {low:>12,.0f} {high:>10,.0f} {most:>10,.0f}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1:])
    except vmpt.Error as error:
        sys.exit(f"{sys.argv[0]}: {error}")
