// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Lanes and their levels of detail, colours, and numbers as people read them.

const $ = (id) => document.getElementById(id);
const meta = JSON.parse($('meta').textContent);
const hz = meta.hz > 0 ? meta.hz : 0, unitName = meta.unit || 'ticks', bytes = unitName === 'bytes';
const zero = BigInt(meta.zero || 0), begin = Number(meta.begin) || 0;
let spans, hists, cpuGrid, vcpuGrid, lanes = [], machine;

// ---- words ----

function make(tag, props, ...children) {
	const el = document.createElement(tag);
	for (const [key, value] of Object.entries(props || {})) {
		if (key === 'class')
			el.className = value;
		else if (key.startsWith('on'))
			el.addEventListener(key.slice(2), value);
		else
			el.setAttribute(key, value);
	}
	el.append(...children.filter((c) => c !== null && c !== undefined));
	return el;
}

const number = (n) => Math.round(n).toLocaleString('en');

const UNITS = [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];

function unitOf(seconds) {
	return UNITS.find(([u]) => Math.abs(seconds) >= u) || UNITS[3];
}

// A stretch of time with about @precision digits.
function time(ticks, precision = 4) {
	if (!hz)
		return number(ticks) + ' ' + unitName;
	if (!ticks)
		return '0';
	const [unit, name] = unitOf(ticks / hz), value = ticks / hz / unit;
	const whole = Math.abs(value) >= 100 ? 3 : Math.abs(value) >= 10 ? 2 : 1;
	const digits = Math.min(unit === 1e-9 ? 1 : 3, Math.max(0, precision - whole));
	return value.toFixed(digits) + ' ' + name;
}

function group(text) {
	const [whole, rest] = text.split('.');
	const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009');
	return rest === undefined ? grouped : grouped + '.' + rest;
}

// A point in time, precise enough to distinguish @step. The page's times count from its start.
function point(ticks, step) {
	ticks += begin;
	if (!hz)
		return group(ticks.toFixed(step < 1 ? 1 : 0));
	const [unit, name] = unitOf(step * 1.0000001 / hz);
	const digits = Math.max(0, Math.min(3, -Math.floor(Math.log10(step / hz / unit * 1.0000001))));
	return group((ticks / hz / unit).toFixed(digits)) + ' ' + name;
}

const exact = (ticks) => hz ? group(((begin + ticks) / hz * 1e6).toFixed(3)) + ' µs' :
	number(begin + ticks) + ' ' + unitName;
const hex = (value) => value === null ? '–' : '0x' + value.toString(16);
const tsc = (ticks) => hex(zero + BigInt(Math.round(begin + ticks)));
const cpuName = (i) => (meta.streams[i] || { name: 'stream ' + i }).name;
const lineName = (i) => (meta.lines[i] || { name: 'vCPU?' }).name;
const lineVm = (i) => (meta.lines[i] || { vm: -1 }).vm;
// In its VM's group the VM's name is redundant.
const shortName = (i) => {
	const name = lineName(i), vm = vmName(lineVm(i));
	return name.startsWith(vm + ' ') ? name.slice(vm.length + 1) : name;
};
const vmName = (i) => (meta.vms[i] || { name: 'VM?' }).name;
const reasonOf = (i) => meta.reasons[i] || { name: 'other', source: 0, halted: false };
const guessed = (reason) => reason.source === 3 || reason.source === 4;
const reasonName = (i) => {
	const r = reasonOf(i);
	return (r.number === 65535 ? 'reason unknown' : r.name) + (guessed(r) ? '?' : '') + (r.halted ? ' (halted)' : '');
};

// ---- colours: also distinguishable for the colour-blind (Okabe and Ito; Tol) ----

const VM_COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c6bb1',
	'#9a9a2b'];
const REASON_COLORS = ['#cc6677', '#6f5fc4', '#c9b23c', '#2f8f4e', '#5fb3dc', '#a83f72', '#44aa99',
	'#b07030'];
let theme = {}, reasonRank = [];

function readTheme() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ['bg', 'soft', 'line', 'text', 'dim', 'accent', 'bad', 'lane', 'mark'])
		theme[name] = style.getPropertyValue('--' + name).trim();
	theme.dark = matchMedia('(prefers-color-scheme: dark)').matches;
	theme.host = theme.dark ? '#6b7580' : '#a9b1ba';
	theme.other = theme.dark ? '#565e66' : '#c3c8ce';
	theme.patterns = {};
}

const vmColor = (vm) => vm < 0 ? theme.other : VM_COLORS[vm % VM_COLORS.length];
const reasonColor = (i) => reasonRank[i] < REASON_COLORS.length ?
	REASON_COLORS[reasonRank[i]] : theme.other;

function rankReasons() {
	const ticks = new Map();
	for (const h of hists)
		ticks.set(h.reason, (ticks.get(h.reason) || 0) + (reasonOf(h.reason).halted ? 0 : h.ticks + 1));
	[...ticks].sort((a, b) => b[1] - a[1]).forEach(([reason], rank) => {
		reasonRank[reason] = rank;
	});
}

// ---- levels of detail ----

function addCell(cells, state, count, ticks) {
	const cell = cells.get(state);
	if (cell) {
		cell[0] += count;
		cell[1] += ticks;
	} else {
		cells.set(state, [count, ticks]);
	}
}

// A lane's level from cells by bucket; by state, so that they are stacked alike everywhere.
function levelOf(buckets) {
	const level = { index: [], at: [0], state: [], count: [], ticks: [] };
	for (const [bucket, cells] of [...buckets].sort((a, b) => a[0] - b[0])) {
		for (const [state, [count, ticks]] of [...cells].sort((a, b) => a[0] - b[0])) {
			level.state.push(state);
			level.count.push(count);
			level.ticks.push(ticks);
		}
		level.index.push(bucket);
		level.at.push(level.state.length);
	}
	return level;
}

// Adds @lane's cells to @buckets: bucket by @bucketOf, state by @stateOf.
function addCells(buckets, lane, bucketOf, stateOf) {
	for (let i = 0; i < lane.index.length; i++) {
		const bucket = bucketOf(lane.index[i]);
		if (!buckets.has(bucket))
			buckets.set(bucket, new Map());
		const cells = buckets.get(bucket);
		for (let c = lane.at[i]; c < lane.at[i + 1]; c++)
			addCell(cells, stateOf(lane.state[c]), lane.count[c], lane.ticks[c]);
	}
	return buckets;
}

// Pairs of buckets as one.
const coarser = (lane) => levelOf(addCells(new Map(), lane, (bucket) => bucket >>> 1, (state) => state));

class Shares {
	constructor(grid, lane) {
		this.width = grid.width;
		this.levels = [levelOf(addCells(new Map(), lane, (bucket) => bucket, (state) => state))];
	}
	level(n) {
		while (this.levels.length <= n)
			this.levels.push(coarser(this.levels[this.levels.length - 1]));
		return this.levels[n];
	}
	// Calls @fn(from, to, cells' first, cells' end, level) for the buckets in [t0, t1].
	visit(n, t0, t1, fn) {
		const level = this.level(n), width = this.width * 2 ** n;
		for (let i = lower(level.index, Math.floor(t0 / width));
		     i < level.index.length && level.index[i] * width < t1; i++)
			fn(level.index[i] * width, width, level.at[i], level.at[i + 1], level, i);
	}
}

// The first index whose value is not below @value.
function lower(array, value) {
	let low = 0, high = array.length;
	while (low < high) {
		const mid = (low + high) >>> 1;
		if (array[mid] < value)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

class Lane {
	constructor(kind, id, name, vm, shares, items) {
		Object.assign(this, { kind, id, name, vm, shares });
		this.items = Uint32Array.from(items).sort((a, b) => spans.start[a] - spans.start[b]);
		this.starts = Float64Array.from(this.items, (i) => spans.start[i]);
		// The longest span limits how far back to search for open ones.
		this.reach = this.items.reduce((max, i) => Math.max(max, this.length(i)), 0);
		this.dropped = this.countDropped();
		this.complete = this.dropped.every((n) => !n);
	}
	// With the time out of the guest in a vCPU's lane.
	length(i) {
		return spans.length[i] + (this.kind === 'vcpu' ? spans.gap[i] : 0);
	}
	// By bucket: the spans that began there and are not kept.
	countDropped() {
		const level = this.shares.levels[0], dropped = new Float64Array(level.index.length);
		for (let b = 0; b < dropped.length; b++)
			for (let c = level.at[b]; c < level.at[b + 1]; c++)
				if (this.kind === 'cpu' || level.state[c] === RUNS)
					dropped[b] += level.count[c];
		for (const start of this.starts) {
			const bucket = Math.floor(start / this.shares.width), b = lower(level.index, bucket);
			if (level.index[b] === bucket)
				dropped[b]--;
		}
		return dropped;
	}
	// Indices in .items of the spans in [t0, t1].
	range(t0, t1) {
		return [lower(this.starts, t0 - this.reach), lower(this.starts, t1)];
	}
	droppedIn(t0, t1) {
		if (this.complete)
			return 0;
		let n = 0;
		const level = this.shares.levels[0], width = this.shares.width;
		for (let b = lower(level.index, Math.floor(t0 / width));
		     b < level.index.length && level.index[b] * width < t1; b++)
			n += this.dropped[b];
		return n;
	}
	// The span at @t; in a vCPU's lane also the exit after it. null: none is kept.
	at(t, slack) {
		let best = null, far = slack;
		for (let [k, end] = this.range(t - slack, t + slack); k < end; k++) {
			const i = this.items[k], from = spans.start[i], run = from + spans.length[i];
			const to = from + this.length(i);
			const away = t < from ? from - t : t > to ? t - to : 0;
			if (away < far || (away === far && away === 0 && best === null)) {
				best = { lane: this, i, part: t > run && to > run ? 'gap' : 'run' };
				far = away;
			}
			if (away === 0)
				best = { lane: this, i, part: t >= run && to > run ? 'gap' : 'run' };
		}
		return best;
	}
	sharesAt(t) {
		let found = null;
		this.shares.visit(0, t, t + 1, (from, width, first, end, level, b) => {
			if (from <= t && t < from + width)
				found = { lane: this, from, width, first, end, level, b };
		});
		return found;
	}
}

// All CPUs' shares in one: the host, each VM, unknown, lost.
function sumCpus() {
	const buckets = new Map();
	for (const lane of cpuGrid.lanes)
		addCells(buckets, lane, (bucket) => bucket,
			(state) => state < STATES ? state : STATES + Math.max(0, lineVm(state - STATES)));
	return new Shares(cpuGrid, levelOf(buckets));
}

async function load() {
	const reader = new Reader(await unpack($('data').textContent));
	cpuGrid = readGrid(reader);
	vcpuGrid = readGrid(reader);
	hists = readHists(reader);
	spans = readSpans(reader);
	rankReasons();
	machine = sumCpus();
	const byCpu = meta.streams.map(() => []), byLine = meta.lines.map(() => []);
	for (let i = 0; i < spans.n; i++) {
		if (byCpu[spans.stream[i]])
			byCpu[spans.stream[i]].push(i);
		if (spans.line[i] >= 0 && byLine[spans.line[i]])
			byLine[spans.line[i]].push(i);
	}
	lanes.push({ kind: 'host', id: -1, name: 'host', vm: -1 });
	meta.streams.forEach((stream, i) => {
		lanes.push(new Lane('cpu', i, stream.name, -1, new Shares(cpuGrid, cpuGrid.lanes[i]), byCpu[i]));
	});
	meta.lines.forEach((line, i) => {
		if (vcpuGrid.lanes[i])
			lanes.push(new Lane('vcpu', i, line.name, line.vm, new Shares(vcpuGrid, vcpuGrid.lanes[i]),
				byLine[i]));
	});
}
