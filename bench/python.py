#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""How fast the Python module fills numpy's arrays, on one processor: docs/performance.md.

    bench/python.py [--size MIB] [--rounds N] [--array N] [--check MB/S] [FILE...]

Each raw trace of Intel PT is copied end to end to a file of MIB (64), and read in N rounds (5), of
which the best counts. FILEs are by default the real traces ($VMPT_DATA, or ../shared/data/real next to
the checkout), one that the tests' generator makes, if its program tracegen is built, and the worst cases:
nothing but the shortest packets that are items of their own, TIPs of 3 bytes, MTCs of 2, CYCs of 1.
--check fails
where items of an input come slower than that. MB/s are 10^6 bytes of trace per second of CPU time.
Needs the module: PYTHONPATH=build/python.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import vmpt
from vmpt import arrays

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def default_files(folder):
    data = os.environ.get("VMPT_DATA", os.path.join(ROOT, "../shared/data/real"))
    files = sorted(glob.glob(os.path.join(data, "*.pt")))
    tracegen = os.path.join(ROOT, "build/tests/tracegen/tracegen")
    if os.path.exists(tracegen):
        subprocess.run([tracegen, "-o", os.path.join(folder, "generated.pt"),
                        os.path.join(ROOT, "tests/tracegen/scripts/demo.trace")], check=True)
        files.append(os.path.join(folder, "generated.cpu0.pt"))
    psb = bytes([2, 0x82] * 8 + [2, 0x23])
    for name, packet in (("tip", b"\x2d\x10\x20"), ("mtc", b"\x59\x07"), ("cyc", b"\x2b")):
        files.append(os.path.join(folder, "only-" + name))
        with open(files[-1], "wb") as file:
            file.write((psb + packet * (4096 // len(packet))) * 16)
    return files


def items(stream, a):
    with stream.decode() as decoder:
        return sum(iter(lambda: len(decoder.items(a["items"])), 0))


def items_owners(stream, a):
    with stream.decode() as decoder:
        return sum(iter(lambda: len(decoder.items(a["items"], owners=a["owners"], offsets=a["offsets"])), 0))


def items_times(stream, a):
    with stream.decode(a["clocks"]) as decoder:
        return sum(iter(lambda: len(decoder.items(a["items"], times=a["times"])), 0))


def slices(stream, a):
    with stream.slices() as splitter:
        return sum(iter(lambda: len(splitter.fill(a["slices"])), 0))


def spans(stream, a):
    with stream._trace.timeline(a["clocks"]) as timeline:
        return sum(iter(lambda: len(timeline.fill(a["spans"])), 0))


WORK = {"items": items, "+owners": items_owners, "+times": items_times, "slices": slices, "spans": spans}


def measure(path, args):
    """MB/s of each kind of work, and how many items there are."""
    a = {"items": np.empty(args.array, arrays.ITEM), "owners": np.empty(args.array, arrays.OWNER),
         "times": np.empty(args.array, arrays.TIME), "offsets": np.empty(args.array, arrays.OFFSET),
         "slices": np.empty(4096, arrays.SLICE), "spans": np.empty(4096, arrays.SPAN)}
    rates, count = {}, 0
    with vmpt.open(path) as trace, trace.clocks() as a["clocks"]:
        for name, work in WORK.items():
            best = float("inf")
            for _ in range(args.rounds):
                start = time.process_time()
                n = work(trace.streams[0], a)
                best = min(best, time.process_time() - start)
            rates[name] = trace.streams[0].size / max(best, 1e-6) / 1e6
            count = n if name == "items" else count
    return rates, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, metavar="MIB")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--array", type=int, default=1 << 14, metavar="N", help="items of an array (16384)")
    parser.add_argument("--check", type=float, default=0, metavar="MB/S")
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'INPUT':22} {'BYTES/ITEM':>10}" + "".join(f" {name:>8}" for name in WORK) + "  MB/s")
        for file in args.files or default_files(folder):
            with open(file, "rb") as source:
                data = source.read()
            path = os.path.join(folder, "input.pt")
            copies = max((args.size << 20) // max(len(data), 1), 1)
            with open(path, "wb") as out:
                for _ in range(copies):
                    out.write(data)
            rates, count = measure(path, args)
            print(f"{os.path.basename(file):22} {copies * len(data) / max(count, 1):>10.1f}" +
                  "".join(f" {rate:>8.0f}" for rate in rates.values()))
            slow |= rates["items"] < args.check
    if slow:
        sys.exit(f"an input's items come at less than {args.check:g} MB/s")


if __name__ == "__main__":
    main()
