#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Objects are closed in any order, by anyone, at any time: a use after that is an exception, never a
crash, and nothing is leaked."""
import gc
import os
import subprocess
import threading
import unittest

import numpy as np

import support
import vmpt
from support import Generated, path, python, write
from vmpt import arrays

demo = Generated("demo")


def pages():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1])


def growth(once, rounds):
    """Pages that the process grows by in @rounds, and files that stay open: what leaks, leaks in each."""
    grown = []
    once()
    files, before = len(os.listdir("/proc/self/fd")), pages()
    for _ in range(3):
        for _ in range(rounds):
            once()
        gc.collect()
        grown.append(pages() - before)
        before += grown[-1]
    return min(grown), len(os.listdir("/proc/self/fd")) - files


class Closed(unittest.TestCase):
    def uses(self, trace, clocks, stream):
        """All that can be done with open objects."""
        out = np.empty(4, arrays.ITEM)
        packet = next(stream.decode())
        decoder, splitter, timeline = stream.decode(clocks), stream.slices(), trace.timeline(clocks)
        of_trace = [stream.slices, stream.decode, lambda: stream.read(0, 1), lambda: stream.file_offset(0),
                    lambda: stream.text(packet), lambda: stream.extract(lambda n, o: None), trace.find_vms,
                    trace.clocks, trace.timeline, lambda: list(trace.events()), lambda: trace.names(clocks),
                    trace.__enter__]
        of_clocks = [lambda: clocks.base, lambda: clocks.base_vmcs, lambda: clocks.rates, lambda: clocks.vmcss,
                     lambda: clocks.epochs(1), lambda: clocks.at(1, 1), lambda: clocks.counts(0),
                     lambda: stream.decode(clocks), lambda: trace.timeline(clocks), lambda: trace.names(clocks),
                     lambda: stream.extract(lambda n, o: None, clocks=clocks)]
        return of_trace, of_clocks, [lambda: next(decoder), lambda: decoder.items(out), lambda: next(splitter),
                                     lambda: splitter.fill(np.empty(1, arrays.SLICE)), lambda: next(timeline),
                                     lambda: timeline.fill(np.empty(1, arrays.SPAN))], (decoder, splitter, timeline)

    def refused(self, calls):
        for i, call in enumerate(calls):
            with self.assertRaises(ValueError, msg=str(i)):
                call()

    def test_trace_first(self):
        trace = vmpt.open(*demo.files)
        clocks = trace.clocks()
        of_trace, of_clocks, of_rest, rest = self.uses(trace, clocks, trace.streams[0])
        for call in of_trace + of_clocks:
            call()
        trace.close()
        self.assertTrue(all(o.closed for o in (trace, clocks, *rest)))
        self.refused(of_trace + of_clocks + of_rest)
        for o in (*rest, clocks, trace, trace):
            o.close()
        self.assertIn("closed", repr(trace) + repr(clocks))
        self.assertTrue(trace.streams[0].size)  # what was copied stays

    def test_clocks_first(self):
        with vmpt.open(*demo.files) as trace:
            clocks = trace.clocks()
            _, of_clocks, _, (decoder, splitter, timeline) = self.uses(trace, clocks, trace.streams[0])
            clocks.close()
            self.refused(of_clocks + [lambda: next(decoder), lambda: next(timeline)])
            self.assertEqual(next(splitter).offset, 0)
            self.assertFalse(trace.closed)
        self.assertTrue(splitter.closed)

    def test_iterators(self):
        """An iterator that is in the middle."""
        trace = vmpt.open(*demo.files)
        iterators = [iter(trace.streams[0].decode()), iter(trace.streams[0].slices()), iter(trace.timeline())]
        for i in iterators:
            next(i)
        trace.close()
        self.refused([lambda i=i: next(i) for i in iterators])

    def test_end(self):
        """After the end there is nothing, however often it is asked for."""
        with vmpt.open(*demo.files) as trace:
            for reader in (trace.streams[0].decode(), trace.streams[0].slices(), trace.timeline()):
                for _ in reader:
                    pass
                for _ in range(3):
                    with self.assertRaises(StopIteration):
                        next(reader)
                if isinstance(reader, vmpt.Decoder):
                    self.assertEqual(len(reader.items(np.empty(5, arrays.ITEM))), 0)
                else:
                    dtype = arrays.SLICE if isinstance(reader, vmpt.Splitter) else arrays.SPAN
                    self.assertEqual(len(reader.fill(np.empty(5, dtype))), 0)

    def test_other_clocks(self):
        """Clocks are of their trace, which may have fewer streams."""
        with vmpt.open(demo.files[0]) as one, vmpt.open(*demo.files) as two, one.clocks() as clocks:
            for call in (lambda: two.streams[1].decode(clocks), lambda: two.timeline(clocks),
                         lambda: two.names(clocks), lambda: two.streams[1].extract(lambda n, o: None, clocks=clocks)):
                with self.assertRaises(ValueError):
                    call()

    def test_with(self):
        with self.assertRaises(ZeroDivisionError):
            with vmpt.open(*demo.files) as trace, trace.streams[0].decode() as decoder:
                1 // 0
        self.assertTrue(trace.closed and decoder.closed)


class Collected(unittest.TestCase):
    def test_children_keep_parents(self):
        """What is read from goes on although nobody names its trace any more."""
        decoder = vmpt.open(*demo.files).streams[0].decode()
        timeline = vmpt.open(*demo.files).timeline()
        gc.collect()
        self.assertEqual(sum(p.size for p in decoder), os.path.getsize(demo.files[0][0]))
        self.assertGreater(sum(1 for _ in timeline), 1000)

    def test_cycles(self):
        """Garbage in cycles is collected in any order; with threads that decode ahead."""
        class Box:
            pass
        for order in range(40):
            trace = vmpt.open(*demo.files, threads=3)
            objects = [trace, trace.clocks(), trace.streams[0].decode(), trace.timeline(), trace.streams[1].slices()]
            next(objects[2])
            boxes = [Box() for _ in objects]
            for i, box in enumerate(boxes):
                box.of = objects[(i + order) % len(objects)]
                box.of.box = boxes[(i * 3 + 1) % len(boxes)]
            del trace, objects, boxes, box
            gc.collect()

    def test_exit(self):
        """Objects that are open when the interpreter ends."""
        code = f"""
import vmpt
trace = vmpt.open({demo.files[0][0]!r}, threads=4)
decoder = iter(trace.streams[0].decode())
next(decoder)
line = trace.timeline()
class A: pass
a = A(); a.a = a; a.line = line; a.decoder = decoder
print("end")
"""
        done = python(code)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"))

    def test_leaks(self):
        """10,000 times everything: neither memory nor files stay."""
        with open(demo.files[0][0], "rb") as file:
            small = write("small.pt", file.read(4096))
        out = np.empty(2000, arrays.ITEM)

        def once():
            trace = vmpt.open((small, 1))
            decoder = trace.streams[0].decode()
            decoder.items(out)
            next(trace.streams[0].slices())
            trace.close()
        grown, files = growth(once, 3500)
        # 1 KiB each would be 875 pages.
        self.assertLess(grown, 400)
        self.assertEqual(files, 0)

    def test_leaks_of_errors(self):
        bad = write("bad", b"PERFILE2" + bytes(200))

        def once():
            for name in ("/nonexistent", bad):
                try:
                    vmpt.open(demo.files[0], name)
                except vmpt.Error:
                    pass
            with vmpt.open(demo.files[0]) as trace:
                try:
                    trace.clocks(given=[vmpt.Given(1, vmpt.TscMap(0, 0))])
                except vmpt.Error:
                    pass
        grown, files = growth(once, 800)
        self.assertLess(grown, 150)
        self.assertEqual(files, 0)


class Threads(unittest.TestCase):
    def run_all(self, *functions):
        errors = []

        def guarded(function):
            try:
                function()
            except BaseException as error:
                errors.append(error)
        threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])

    def test_parallel(self):
        """A stream each."""
        sums = {}

        def count(i):
            out = np.empty(1000, arrays.ITEM)
            with vmpt.open(*demo.files) as trace:
                for _ in range(5):
                    with trace.streams[i % 2].decode() as decoder:
                        n = 0
                        while len(view := decoder.items(out)):
                            n += len(view)
                    self.assertEqual(sums.setdefault(i % 2, n), n)
        self.run_all(*[lambda i=i: count(i) for i in range(6)])

    def test_one_decoder(self):
        """All threads read the same decoder: each item comes once."""
        with vmpt.open(*demo.files) as trace:
            with trace.streams[0].decode() as decoder:
                want = 0
                while n := len(decoder.items(np.empty(1000, arrays.ITEM))):
                    want += n
            decoder = trace.streams[0].decode()
            counts = []

            def read():
                out, n = np.empty(100, arrays.ITEM), 0
                while m := len(decoder.items(out)):
                    n += m
                counts.append(n)
            self.run_all(*[read] * 5)
            self.assertEqual(sum(counts), want)

    def test_one_iterator(self):
        """All threads iterate over the same packets, slices and spans."""
        with vmpt.open(*demo.files) as trace:
            for make in (trace.streams[1].decode, trace.streams[1].slices, trace.timeline):
                want = sum(1 for _ in make())
                iterator, counts = make(), []
                self.run_all(*[lambda: counts.append(sum(1 for _ in iterator))] * 4)
                self.assertEqual(sum(counts), want)

    def test_close_meanwhile(self):
        """Another thread closes the trace while these read."""
        for _ in range(30):
            trace = vmpt.open(*demo.files, threads=2)
            began = threading.Barrier(4)

            def read(what):
                began.wait()
                try:
                    what()
                except ValueError as error:
                    self.assertIn("closed", str(error))

            def items():
                out = np.empty(64, arrays.ITEM)
                with trace.streams[0].decode() as decoder:
                    while len(decoder.items(out)):
                        pass

            def close():
                began.wait()
                trace.close()
            self.run_all(lambda: read(items), lambda: read(lambda: [p for p in trace.streams[1].decode()]),
                         lambda: read(lambda: list(trace.timeline())), close)

    def test_close_in_callback(self):
        """The trace is closed while it is extracted from: the call ends as if it were open."""
        trace = vmpt.open(*demo.files)

        class Sink:
            size = 0

            def write(self, data):
                trace.close()
                self.size += len(data)
        sink = Sink()
        self.assertEqual(len(trace.streams[0].extract(lambda n, o: sink)), 3)
        self.assertGreater(sink.size, os.path.getsize(demo.files[0][0]))
        with self.assertRaises(ValueError):
            trace.streams[0].read(0, 1)

    def test_gil(self):
        """Python goes on while the library works."""
        size = 1 << 29
        with open(path("zero.pt"), "wb") as file:
            file.truncate(size)
        with vmpt.open(path("zero.pt")) as trace:
            done = threading.Event()
            ticks = 0
            thread = threading.Thread(target=lambda: (trace.find_vms(), done.set()))
            thread.start()
            while not done.wait(0.001):
                ticks += 1
            thread.join()
        os.unlink(path("zero.pt"))
        self.assertGreater(ticks, 5)


class Version(unittest.TestCase):
    def test_version(self):
        self.assertEqual(vmpt.__version__, subprocess.check_output([support.VMPT, "--version"], text=True).split()[-1])

    def test_other_library(self):
        """A library of another version: its import says so."""
        for call in ("vmpt_clocks_open_abi", "vmpt_timeline_open_abi", "vmpt_trace_open_perf_abi"):
            write("other.c", f"int {call}(void); int {call}(void) {{ return -19; }}\n".encode())
            subprocess.run([*os.environ["VMPT_CC"].split(), "-shared", "-fPIC", "-o", path("other.so"),
                            path("other.c")], check=True)
            done = python("import vmpt", LD_PRELOAD=path("other.so"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("ImportError: the module vmpt", done.stdout)

    def test_without_numpy(self):
        done = python(f"""
import sys
sys.modules["numpy"] = None
import vmpt
print(sum(s.size for s in vmpt.open({demo.files[0][0]!r}).streams[0].slices()))
try:
    import vmpt.arrays
except ImportError:
    print("no arrays")
""")
        self.assertEqual(done.stdout, f"{os.path.getsize(demo.files[0][0])}\nno arrays\n")

    def test_names(self):
        """All that is public has a docstring."""
        for name in vmpt.__all__:
            thing = getattr(vmpt, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
                for member, value in vars(thing).items() if isinstance(thing, type) else ():
                    if not member.startswith("_") and callable(value) and not isinstance(value, type):
                        self.assertTrue(value.__doc__, f"{name}.{member}")


if __name__ == "__main__":
    support.main()
