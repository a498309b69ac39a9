// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Unpacks the data of write.c: shares by bucket, exits by reason, single spans as columns.

const RUNS = 0, UNKNOWN = 1, LOST = 2, OFF = 3, OTHER = 4, STATES = 5, WAITS = 255;
const KIND = { host: 0, guest: 1, unknown: 2, lost: 3, off: 4 };
const MOVED = 1, TIMED = 2, HAS_IP = 4, HAS_QUAL = 8, EXITED = 16;
const KINDS = ['host', 'guest', 'unknown owner', 'lost', 'tracing off'];
const EDGES = ['not seen', 'VM entry', 'VM exit', 'another VMCS', 'tracing', 'cut here'];
const BACKS = ['', 'after a gap: the clock had been estimated too far ahead',
	'the TSC was written or reset', 'another offset or multiplier of the TSC from here on',
	'TSC and MTC disagree: the TSC wins'];
const SURE = ['known', 'assumed', 'uncertain', 'unknown'];
const SOURCES = ['no evidence', 'EVD packet', 'kvm_exit event',
	'guessed from the instruction', 'guessed from the pattern'];

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}
	next() {
		let value = 0, unit = 1, byte;
		do {
			if (this.at >= this.bytes.length)
				throw new Error('the page is cut short');
			byte = this.bytes[this.at++];
			value += (byte & 127) * unit;
			unit *= 128;
		} while (byte & 128);
		return value;
	}
	step() {
		const value = this.next(), half = Math.floor(value / 2);
		return value % 2 ? -half : half;
	}
	raw64() {
		const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 8);
		this.at += 8;
		return view.getBigUint64(0, true);
	}
	column(n, type) {
		const column = new type(n);
		for (let i = 0; i < n; i++)
			column[i] = this.next();
		return column;
	}
	// A table of different values, then an index for each i that has one; -1: it has none.
	values(n, has) {
		const table = new BigUint64Array(this.next()), index = new Int32Array(n);
		for (let i = 0; i < table.length; i++)
			table[i] = this.raw64();
		for (let i = 0; i < n; i++)
			index[i] = has(i) ? this.next() : -1;
		return { table, index, of: (i) => index[i] < 0 ? null : table[index[i]] };
	}
}

async function unpack(text) {
	const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
	const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	return new Uint8Array(await new Response(plain).arrayBuffer());
}

// The nonempty buckets of a lane: cells [at[i], at[i + 1]) are of bucket index[i].
function readLane(reader) {
	const n = reader.next(), index = new Uint32Array(n), at = new Uint32Array(n + 1);
	const state = [], count = [], ticks = [];
	for (let i = 0, bucket = 0; i < n; i++) {
		bucket += reader.next();
		index[i] = bucket;
		for (let cells = reader.next(); cells > 0; cells--) {
			state.push(reader.next());
			count.push(reader.next());
			ticks.push(reader.next());
		}
		at[i + 1] = state.length;
	}
	return { index, at, state, count, ticks };
}

function readGrid(reader) {
	const width = reader.next() || 1, count = reader.next(), lanes = [];
	for (let n = reader.next(); n > 0; n--)
		lanes.push(readLane(reader));
	return { width, count, lanes };
}

function readHists(reader) {
	const all = [];
	for (let n = reader.next(); n > 0; n--) {
		const hist = { line: reader.next(), reason: reader.next(), count: reader.next(),
			timed: reader.next(), ticks: reader.next(), waited: reader.next(), max: reader.next(), bins: [] };
		for (let filled = reader.next(), bin = 0; filled > 0; filled--) {
			bin += reader.next();
			hist.bins.push([bin, reader.next()]);
		}
		all.push(hist);
	}
	return all;
}

function readSteps(reader, n, stream) {
	const steps = new Float64Array(n);
	for (let i = 0; i < n; i++)
		steps[i] = reader.step();
	// The lengths follow; this is what they are added to.
	return (length) => {
		for (let i = 0; i < n; i++)
			if (i && stream[i] === stream[i - 1])
				steps[i] += steps[i - 1] + length[i - 1];
		return steps;
	};
}

function readSpans(reader) {
	const n = reader.next(), s = { n };
	s.stream = reader.column(n, Uint32Array);
	s.kind = reader.column(n, Uint8Array);
	s.edges = reader.column(n, Uint8Array);
	s.flags = reader.column(n, Uint8Array);
	s.back = reader.column(n, Uint8Array);
	const starts = readSteps(reader, n, s.stream), offsets = readSteps(reader, n, s.stream);
	s.length = reader.column(n, Float64Array);
	s.size = reader.column(n, Float64Array);
	s.start = starts(s.length);
	s.offset = offsets(s.size);
	s.line = reader.column(n, Int32Array);
	s.gap = reader.column(n, Float64Array);
	s.waited = reader.column(n, Float64Array);
	s.unknown = reader.column(n, Float64Array);
	s.reason = reader.column(n, Uint8Array);
	s.from = reader.column(n, Uint32Array);
	s.overflows = reader.column(n, Uint32Array);
	s.failed = reader.column(n, Uint32Array);
	s.bound = [0, 1, 2, 3].map(() => reader.column(n, Float64Array));
	s.ip = reader.values(n, (i) => s.flags[i] & HAS_IP);
	s.cr3 = reader.values(n, (i) => s.flags[i] & HAS_IP);
	s.qual = reader.values(n, (i) => s.flags[i] & HAS_QUAL);
	for (let i = 0; i < n; i++)
		s.line[i]--;
	s.sure = s.kind.map((k) => k >> 3);
	s.kind = s.kind.map((k) => k & 7);
	return s;
}

// The lower edge of a bin of page_bin().
function binEdge(bin) {
	return bin < 8 ? bin : (8 + bin % 8) * 2 ** (Math.floor(bin / 8) - 1);
}

function binOf(ticks) {
	if (ticks < 8)
		return Math.floor(ticks);
	const top = Math.floor(Math.log2(ticks));
	return (top - 2) * 8 + Math.floor(ticks / 2 ** (top - 3)) % 8;
}

// The q-th part of the durations in bins {bin: count} is not longer than that.
function quantile(bins, total, q, max) {
	let left = Math.max(1, Math.ceil(total * q));
	for (const [bin, count] of bins) {
		left -= count;
		if (left <= 0)
			return Math.min(max, (binEdge(bin) + binEdge(bin + 1) - (bin < 8 ? 1 : 0)) / 2);
	}
	return max;
}
