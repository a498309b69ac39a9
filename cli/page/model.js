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
	if (!ticks)
		return '0';
	// Tables have no room for more than three digits.
	if (!hz) {
		const [big, letter] = precision > 3 ? [1, ''] : [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']].find(([n]) => ticks >= n) || [1, ''];
		return big > 1 ? Number((ticks / big).toPrecision(3)) + letter : number(ticks) + (precision > 3 ? ' ' + unitName : '');
	}
	const [unit, name] = unitOf(ticks / hz), value = ticks / hz / unit;
	const whole = Math.abs(value) >= 100 ? 3 : Math.abs(value) >= 10 ? 2 : 1;
	const digits = Math.min(unit === 1e-9 ? 1 : 3, Math.max(0, precision - whole));
	return value.toFixed(digits) + ' ' + name;
}

// Whose clock the times are of; the trace's counts from its first time.
const clock = meta.clock || { name: 'start' };

// A point in time with @digits after the second.
function stamp(ticks, digits) {
	const ns = BigInt(clock.zero) + BigInt(clock.utc || 0) * 1000000000n +
		BigInt(Math.round((begin + ticks) / hz * 1e9));
	const s = ns / 1000000000n, two = (n) => String(n).padStart(2, '0');
	const whole = clock.name === 'wall' ? `${two(s / 3600n % 24n)}:${two(s / 60n % 60n)}:${two(s % 60n)}` : s;
	return whole + (digits > 0 ? '.' + String(ns % 1000000000n).padStart(9, '0').slice(0, digits) : '') +
		(clock.name === 'wall' ? '' : ' s');
}

// The same, precise enough to distinguish @step. The unit is that of the trace's end, so all points
// of a page look alike, and what is printed can be given to --from.
function point(ticks, step) {
	if (!hz)
		return (begin + ticks).toFixed(step < 1 ? 1 : 0);
	const digits = (unit) => Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / hz / unit) - 1e-6)));
	if (clock.zero)
		return stamp(ticks, digits(1));
	const [unit, name] = unitOf((begin + view.end) / hz);
	return ((begin + ticks) / hz / unit).toFixed(Math.min(digits(unit), Math.round(9 + Math.log10(unit)))) + ' ' + name;
}

// A time after another one, in the unit of @most.
function relative(ticks, most, step) {
	const [unit, name] = unitOf(most / hz);
	return (ticks / hz / unit).toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / hz / unit) - 1e-6)))) + ' ' + name;
}

const exact = (ticks) => hz ? point(ticks, hz * 1e-9) : number(begin + ticks) + ' ' + unitName;
const clockName = () => !hz ? 'in ' + unitName : !clock.zero ? 'from the start' :
	clock.name === 'wall' ? 'wall clock' : `${clock.name}’s clock`;
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

// How wide a text of that weight is on the page.
function textWidth(weight) {
	const ctx = document.createElement('canvas').getContext('2d'), style = getComputedStyle(document.body);
	ctx.font = `${weight} ${style.fontSize} ${style.fontFamily}`;
	return (text) => ctx.measureText(text).width;
}

// What does not fit loses its middle, or what it begins or ends with like all others that do not fit:
// different names stay different, at last by a number.
function shorten(names, width, measure) {
	const fit = (name, part) => {
		const cut = (keep) => name.slice(0, Math.ceil(keep * part)) + '…' + name.slice(name.length - Math.floor(keep * (1 - part)));
		let keep = name.length - 1;
		if (measure(name) <= width)
			return name;
		while (keep > 1 && measure(cut(keep)) > width)
			keep--;
		return cut(keep);
	};
	const long = [...new Set(names.filter((name) => measure(name) > width))], alike = (at) => long.every((name) => at(name) === at(long[0]));
	const wanted = new Set(names).size;
	let first = 0, last = 0, shown = names;
	if (long.length > 1) {
		while (alike((name) => name[first]))
			first++;
		while (alike((name) => name[name.length - 1 - last]))
			last++;
	}
	const core = (name) => `${first ? '…' : ''}${name.slice(first, Math.max(first, name.length - last))}${last ? '…' : ''}`;
	for (const of of [(name) => name, (name) => long.includes(name) ? core(name) : name])
		for (const part of [0.5, 0.3, 0.7, 0.1, 0.9, 0, 1]) {
			shown = names.map((name) => fit(of(name), part));
			if (new Set(shown).size === wanted)
				return shown;
		}
	// What is around the place where it differs from the one that is most like it.
	const place = (name) => Math.max(...names.filter((other) => other !== name).map((other) => {
		let same = 0;
		while (same < name.length && name[same] === other[same])
			same++;
		return same;
	}));
	const around = (name) => {
		let text = name, keep = name.length, at = place(name);
		for (; keep > 1 && measure(text) > width; keep--) {
			const from = Math.max(0, Math.min(at - Math.floor(keep * 0.7), name.length - keep));
			text = (from ? '…' : '') + name.slice(from, from + keep) + (from + keep < name.length ? '…' : '');
		}
		return text;
	};
	if (names.length < 500)
		shown = names.map((name) => long.includes(name) ? around(name) : name);
	return new Set(shown).size === wanted ? shown :
		names.map((name, i) => long.includes(name) ? fit(`${long.indexOf(name) + 1}·${name}`, 0.7) : shown[i]);
}

// ---- colours ----

// VMs: of medium lightness, and seven patterns for more of them than there are hues. Reasons stand
// out from the background more than any VM: dark on light, light on dark. Both series were chosen for
// their distance as people see it with and without red or green.
const VM_COLORS = ['#2f62e0', '#b8743a', '#3c8c22', '#d63a94', '#2f8a94', '#9a48c4', '#d4342a', '#8577d8'];
const VM_PATTERNS = ['', 'rise', 'fall', 'dots', 'level', 'upright', 'cross'];
const REASON_COLORS = {
	light: ['#1a2f7c', '#7a3a10', '#0b4a3a', '#5a1156', '#5c5a9a', '#4d5a12', '#8c1c4e', '#4f4a40'],
	dark: ['#7cc4ee', '#e8d44d', '#7fd0a0', '#e0c8f5', '#ffa7d3', '#a9c48a', '#f0b890', '#c9efe7'],
};
let theme = {}, reasonRank = [], userTheme = '';

function readTheme() {
	const dark = userTheme ? userTheme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
	document.documentElement.dataset.theme = dark ? 'dark' : 'light';
	const style = getComputedStyle(document.documentElement);
	for (const name of ['bg', 'soft', 'line', 'text', 'dim', 'accent', 'bad', 'lane', 'mark'])
		theme[name] = style.getPropertyValue('--' + name).trim();
	theme.dark = dark;
	theme.host = dark ? '#6b7580' : '#9aa3ad';
	theme.other = dark ? '#565e66' : '#c3c8ce';
	theme.patterns = {};
}

const vmColor = (vm) => vm < 0 || vm >= meta.vms.length ? theme.other : VM_COLORS[vm % VM_COLORS.length];
const vmPattern = (vm) => vm < 0 ? '' : VM_PATTERNS[Math.floor(vm / VM_COLORS.length) % VM_PATTERNS.length];
const reasonColor = (i) => reasonOf(i).halted ? theme.dim : REASON_COLORS[theme.dark ? 'dark' : 'light'][reasonRank[i]] || theme.other;

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
	readFlames(reader);
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
