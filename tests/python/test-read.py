#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What is read: compared with the generator's truth, which is made without the decoder, and with the
command's JSON, which is made by the same library on another way."""
import io
import os
import pickle
import random
import re
import subprocess
import unittest

import support
import vmpt
from support import CORPUS, Generated, command, path, write
from vmpt import Begin, Edge, ErrorCode, Isa, Kind, OwnerKind, SpanKind, Sure

demo = Generated("demo")

# Two VMs, as tests/cli/cli-run.h describes it byte by byte.
PSB = bytes([2, 0x82] * 8)
PSBEND = bytes([2, 0x23])


def pip(cr3, nr):
    return bytes([2, 0x43]) + (cr3 >> 5 << 1 | nr).to_bytes(6, "little")


def vmcs(pointer):
    return bytes([2, 0xC8]) + (pointer >> 12).to_bytes(5, "little")


def tip(ip, header=0x6D):
    return bytes([header]) + (ip & (1 << 48) - 1).to_bytes(6, "little")


def mixed():
    host = 0xFFFFFFFF81000000
    return (PSB + pip(0x1000, 0) + vmcs(0xA000) + PSBEND + b"\x06" * 3 + pip(0x2000, 1) + tip(0x401000) +
            b"\x06" * 2 + tip(0x401010, 0x7D) + pip(0x1000, 0) + tip(host) + vmcs(0xB000) + b"\x06" +
            pip(0x3000, 1) + tip(0x402000) + b"\x06")


# PSB, FUP.PGE, TIP; as tests/install/check-install.sh has them.
RTIT = (bytes([0xC0] + [0] * 8) + b"\x85\x00\x10\x40\x00" + b"\xb0\x00\x20") * 20


class Bytes(unittest.TestCase):
    """A trace written by hand."""

    def setUp(self):
        self.trace = vmpt.open((write("mixed.pt", mixed()), 5))
        self.stream = self.trace.streams[0]

    def test_stream(self):
        self.assertEqual((self.stream.cpu, self.stream.tid, self.stream.isa, self.stream.size, self.stream.index),
                         (5, None, Isa.PT, 99, 0))
        self.assertEqual(self.stream.extents, ((0, 99, 0),))
        self.assertEqual(self.stream.gaps, ())
        self.assertEqual(self.stream.read(0, 16), PSB)
        self.assertEqual(self.stream.read(98, 100), b"\x06")
        self.assertEqual(self.stream.read(1000, 1), b"")
        self.assertEqual(self.stream.file_offset(7), 7)
        with self.assertRaises(ValueError):
            self.stream.read(-1, 1)
        self.assertIn("cpu=5", repr(self.stream))

    def test_slices(self):
        host, any_vm, other = OwnerKind.HOST, OwnerKind.VM, 0
        want = [(0, 36, host, other, Begin.PSB, (0x1000,)), (36, 24, any_vm, 0xA000, Begin.ENTRY, (0x2000,)),
                (60, 23, host, other, Begin.EXIT, (0x1000,)), (83, 16, any_vm, 0xB000, Begin.ENTRY, (0x3000,))]
        got = [(s.offset, s.size, s.owner.kind, s.owner.vmcs, s.begin, s.cr3s) for s in self.stream.slices()]
        self.assertEqual(got, want)
        last = list(self.stream.slices())[-1]
        self.assertEqual((last.end, last.unproven, last.loss, last.first_tsc, last.owner.sure),
                         (99, False, None, None, Sure.KNOWN))
        self.assertEqual((str(last.owner), repr(last.owner)),
                         ("b000", "Owner(OwnerKind.VM, vmcs=0xb000, sure=Sure.KNOWN)"))

    def test_packets(self):
        packets = list(self.stream.decode())
        names = ["PSB", "PIP", "VMCS", "PSBEND"] + ["TNT-8"] * 3 + ["PIP", "TIP", "TNT-8", "TNT-8", "FUP", "PIP",
                 "TIP", "VMCS", "TNT-8", "PIP", "TIP", "TNT-8"]
        self.assertEqual([p.name for p in packets], names)
        self.assertEqual(packets[8].payload, 0x401000)
        self.assertEqual(packets[8].kind, Kind.TIP)
        self.assertEqual(self.stream.text(packets[8]), "TIP 0x401000 011b")
        self.assertEqual(self.stream.text(packets[1]), "PIP cr3=0x1000")
        self.assertEqual(self.stream.text(packets[7]), "PIP cr3=0x2000 nr")
        self.assertEqual(sum(p.size for p in packets), 99)
        self.assertIsNone(packets[0].time)

    def test_loss(self):
        """Bytes before the first PSB, and a byte that begins no packet."""
        data = b"\x06\x06" + mixed() + b"\x02\x7f"
        stream = vmpt.open(write("loss.pt", data)).streams[0]
        first, *_, last = stream.decode()
        self.assertEqual((first.kind, first.offset, first.size, first.loss), (Kind.LOSS, 0, 2, ErrorCode.SYNC))
        self.assertEqual((last.kind, last.offset, last.size, last.loss, last.name),
                         (Kind.LOSS, 101, 2, ErrorCode.OPCODE, "LOST"))
        self.assertTrue(stream.text(last).startswith("LOST 2 bytes: "))
        self.assertEqual(next(stream.slices()).loss, ErrorCode.SYNC)
        headless = vmpt.open(path("loss.pt"), headless=True).streams[0]
        self.assertEqual(next(headless.decode()).kind, Kind.TNT_8)

    def test_vms(self):
        self.assertEqual(self.trace.find_vms(), (vmpt.Vms.SEEN, 0, 24, Kind.VMCS))
        alone = write("user.pt", PSB + PSBEND + b"\x06")
        with vmpt.open(alone) as trace:
            self.assertEqual(trace.find_vms().vms, vmpt.Vms.UNSAID)
            self.assertEqual(next(trace.streams[0].slices()).owner.kind, OwnerKind.UNKNOWN)
        with vmpt.open(alone, host_only=None) as trace:
            self.assertEqual(next(trace.streams[0].slices()).owner.kind, OwnerKind.HOST)
        with vmpt.open(alone, guest_only=vmpt.GuestOnly.YES) as trace:
            self.assertEqual(next(trace.streams[0].slices()).owner.kind, OwnerKind.VM_ANY)
        with vmpt.open(path("mixed.pt"), host_only=None) as trace:
            self.assertEqual([s.owner.vmcs for s in trace.streams[0].slices()], [0, 0xA000, 0, 0xB000])

    def test_rtit(self):
        with vmpt.open(write("a.rtit", RTIT)) as trace:
            self.assertEqual((trace.info.isa, trace.streams[0].isa), (Isa.RTIT, Isa.RTIT))
            stream = trace.streams[0]
            packets = list(stream.decode())
            self.assertEqual([p.name for p in packets[:3]], ["PSB", "FUP.PGE", "TIP"])
            self.assertEqual([p.kind for p in packets[:3]], [Kind.RTIT_PSB, Kind.RTIT_PGE, Kind.RTIT_TIP])
            self.assertTrue(stream.text(packets[2]).startswith("TIP cnt=0 "), stream.text(packets[2]))
            with self.assertRaises(vmpt.Error) as caught:
                trace.timeline()
            self.assertEqual(caught.exception.code, ErrorCode.UNSUPPORTED)
        with vmpt.open(path("a.rtit"), isa=Isa.PT) as trace:
            self.assertEqual(trace.streams[0].isa, Isa.PT)


class Opening(unittest.TestCase):
    def error(self, code, *args, **options):
        with self.assertRaises(vmpt.Error) as caught:
            vmpt.open(*args, **options)
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    def test_missing(self):
        error = self.error(ErrorCode.IO, "/nonexistent/a")
        self.assertEqual(error.path, "/nonexistent/a")
        self.assertIn("No such file", str(error))
        self.error(ErrorCode.IO, demo.files[0], "/nonexistent/b")
        self.error(ErrorCode.IO, CORPUS)
        with self.assertRaises(ValueError):
            vmpt.open()
        with self.assertRaises(ValueError):
            vmpt.open("a\0b")
        with self.assertRaises(TypeError):
            vmpt.open(5)
        with self.assertRaises(OverflowError):
            vmpt.open(demo.files[0], threads=-1)
        with self.assertRaises(ValueError):
            vmpt.open(demo.files[0], guest_only=7)
        with self.assertRaisesRegex(TypeError, "a path, or a tuple"):
            vmpt.open((demo.files[0], 0, 1))

    def test_types(self):
        """What is not clocks is a TypeError; classes are those of vmpt, and packets can be pickled."""
        with vmpt.open(demo.files[0]) as trace:
            self.assertEqual(repr(trace), "<vmpt.Trace: RAW, 1 stream>")
            for call in trace.streams[0].decode, trace.timeline, trace.names:
                with self.assertRaisesRegex(TypeError, "clocks are needed, not int"):
                    call(0)
            packet = next(trace.streams[0].decode())
        self.assertEqual(pickle.loads(pickle.dumps(packet)), packet)
        for name in vmpt.__all__:
            if isinstance(getattr(vmpt, name), type):
                self.assertEqual(getattr(vmpt, name).__module__, "vmpt", name)
        self.assertEqual(repr(vmpt.Time(16, 2, None)), "Time(0x10, -2, +?)")

    def test_damaged(self):
        with open(os.path.join(CORPUS, "file-0"), "rb") as file:
            data = bytearray(file.read())
        data[16:24] = b"\xff" * 8  # perf_file_header.attr_size
        error = self.error(ErrorCode.FORMAT, write("bad.data", data))
        self.assertTrue(error.text and error.path == path("bad.data"))
        self.assertTrue(error.offset is not None)
        data[0] = 0
        self.error(ErrorCode.FORMAT, write("bad.magic", data))

    def test_mixed_isa(self):
        self.error(ErrorCode.INVAL, write("m.pt", mixed()), write("m.rtit", RTIT))
        self.error(ErrorCode.INVAL, os.path.join(CORPUS, "file-0"), isa=Isa.RTIT)

    def test_hostile(self):
        """Damaged files: an error of the library or what can be read, and every byte is in a slice."""
        chance = random.Random(20)
        read = 0
        for name in sorted(os.listdir(CORPUS)):
            with open(os.path.join(CORPUS, name), "rb") as file:
                good = file.read()
            for _ in range(25):
                data = bytearray(good)
                for _ in range(chance.randrange(1, 12)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                try:
                    trace = vmpt.open(write("hostile", data[:chance.randrange(len(data) // 2, len(data) + 1)]))
                except vmpt.Error as error:
                    self.assertTrue(error.text)
                    continue
                if not trace.streams:
                    with self.assertRaises(ValueError):
                        trace.timeline()
                    continue
                read += 1
                with trace, trace.clocks() as clocks:
                    for stream in trace.streams:
                        self.assertEqual(sum(s.size for s in stream.slices()), stream.size)
                        packets = list(stream.decode(clocks))
                        self.assertEqual(sum(p.size for p in packets), stream.size)
                        self.assertTrue(all(stream.text(p) for p in packets))
                        stream.extract(lambda number, owner: io.BytesIO())
                    list(trace.events()), trace.names(clocks), list(trace.timeline(clocks)), trace.find_vms()
        self.assertGreater(read, 100)

    def test_truncated(self):
        """Part of a perf.data is read, and a warning says so."""
        with open(os.path.join(CORPUS, "file-0"), "rb") as file:
            data = file.read()
        with vmpt.open(write("cut.data", data[:1400])) as trace:
            self.assertTrue(trace.info.incomplete)
            self.assertTrue(trace.warning)

    def test_perf(self):
        """As write_trace() of tests/decoder/make-perf-corpus.c made it."""
        with vmpt.open(os.path.join(CORPUS, "file-0")) as trace:
            self.assertEqual(trace.info.format, vmpt.TraceFormat.PERF)
            self.assertEqual([(s.cpu, s.size) for s in trace.streams], [(0, 130 + 200 + 256), (1, 64)])
            flags = vmpt.GapFlags
            self.assertEqual(trace.streams[0].gaps, ((130, flags.TRUNCATED | flags.PARTIAL), (330, flags.LOST)))
            self.assertEqual([e.offset for e in trace.streams[0].extents], [0, 130, 330])
            for extent in trace.streams[0].extents:
                self.assertEqual(trace.streams[0].file_offset(extent.offset + 5), extent.file_offset + 5)
                with open(os.path.join(CORPUS, "file-0"), "rb") as file:
                    file.seek(extent.file_offset)
                    self.assertEqual(trace.streams[0].read(extent.offset, 40), file.read(40))
            self.assertEqual((trace.info.lost_events, trace.info.truncated_buffers), (2, 1))
            info = trace.info
            self.assertEqual((info.has_time_conv, info.time_shift, info.time_mult, info.time_zero),
                             (True, 31, 672770566, 0x1234567890))
            self.assertAlmostEqual(info.tsc_hz, 1e9 * 2**31 / 672770566)
            tsc = 0x6050403020100
            ns = 0x1234567890 + (tsc * 672770566 >> 31)
            self.assertEqual(trace.perf_time(tsc), ns)
            self.assertLess(abs(trace.tsc(ns) - tsc), 8)
        with vmpt.open(*demo.files) as trace, self.assertRaises(ValueError):
            trace.perf_time(5)

    def test_pipe(self):
        with open(demo.files[0][0], "rb") as file:
            data = file.read()
        code = "import vmpt; print([s.size for s in vmpt.open('-').streams])"
        done = subprocess.run([support.sys.executable, "-c", code], input=data, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.decode().strip(), f"[{len(data)}]")

    def test_paths(self):
        name = path("ä b.pt").encode()
        write("ä b.pt", mixed())
        for kind in (name, os.fsdecode(name), support.os.path.join(path(""), "ä b.pt")):
            with vmpt.open(kind) as trace:
                self.assertEqual(trace.streams[0].size, 99)


class Truth(unittest.TestCase):
    """Scripts of the generator."""

    def owners(self, script):
        made = Generated(script)
        names = {int(vm["vmcs"], 16): name for name, vm in made.vms.items()}
        with vmpt.open(*made.files) as trace:
            for stream in trace.streams:
                truth = made.of("range", stream.cpu)
                got = []
                for s in stream.slices():
                    name = names.get(s.owner.vmcs, "host") if s.owner.kind == OwnerKind.VM else s.owner.kind.name
                    if got and got[-1][2] == name:
                        got[-1] = (got[-1][0], got[-1][1] + s.size, name)
                    else:
                        got.append((s.offset, s.size, name))
                want = [(r["offset"], r["size"], r["owner"].replace("host", "HOST")) for r in truth]
                self.assertEqual(got, want, script)

    def test_owners(self):
        for script in ("demo", "cpus", "nested-calls", "failed-entry"):
            self.owners(script)

    def test_packets(self):
        for script in ("example", "timing", "context"):
            made = Generated(script)
            with vmpt.open(*made.files) as trace:
                for stream in trace.streams:
                    truth = made.of("packet", stream.cpu)
                    got = [(p.offset, p.size, p.name) for p in stream.decode()]
                    self.assertEqual(got, [(t["offset"], t["size"], t["kind"]) for t in truth], script)
                    ips = {t["offset"]: int(t["ip"], 16) for t in truth if "ip" in t}
                    for p in stream.decode():
                        if p.name in ("TIP", "TIP.PGE", "FUP") and p.aux:
                            self.assertEqual(p.payload, ips[p.offset])

    def test_clocks(self):
        with vmpt.open(*demo.files) as trace, trace.clocks() as clocks:
            self.assertEqual(clocks.base, vmpt.TimeBase.HOST)
            self.assertEqual(sorted(clocks.vmcss), sorted(int(vm["vmcs"], 16) for vm in demo.vms.values()))
            for vm in demo.vms.values():
                (epoch,) = clocks.epochs(int(vm["vmcs"], 16))
                self.assertEqual(epoch.map.multiplier, vm["tsc_mult"])
                off = (epoch.map.offset - vm["tsc_offset"] + 2**63) % 2**64 - 2**63
                self.assertLessEqual(abs(off), epoch.offset_error)
                host = epoch.start + 12345
                true = (host * vm["tsc_mult"] >> 48) + vm["tsc_offset"]
                self.assertLessEqual(abs(epoch.map.to_guest(host) - true), epoch.offset_error)
                self.assertLessEqual(abs(epoch.map.to_host(true, host) - host), 2 * epoch.offset_error)
                self.assertEqual(clocks.at(int(vm["vmcs"], 16), host), epoch)
            self.assertEqual((clocks.epochs(1), clocks.at(1, 0), clocks.base_vmcs), ([], None, None))

    def test_given(self):
        vm = demo.vms["web"]
        vmcs, offset = int(vm["vmcs"], 16), vm["tsc_offset"] % 2**64
        with vmpt.open(*demo.files) as trace:
            with trace.clocks(given=[vmpt.Given(vmcs, vmpt.TscMap(offset))]) as clocks:
                (epoch,) = clocks.epochs(vmcs)
                self.assertEqual((epoch.source, epoch.map), (vmpt.MapSource.USER, (offset, 1 << 48)))
            # Its own rates, given.
            with trace.clocks(vmpt.Rates(84, 1, 0, 3)) as clocks:
                self.assertEqual(clocks.rates[:4], (84, 1, 0, 3))
            with self.assertRaises(vmpt.Error):
                trace.clocks(given=[vmpt.Given(vmcs, vmpt.TscMap(0, 0))])

    def test_exits(self):
        with vmpt.open(*demo.files) as trace:
            exits = {}
            for s in trace.timeline().exits():
                exits[s.owner.vmcs, s.stream] = exits.get((s.owner.vmcs, s.stream), 0) + 1
            for line in demo.of("count"):
                if line["owner"] != "host":
                    key = int(demo.vms[line["owner"]]["vmcs"], 16), line["cpu"]
                    self.assertEqual(exits.get(key, 0), line["seen_exits"])

    def test_times(self):
        """Each packet was made between the bounds of its time."""
        with vmpt.open(*demo.files) as trace, trace.clocks() as clocks:
            for stream in trace.streams:
                truth = {t["offset"]: t for t in demo.of("packet", stream.cpu) if t["owner"] == "host"}
                checked = 0
                for p in stream.decode(clocks):
                    if p.offset in truth and p.time and None not in p.time:
                        checked += 1
                        at = truth[p.offset]["tsc"]
                        self.assertTrue(p.time.tsc - p.time.early <= at <= p.time.tsc + p.time.late, p)
                self.assertGreater(checked, 1000)


class Host(unittest.TestCase):
    """A perf.data with KVM's events: the names of VMs, the reasons of exits."""

    SHIFT, MULT, ZERO = 31, 672770566, 0x1234567890  # tests/decoder/perf-writer.h
    REASON = {"web": 30, "db": 48}
    PID = {"web": 701, "db": 702}

    @classmethod
    def setUpClass(cls):
        cls.names = {int(vm["vmcs"], 16): name for name, vm in demo.vms.items()}
        lines = [f"comm {pid} {name} {cls.ns(0x10000000)}" for name, pid in cls.PID.items()]
        cls.runs = 0
        with vmpt.open(*demo.files) as trace:
            for s in trace.timeline():
                if s.kind != SpanKind.GUEST or not s.exit:
                    continue
                name = cls.names[s.owner.vmcs]
                where = f"{cls.PID[name]} {trace.streams[s.stream].cpu}"
                cls.runs += 1
                lines += [f"switch 0 {where} {cls.ns(s.start.tsc - 150)}",
                          f"entry 4 {0x1000} {where} {cls.ns(s.start.tsc - 150)}",
                          f"exit 4 {s.exit.ip} {cls.REASON[name]} {where} {cls.ns(s.end.tsc + 150)}",
                          f"switch 8192 {where} {cls.ns(s.end.tsc + 150)}"]
        lines += [f"trace {cpu} {file}" for file, cpu in demo.files]
        subprocess.run([os.environ["PERF_HOST"], path("host.data")], input="\n".join(lines).encode(), check=True)

    @classmethod
    def ns(cls, tsc):
        return cls.ZERO + (tsc * cls.MULT >> cls.SHIFT)

    def test_events(self):
        with vmpt.open(path("host.data")) as trace:
            events = list(trace.events())
            self.assertEqual(len(events), 2 + 4 * self.runs)
            comms = {(e.pid, e.text) for e in events if e.kind == vmpt.EventKind.COMM}
            self.assertEqual(comms, {(701, "web"), (702, "db")})
            times = [e.time for e in events]
            self.assertEqual(times, sorted(times))
            for e in events:
                self.assertLess(abs(self.ns(e.tsc) - e.time), 2)
                if e.kind == vmpt.EventKind.KVM_EXIT:
                    self.assertEqual(e.reason, {701: 30, 702: 48}[e.pid])
                    self.assertEqual((e.vcpu, e.flag, e.text), (4, False, None))
                elif e.kind != vmpt.EventKind.KVM_ENTRY:
                    self.assertEqual((e.vcpu, e.reason), (None, None))

    def test_names(self):
        with vmpt.open(path("host.data")) as trace, trace.clocks() as clocks:
            names = trace.names(clocks)
            self.assertEqual({(n.vmcs, n.pid, n.tid, n.vcpu) for n in names},
                             {(vmcs, self.PID[name], self.PID[name], 4) for vmcs, name in self.names.items()})
            for vmcs, name in self.names.items():
                self.assertIn(name, names.at(vmcs, 0x10100000).vm)
            self.assertIsNone(names.at(1, 0x10100000))
            self.assertIsNone(names.at(1 << 63, 0x10100000))
            self.assertEqual((len(names), list(names)), (2, [names[0], names[1]]))

    def test_reasons(self):
        with vmpt.open(path("host.data"), threads=2) as trace:
            exits = list(trace.timeline().exits())
            self.assertEqual(len(exits), self.runs)
            right = sum(s.exit.reason == self.REASON[self.names[s.owner.vmcs]] and
                        s.exit.source == vmpt.ReasonSource.EVENT for s in exits)
            # Times are bounded by MTCs: a few events are of no exit, or of two.
            self.assertGreater(right, 0.9 * self.runs)
            self.assertEqual({s.exit.name for s in exits if s.exit.reason == 30}, {"I/O instruction"})
            doc = command("timeline", path("host.data"))
            want = [o["exit"]["reason"] for o in doc["spans"] if o["kind"] == "guest" and "exit" in o]
            self.assertEqual([s.exit.reason for s in exits], want)


class Command(unittest.TestCase):
    """The same as the command says."""

    def test_dump(self):
        real = os.environ.get("VMPT_DATA", os.path.join(ROOT_DATA, "data/real"))
        files = [demo.files[1][0], os.path.join(CORPUS, "file-1")]
        if os.path.exists(os.path.join(real, "guest-unzip.pt")):
            files.append(os.path.join(real, "guest-unzip.pt"))
            files.append(os.path.join(real, "host-loopy.perf.data"))
        for made in map(Generated, ("events", "damage", "kinds", "concealed")):
            files += [file for file, _ in made.files]
        for file in files:
            with vmpt.open(file, host_only=None) as trace:
                got = [(p.offset, p.size, str(p.owner.kind.name).lower(), p.owner.vmcs if p.owner.kind == 2 else None,
                        None if p.loss else p.name) for stream in trace.streams for p in stream.decode()
                       if p.kind != Kind.PAD]
            want = [(o["offset"], o["size"], o["owner"], int(o["vmcs"], 16) if "vmcs" in o else None, o.get("packet"))
                    for o in command("dump", file) if o.get("packet") != "PAD"]
            self.assertEqual(got, want, file)

    def test_text(self):
        for made in map(Generated, ("events", "kinds", "timing")):
            for file, _ in made.files:
                done = subprocess.run([support.VMPT, "dump", "-q", "--expand-pad", file], stdout=subprocess.PIPE)
                lines = {int(line.split()[0], 16): line for line in done.stdout.decode().splitlines()[1:] if line}
                with vmpt.open(file, host_only=None) as trace:
                    stream = trace.streams[0]
                    for p in stream.decode():
                        if p.kind in (Kind.LOSS, Kind.PAD):
                            continue
                        text = " ".join(lines[p.offset].split())
                        if p.kind == Kind.BIP:  # what depends on the block is left out
                            text = re.sub(r" \[reserved value\]| \(.*\)$", "", text)
                        self.assertTrue(text.endswith(" " + stream.text(p)), (text, stream.text(p)))

    def test_spans(self):
        with vmpt.open(*demo.files) as trace:
            got = [(s.kind.name.lower(), trace.streams[s.stream].cpu, s.offset, s.size,
                    s.owner.vmcs if s.kind == SpanKind.GUEST else None, s.start and s.start.tsc, s.end and s.end.tsc,
                    s.began.name.lower(), s.ended.name.lower(), s.exit and s.exit.ip) for s in trace.timeline()]
        want = [(o["kind"], o["cpu"], o["offset"], o["bytes"], int(o["vmcs"], 16) if "vmcs" in o else None,
                 int(o["tsc"], 16), int(o["end_tsc"], 16), o["began"], o["ended"],
                 int(o["exit"]["ip"], 16) if "exit" in o else None)
                for o in command("timeline", *demo.words)["spans"] if o["kind"] != "exit"]
        self.assertEqual(sorted(got, key=str), sorted(want, key=str))

    def test_clocks(self):
        doc = command("clocks", *demo.words)
        with vmpt.open(*demo.files) as trace, trace.clocks() as clocks:
            self.assertEqual(clocks.rates[:4], (doc["rates"]["tsc_numerator"], doc["rates"]["tsc_denominator"],
                                                doc["rates"]["nominal"], doc["rates"]["mtc_freq"]))
            for i, want in enumerate(doc["streams"]):
                counts = clocks.counts(i)._asdict()
                for key in ("tscs", "guest_tscs", "tmas", "mtcs", "cycs", "cbrs"):
                    self.assertEqual(counts[key], want[key])
            with self.assertRaises(IndexError):
                clocks.counts(2)

    def test_extract(self):
        """Each owner's stream, as vmpt split writes it."""
        subprocess.run([support.VMPT, "split", "-q", "-o", path("split"), *demo.words], check=True,
                       stdout=subprocess.DEVNULL)
        wrote = {}
        with vmpt.open(*demo.files) as trace:
            for stream in trace.streams:
                out, reports = [], []

                def sink(number, owner, out=out):
                    self.assertEqual(number, len(out))
                    out.append(io.BytesIO())
                    return out[number]
                owners = stream.extract(sink, report=reports.append)
                self.assertEqual(len(reports), sum(1 for _ in stream.slices()))
                for owner, file in zip(owners, out):
                    name = f"vmcs-{owner.vmcs:x}" if owner.kind == OwnerKind.VM else "host"
                    wrote[f"{name}.cpu{stream.cpu}.pt"] = file.getvalue()
        on_disk = {name for name in os.listdir(path("split")) if name.endswith(".pt")}
        self.assertEqual(on_disk, set(wrote))
        for name, data in wrote.items():
            with open(os.path.join(path("split"), name), "rb") as file:
                self.assertTrue(file.read() == data, name)

    def test_extract_one(self):
        """One owner, on the host's clock, VMX hidden: nothing of VMX is left in it."""
        with vmpt.open(*demo.files) as trace, trace.clocks() as clocks:
            out = io.BytesIO()
            (owner,) = trace.streams[0].extract(
                lambda number, owner: out, clocks=clocks, clock=vmpt.ExtractClock.HOST, conceal=True,
                wanted=lambda s: s.owner.vmcs == int(demo.vms["web"]["vmcs"], 16))
            self.assertEqual(owner.vmcs, int(demo.vms["web"]["vmcs"], 16))
        with vmpt.open(write("one.pt", out.getvalue())) as trace:
            self.assertIn(trace.find_vms().vms, (vmpt.Vms.NONE, vmpt.Vms.UNSAID))
            tscs = [p.payload for p in trace.streams[0].decode() if p.kind == Kind.TSC]
            self.assertTrue(tscs and min(tscs) >= 0x10000000)  # where the host's begins

    def test_extract_stops(self):
        with vmpt.open(*demo.files) as trace:
            stream = trace.streams[0]
            with self.assertRaises(ZeroDivisionError):
                stream.extract(lambda number, owner: 1 // 0)
            with self.assertRaises(AttributeError):
                stream.extract(lambda number, owner: object())
            with self.assertRaises(ZeroDivisionError):
                stream.extract(lambda number, owner: None, wanted=lambda s: 1 // 0)
            with self.assertRaises(ZeroDivisionError):
                stream.extract(lambda number, owner: None, report=lambda s: 1 // 0)
            with self.assertRaises(ValueError):
                stream.extract(lambda number, owner: None, clock=vmpt.ExtractClock.HOST)
            self.assertEqual(len(stream.extract(lambda number, owner: None)), 3)


ROOT_DATA = os.path.join(support.ROOT, "..", "shared")

if __name__ == "__main__":
    support.main()
