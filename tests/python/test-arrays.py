#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Arrays of numpy: their layout is C's, their content what iteration gives; wrong ones are refused."""
import os
import subprocess
import unittest

import numpy as np

import support
import vmpt
from support import Generated, path
from vmpt import Kind, arrays

demo = Generated("demo", lambda text: text.replace("loop 100 ", "loop 20 "))
TYPES = {"vmpt_item": arrays.ITEM, "vmpt_owner": arrays.OWNER, "vmpt_time": arrays.TIME,
         "vmpt_slice": arrays.SLICE, "vmpt_flow_block": arrays.BLOCK, "vmpt_span": arrays.SPAN, "vmpt_exit": arrays.SPAN["exit"]}


class Layout(unittest.TestCase):
    def test_layout(self):
        """A C program that was compiled with the headers says the same."""
        names = {name: set() for name in TYPES}
        for line in subprocess.check_output([os.environ["LAYOUT"]], text=True).splitlines():
            struct, member, offset, size = line.split()
            if member == ".":
                self.assertEqual(TYPES[struct].itemsize, int(size), struct)
                continue
            names[struct].add(member)
            dtype, at = TYPES[struct].fields[member][:2]
            self.assertEqual((at, dtype.itemsize), (int(offset), int(size)), line)
        for struct, members in names.items():
            self.assertEqual(members, set(TYPES[struct].names), struct)


class Items(unittest.TestCase):
    def setUp(self):
        self.trace = vmpt.open(*demo.files)
        self.stream = self.trace.streams[0]

    def read(self, n, clocks=None, **extra):
        """All items by arrays of @n: lists of tuples, as from packets()."""
        out = np.empty(n, arrays.ITEM)
        lists = {name: np.empty(n, getattr(arrays, name[:-1].upper())) for name in extra}
        got, ends = [], 0
        with self.stream.decode(clocks) as decoder:
            while len(view := decoder.items(out, **lists)):
                self.assertIs(view.base, out)
                n = len(view)
                for i, item in enumerate(view):
                    at = decoder.base + int(item["offset"])
                    if extra:
                        self.assertEqual(at, int(lists["offsets"][i]))
                    got.append((at, int(item["size"]), int(item["kind"]), int(item["payload"]), int(item["aux"])) +
                               tuple(tuple(int(v) for v in lists[name][i]) for name in extra if name != "offsets"))
            self.assertEqual(len(decoder.items(out)), 0)
        return got

    def packets(self, items):
        """Items with runs as packets: what iteration has."""
        for at, size, kind, payload, aux, *more in items:
            if kind != Kind.RUN:
                yield (at, payload if kind == Kind.LOSS else size, kind, 0 if kind == Kind.LOSS else payload, aux,
                       *more)
            else:
                for i, byte in enumerate(self.stream.read(at, size)):
                    yield (at + i, 1, Kind.TNT_8 if byte else Kind.PAD, byte, 0, *more)

    def test_items(self):
        want = [(p.offset, p.size, p.kind, p.payload, p.aux) for p in self.stream.decode()]
        for n in (1, 7, 4096, 1 << 20):
            self.assertEqual(list(self.packets(self.read(n))), want)

    def test_owners_times(self):
        with self.trace.clocks() as clocks:
            items = self.read(1000, clocks, owners=1, times=1, offsets=1)
            times = {}
            for p in self.stream.decode(clocks):
                times[p.offset] = (p.time.tsc, p.time.early, p.time.late) if p.time else None
        owners = {}
        for p in self.stream.decode():
            owners[p.offset] = (p.owner.vmcs, p.owner.kind, p.owner.sure, p.owner.concealed)
        for at, _, _, _, _, owner, time in items:
            self.assertEqual(owner, owners[at])
            want = times[at]
            time = tuple(None if v == vmpt.TIME_OPEN else v for v in time)
            self.assertEqual(None if time[0] == vmpt.TIME_NONE else time, want)

    def test_after_packets(self):
        """A run of which packets were read cannot be continued as items: it says so."""
        decoder = self.stream.decode()
        next(decoder)
        with self.assertRaises(ValueError):
            decoder.items(np.empty(5, arrays.ITEM))

    def test_counts(self):
        """Packets of each kind, by numpy, as vmpt stat counts them."""
        doc = support.command("stat", demo.files[0][0])
        counts = np.zeros(256, int)
        out = np.empty(5000, arrays.ITEM)
        with self.stream.decode() as decoder:
            while len(view := decoder.items(out)):
                counts += np.bincount(view["kind"], minlength=256)
        for name, row in doc["streams"][0]["kinds"].items():
            kind = Kind[name.replace("-", "_").replace(".", "_").upper()]
            if kind not in (Kind.TNT_8, Kind.PAD):
                self.assertEqual(counts[kind], row["packets"], name)

    def test_slices(self):
        want = list(self.stream.slices())
        out = np.empty(777, arrays.SLICE)
        got = []
        with self.stream.slices() as splitter:
            while len(view := splitter.fill(out)):
                got += [(int(s["offset"]), int(s["size"]), int(s["owner"]["vmcs"]), int(s["begin"]),
                         tuple(s["cr3"][:s["cr3_count"]])) for s in view]
        self.assertEqual(got, [(s.offset, s.size, s.owner.vmcs, s.begin, s.cr3s) for s in want])
        self.assertEqual(sum(s[1] for s in got), self.stream.size)

    def test_spans(self):
        want = list(self.trace.timeline())
        out = np.empty(999, arrays.SPAN)
        got = []
        with self.trace.timeline() as timeline:
            while len(view := timeline.fill(out)):
                got += [(int(s["stream"]), int(s["kind"]), int(s["offset"]), int(s["size"]), int(s["start"]["tsc"]),
                         int(s["end"]["tsc"]), int(s["exit"]["ip"])) for s in view]
        self.assertEqual(got, [(s.stream, s.kind, s.offset, s.size, s.start.tsc, s.end.tsc,
                                (s.exit and s.exit.ip) or 0) for s in want])

    def test_no_allocation(self):
        """Millions of items through one array: the process does not grow."""
        out = np.empty(1 << 16, arrays.ITEM)

        def pages():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1])

        def once():
            with self.stream.decode() as decoder:
                while len(decoder.items(out)):
                    pass
        for _ in range(5):
            once()
        before = pages()
        for _ in range(60):
            once()
        self.assertLess(pages() - before, 512)

    def test_misuse(self):
        decoder = self.stream.decode()
        good = np.empty(8, arrays.ITEM)
        read_only = np.empty(8, arrays.ITEM)
        read_only.flags.writeable = False
        for error, bad in ((TypeError, np.empty(8, np.uint64)), (TypeError, np.empty(8, arrays.OWNER)),
                           (TypeError, [1, 2]), (TypeError, None), (TypeError, bytearray(128)),
                           (TypeError, np.empty(8, arrays.ITEM.newbyteorder(">"))),
                           (ValueError, np.empty(16, arrays.ITEM)[::2]), (ValueError, np.empty((2, 4), arrays.ITEM)),
                           (ValueError, np.empty(0, arrays.ITEM)), (ValueError, read_only),
                           (ValueError, np.empty(8, arrays.ITEM)[::-1])):
            with self.assertRaises(error):
                decoder.items(bad)
        for name, error, bad in (("owners", ValueError, np.empty(7, arrays.OWNER)),
                                 ("owners", TypeError, np.empty(8, arrays.ITEM)),
                                 ("offsets", TypeError, np.empty(8, np.int64)),
                                 ("offsets", ValueError, np.empty(9, np.uint64)),
                                 ("times", ValueError, np.empty(8, arrays.TIME))):
            with self.assertRaises(error):
                decoder.items(good, **{name: bad})
        with self.assertRaises(TypeError):
            self.stream.slices().fill(good)
        with self.assertRaises(TypeError):
            self.trace.timeline().fill(good)
        # None of these read anything.
        self.assertEqual(decoder.items(good)[0]["kind"], Kind.PSB)
        # A part of an array of the caller's.
        big = np.zeros(24, arrays.ITEM)
        decoder.items(big[8:16])
        self.assertTrue(big[8:16]["kind"].any() and not big[:8].view("u1").any() and not big[16:].view("u1").any())
        decoder.close()
        with self.assertRaises(ValueError):
            decoder.items(good)


# 4 GiB of pages take many seconds.
@unittest.skipUnless(os.environ.get("VMPT_SOAK"), "for make soak")
class Huge(unittest.TestCase):
    def test_huge(self):
        """More than 4 GiB, of which all but the end are lost: offsets of 32 bits do not reach."""
        size = (4 << 30) + 12345
        with open(path("huge.pt"), "wb") as file:
            file.seek(size)
            file.write(bytes([2, 0x82] * 8 + [2, 0x23, 6, 6]))
        out, offsets = np.empty(10, arrays.ITEM), np.empty(10, np.uint64)
        with vmpt.open(path("huge.pt")) as trace, trace.streams[0].decode() as decoder:
            got = []
            while len(view := decoder.items(out, offsets=offsets)):
                got += [(decoder.base + int(i["offset"]), int(i["kind"]), int(i["payload"])) for i in view]
                self.assertEqual(int(offsets[len(view) - 1]), got[-1][0])
        self.assertEqual(got, [(0, Kind.LOSS, size), (size, Kind.PSB, 0), (size + 16, Kind.PSBEND, 0),
                               (size + 18, Kind.RUN, 0)])
        os.unlink(path("huge.pt"))


if __name__ == "__main__":
    support.main()
