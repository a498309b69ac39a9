// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The lanes on canvas. Where buckets are narrow, each pixel shows shares of time, stacked; where
// they are wide, single spans on top of the others, which are shown pale and striped.

const GROUP = 20;
const view = { t0: 0, t1: 1, end: 1 };
const picked = { span: null, reason: -1, hits: null, lane: -1 };
let rows = [], hiddenVms = new Set(), showCpus = true, folded = new Set();

// ---- rows ----

function layRows() {
	rows = [{ lane: lanes[0] }];
	// With its chart of calls, where one is in view.
	const laneRows = (row) => row.lane.kind === 'vcpu' && flameDepth(row.lane.id) ? [row, { flame: row.lane }] : [row];
	const addGroup = (key, name, vm, members) => {
		// A lane alone needs no heading.
		if (members.length === 1)
			rows.push(...laneRows({ lane: members[0], name: key === 'cpus' ? members[0].name : name, alone: true }));
		else
			rows.push({ group: key, name, vm, count: members.length },
				...folded.has(key) ? [] : members.flatMap((lane) => laneRows({ lane })));
	};
	if (showCpus)
		addGroup('cpus', 'CPUs', -1, lanes.filter((l) => l.kind === 'cpu'));
	meta.vms.forEach((vm, v) => {
		const members = lanes.filter((l) => l.kind === 'vcpu' && l.vm === v);
		if (members.length && !hiddenVms.has(v))
			addGroup('vm' + v, vm.name, v, members);
	});
	// All the height there is, if it is enough; few lanes do not become walls.
	const fixed = (row) => row.group ? GROUP : row.flame ? flameDepth(row.flame.id) * FRAME + 8 : 0;
	const others = rows.filter((row) => !fixed(row)).length, room = $('scroll').clientHeight - rows.reduce((sum, row) => sum + fixed(row), 0);
	const high = Math.max(22, Math.min(220, Math.floor(room / (others - 0.4))));
	let y = 0;
	for (const row of rows) {
		Object.assign(row, { y, height: fixed(row) || (row === rows[0] ? Math.max(22, Math.floor(high * 0.6)) : high) });
		y += row.height;
	}
	return y;
}

// ---- painting ----

const TILES = {
	unknown: (c) => [[0, 0], [3, 3]].forEach(([x, y]) => c.fillRect(x, y, 1.5, 1.5)),
	dots: (c) => [[0, 0], [4, 4]].forEach(([x, y]) => c.fillRect(x, y, 3, 3)),
	level: (c) => c.fillRect(0, 3, 8, 2),
	upright: (c) => c.fillRect(3, 0, 2, 8),
	fence: (c) => [0, 4].forEach((x) => c.fillRect(x, 0, 2, 8)),
	cross: (c) => {
		c.fillRect(0, 3, 8, 1.5);
		c.fillRect(3, 0, 1.5, 8);
	},
	// Slanted lines, also for what is lost, and for shares.
	slant: (c, size, way) => {
		c.beginPath();
		for (const x of [-size, 0, size]) {
			c.moveTo(x, way > 0 ? size : 0);
			c.lineTo(x + size, way > 0 ? 0 : size);
		}
		c.stroke();
	},
};

// @color: a VM's, below the pattern of that name.
function pattern(ctx, name, color) {
	const key = name + (color || '');
	if (theme.patterns[key])
		return theme.patterns[key];
	const tile = document.createElement('canvas'), size = tile.width = tile.height = color || name === 'fence' ? 8 : 6;
	const c = tile.getContext('2d');
	if (color) {
		c.fillStyle = color;
		c.fillRect(0, 0, size, size);
		c.globalAlpha = 0.6;
	}
	// A VM's pattern is not of the background's colour: it is no gap.
	const ink = color ? theme.text : theme.bg;
	c.fillStyle = name === 'unknown' ? theme.dim : ink;
	c.strokeStyle = name === 'lost' ? theme.bad : ink;
	c.lineWidth = name === 'pale' ? 1.2 : 2;
	if (TILES[name])
		TILES[name](c);
	else
		TILES.slant(c, size, name === 'fall' ? -1 : 1);
	theme.patterns[key] = ctx.createPattern(tile, 'repeat');
	return theme.patterns[key];
}

const vmFill = (ctx, vm) => vmPattern(vm) ? pattern(ctx, vmPattern(vm), vmColor(vm)) : vmColor(vm);

// Colour of a state in a lane; anything but a run of a known owner is a pattern.
function fillOf(ctx, kind, state) {
	if (state === LOST)
		return pattern(ctx, 'lost');
	if (state === UNKNOWN)
		return pattern(ctx, 'unknown');
	if (state === OFF)
		return theme.lane;
	if (state === OTHER)
		return theme.other;
	if (kind === 'vcpu')
		return null; // by the lane's VM or the reason
	if (state === RUNS)
		return theme.host;
	return vmFill(ctx, kind === 'machine' ? state - STATES : lineVm(state - STATES));
}

function paintOf(ctx, lane, state) {
	const fill = fillOf(ctx, lane.kind, state);
	if (fill)
		return fill;
	return state === RUNS ? vmFill(ctx, lane.vm) : state >= WAITS ? vmFill(ctx, state - WAITS) : reasonColor(state - STATES);
}

// The colour below a pattern, for text.
const baseOf = (lane, state) => state < STATES && !(lane.kind === 'vcpu' && state === RUNS) ? theme.host :
	lane.kind === 'cpu' ? vmColor(lineVm(state - STATES)) : state === RUNS ? vmColor(lane.vm) : reasonColor(state - STATES);

const halted = (lane, state) => lane.kind === 'vcpu' && state >= STATES && state < WAITS && reasonOf(state - STATES).halted;
const waits = (lane, state) => lane.kind === 'vcpu' && state >= WAITS;

// Everything but the selected vCPU or reason is dimmed.
function alphaOf(lane, state) {
	if (picked.reason >= 0)
		return lane.kind === 'vcpu' && state === STATES + picked.reason ? 1 : 0.25;
	if (picked.span && spans.line[picked.span.i] >= 0) {
		const line = spans.line[picked.span.i];
		if (lane.kind === 'cpu' && state >= STATES)
			return state - STATES === line ? 1 : 0.3;
		if (lane.kind === 'vcpu')
			return lane.id === line ? 1 : 0.45;
	}
	return 1;
}

// Heights show it too: the guest runs in full height, an exit is lower, a halt is a thin line.
function heightOf(lane, state) {
	if (lane.kind === 'cpu')
		return state === RUNS ? 0.4 : state === OFF ? 0.08 : 1;
	return state < STATES ? 1 : halted(lane, state) ? 0.12 : waits(lane, state) ? 0.3 : 0.55;
}

// From the bottom: the running owner, then the rest; halts stay empty.
const ORDER = { cpu: (state) => state === RUNS ? 1 : 0, vcpu: (state) => state === RUNS ? 0 : 1,
	host: (state) => state === RUNS ? 0 : state < STATES ? 1 : 2, machine: (state) => state === RUNS ? 1 : 0 };

function drawStack(ctx, lane, x, y, w, h, cells, pale) {
	const { first, end, level, width } = cells, order = ORDER[lane.kind];
	const total = width * (lane.kind === 'host' || lane.kind === 'machine' ? Math.max(1, meta.streams.length) : 1);
	let top = y + h, lost = false;
	for (const pass of [0, 1])
		for (let c = first; c < end; c++) {
			const state = level.state[c];
			if (order(state) !== pass || state === OFF || halted(lane, state))
				continue;
			const high = Math.min(top - y, h * level.ticks[c] / total);
			lost = lost || state === LOST;
			ctx.globalAlpha = alphaOf(lane, state) * (pale ? 0.45 : 1);
			ctx.fillStyle = paintOf(ctx, lane, state);
			ctx.fillRect(x, top - high, w, high);
			if (waits(lane, state))
				fence(ctx, x, top - high, w, high);
			top -= high;
		}
	ctx.globalAlpha = 1;
	if (pale) {
		ctx.fillStyle = pattern(ctx, 'pale');
		ctx.fillRect(x, y, w, h);
	}
	// A loss is always visible, however short.
	if (lost) {
		ctx.fillStyle = theme.bad;
		ctx.fillRect(x, y, w, 2);
	}
}

// Someone else has the CPU: seen as through a fence.
function fence(ctx, x, y, w, h) {
	ctx.globalAlpha = 0.8;
	ctx.fillStyle = pattern(ctx, 'fence');
	ctx.fillRect(x, y, w, h);
	ctx.globalAlpha = 1;
}

const TEXT = 12, widths = new Map();

function widthOf(ctx, text) {
	if (widths.size > 20000)
		widths.clear();
	if (!widths.has(text))
		widths.set(text, ctx.measureText(text).width);
	return widths.get(text);
}

// The name of a VM in at most that number of letters, different from the others'.
const tags = new Map();

function tag(vm, letters) {
	if (!tags.has(letters))
		tags.set(letters, shorten(meta.vms.map((v) => v.name), letters, (text) => text.length));
	return tags.get(letters)[vm] || vmName(vm);
}

// A state's name, and shorter ones.
function namesOf(lane, state) {
	const name = stateName(lane, state), line = lane.kind === 'cpu' ? state - STATES : -1;
	if (state >= WAITS && lane.kind === 'vcpu')
		return [name, ...[24, 12, 8].map((n) => 'for ' + tag(state - WAITS, n))];
	return line < 0 ? [name] : [name, ...[24, 12, 8].map((n) => tag(lineVm(line), n) + ' ' + shortName(line)), tag(lineVm(line), 8)];
}

// The longest name of the state that fits, in a bar of @base's colour, below a pattern or not, if it is high enough.
function label(ctx, lane, state, x, y, w, h, base, faded) {
	if (w < 34 || h < TEXT + 2)
		return;
	const shown = namesOf(lane, state).find((t) => widthOf(ctx, t) <= w - 10);
	if (!shown)
		return;
	const rgb = base && !faded ? /^#(..)(..)(..)$/.exec(base) : null;
	// Black or white, whichever has more contrast (WCAG).
	const light = rgb && [0.2126, 0.7152, 0.0722].reduce((sum, part, k) => sum + part * (parseInt(rgb[k + 1], 16) / 255) ** 2.2, 0) > 0.18;
	if (rgb) {
		ctx.fillStyle = base;
		ctx.fillRect(x + 2, y + h / 2 - TEXT / 2, widthOf(ctx, shown) + 4, TEXT);
	}
	ctx.fillStyle = !rgb ? theme.text : light ? '#111111' : '#ffffff';
	ctx.fillText(shown, x + 4, y + h / 2 + 0.5);
}

function spanState(lane, i, part) {
	if (part === 'gap')
		return spans.flags[i] & TIMED ? STATES + spans.reason[i] : UNKNOWN;
	if (lane.kind === 'vcpu')
		return RUNS;
	if (spans.kind[i] === KIND.guest)
		return spans.line[i] < 0 ? OTHER : STATES + spans.line[i];
	return [RUNS, OTHER, UNKNOWN, LOST, OFF][spans.kind[i]];
}

function stateName(lane, state) {
	const name = ['host', 'unknown', 'lost', 'not traced', 'others'][state];
	if (lane.kind === 'vcpu')
		return state === RUNS ? 'running' : name || (state >= WAITS ? 'waits for ' + vmName(state - WAITS) :
			reasonName(state - STATES));
	return name || (lane.kind === 'host' ? vmName(state - STATES) : lineName(state - STATES));
}

// One colour of a lane, as wide as the time is, or a pixel. null: not in view.
function drawBar(ctx, box, lane, state, from, length) {
	const scale = box.w / (view.t1 - view.t0);
	let x = (from - view.t0) * scale, w = Math.max(1, length * scale);
	if (x + w < 0 || x > box.w)
		return null;
	if (x < -4) {
		w += x + 4;
		x = -4;
	}
	w = Math.min(w, box.w + 8 - x);
	const h = Math.max(2, Math.min(halted(lane, state) ? 4 : box.h, heightOf(lane, state) * box.h)), y = box.y + box.h - h;
	const column = Math.floor(x) * 8192 + state;
	if (w < 1.5 && column === box.last)
		return null;
	box.last = column;
	if (!lane.complete) {
		ctx.fillStyle = theme.bg;
		ctx.fillRect(x, box.y, w, box.h);
	}
	ctx.globalAlpha = alphaOf(lane, state);
	ctx.fillStyle = paintOf(ctx, lane, state);
	ctx.fillRect(x, y, w > 4 ? w - 0.5 : w, h);
	if (waits(lane, state))
		fence(ctx, x, y, w, h);
	ctx.globalAlpha = 1;
	const faded = alphaOf(lane, state) < 0.6, left = Math.max(0, x), wide = Math.min(box.w, x + w) - left;
	// What is low has its text above it.
	if (waits(lane, state) || halted(lane, state))
		label(ctx, lane, state, left, box.y, wide, box.h - h, null, faded);
	else if (state === RUNS || state >= STATES)
		label(ctx, lane, state, left, y, wide, h, baseOf(lane, state), faded);
	return { x, y, w, h };
}

// What the CPU did while the vCPU was out, as [state, from, length] each; null: not all is kept.
function partsOf(i) {
	const from = spans.start[i] + spans.length[i], to = from + spans.gap[i];
	const cpu = lanes[1 + spans.stream[i]], parts = [];
	if (!cpu || cpu.kind !== 'cpu' || cpu.droppedIn(from, to))
		return null;
	for (let k = Math.max(0, lower(cpu.starts, from) - 1); k < cpu.items.length && cpu.starts[k] < to; k++) {
		const j = cpu.items[k], a = Math.max(from, spans.start[j]), b = Math.min(to, spans.start[j] + spans.length[j]);
		const state = spans.kind[j] === KIND.host ? STATES + spans.reason[i] : spans.kind[j] === KIND.guest ?
			WAITS + (spans.line[j] < 0 ? meta.vms.length : lineVm(spans.line[j])) : spanState(cpu, j, 'run');
		if (b > a)
			parts.push([state, a, b - a, spans.line[j]]);
	}
	return parts;
}

// Out of the guest. Where the CPU's spans are not all there, the longest part has it.
function drawOut(ctx, box, lane, i) {
	const from = spans.start[i] + spans.length[i], gap = spans.gap[i], scale = box.w / (view.t1 - view.t0);
	const state = spanState(lane, i, 'gap');
	if (spans.waited[i] + spans.unknown[i] === 0 || halted(lane, state))
		return drawBar(ctx, box, lane, state, from, gap);
	const parts = gap * scale > 2 ? partsOf(i) : null;
	if (!parts)
		drawBar(ctx, box, lane, spans.waited[i] * 2 > gap ? WAITS + meta.vms.length :
			spans.unknown[i] * 2 > gap ? OFF : state, from, gap);
	// Neighbours of one kind, or below a pixel, are one bar.
	for (let k = 0, next; parts && k < parts.length; k = next) {
		const [kind, at] = parts[k];
		let end = at + parts[k][2];
		for (next = k + 1; next < parts.length && (parts[next][0] === kind || (parts[next][1] + parts[next][2] - at) * scale < 1); next++)
			end = parts[next][1] + parts[next][2];
		drawBar(ctx, box, lane, kind, at, end - at);
	}
	const high = 0.55 * box.h;
	return { x: (from - view.t0) * scale, y: box.y + box.h - high, w: Math.max(1, gap * scale), h: high };
}

function drawPart(ctx, box, lane, i, part, from, length) {
	const scale = box.w / (view.t1 - view.t0);
	if ((from + length - view.t0) * scale < -1 || (from - view.t0) * scale > box.w)
		return;
	const bar = part === 'gap' ? drawOut(ctx, box, lane, i) : drawBar(ctx, box, lane, spanState(lane, i, part), from, length);
	if (!bar)
		return;
	const { x, y, w, h } = bar;
	drawEdge(ctx, box, from, spans.bound[part === 'gap' ? 2 : 0][i],
		spans.bound[part === 'gap' ? 3 : 1][i], scale);
	const sel = picked.span;
	if (sel && sel.i === i && sel.part === part && sel.lane === lane) {
		ctx.strokeStyle = theme.text;
		ctx.lineWidth = 2;
		ctx.strokeRect(x + 1, y + 1, Math.max(2, w - 2), h - 2);
	}
	if (picked.hits && part === 'run' && picked.hits.has(i))
		drawHit(ctx, x + w, box);
	if (part === 'run')
		box.marks.push([i, x]);
}

// The error bounds of the edge, at a zoom where they are visible.
function drawEdge(ctx, box, at, early, late, scale) {
	if (!early || !late || (early + late - 2) * scale < 4)
		return;
	const x = (at - early + 1 - view.t0) * scale, w = (early + late - 2) * scale;
	ctx.globalAlpha = 0.22;
	ctx.fillStyle = theme.text;
	ctx.fillRect(x, box.y + 1, w, box.h - 2);
	ctx.globalAlpha = 0.8;
	ctx.strokeStyle = theme.text;
	ctx.lineWidth = 1;
	ctx.setLineDash([2, 2]);
	ctx.strokeRect(x, box.y + 1.5, w, box.h - 3);
	ctx.setLineDash([]);
	ctx.globalAlpha = 1;
}

// Notable: the vCPU came from another CPU; something went wrong.
function drawMarks(ctx, i, x, box) {
	const bad = spans.back[i] || spans.overflows[i] || spans.failed[i];
	if (!bad && !(spans.flags[i] & MOVED))
		return;
	ctx.fillStyle = bad ? theme.bad : theme.text;
	ctx.strokeStyle = theme.bg;
	ctx.lineWidth = 1;
	ctx.beginPath();
	ctx.moveTo(x, box.y + box.h - 9);
	ctx.lineTo(x + 4, box.y + box.h - 4.5);
	ctx.lineTo(x, box.y + box.h);
	ctx.lineTo(x - 4, box.y + box.h - 4.5);
	ctx.closePath();
	ctx.fill();
	ctx.stroke();
}

function drawHit(ctx, x, box) {
	ctx.fillStyle = theme.accent;
	ctx.beginPath();
	ctx.moveTo(x - 4, box.y);
	ctx.lineTo(x + 4, box.y);
	ctx.lineTo(x, box.y + 7);
	ctx.fill();
}

// Level of a grid whose buckets are one pixel or a little wider; -1: even the finest are wide.
function levelFor(width, w) {
	const perPixel = (view.t1 - view.t0) / w;
	return width > perPixel * 3 ? -1 : Math.max(0, Math.ceil(Math.log2(perPixel / width)));
}

function drawShares(ctx, lane, shares, box, n, wanted) {
	const scale = box.w / (view.t1 - view.t0);
	shares.visit(n, view.t0, view.t1, (from, width, first, end, level, b) => {
		if (wanted && !wanted(b))
			return;
		const x = Math.floor((from - view.t0) * scale), to = Math.floor((from + width - view.t0) * scale);
		const last = Math.min(width, Math.max(1, view.end - from));
		drawStack(ctx, lane, x, box.y, Math.max(1, to - x), box.h,
			{ first, end, level, width: last }, Boolean(wanted));
	});
}

function drawLane(ctx, lane, box) {
	const [first, last] = lane.range(view.t0, view.t1), n = levelFor(lane.shares.width, box.w);
	const crowded = last - first > box.w * 1.5;
	if (n >= 0 && (!lane.complete || crowded)) {
		drawShares(ctx, lane, lane.shares, box, n);
	} else {
		if (!lane.complete)
			drawShares(ctx, lane, lane.shares, box, 0, (b) => lane.dropped[b] > 0);
		for (let k = first; k < last; k++) {
			const i = lane.items[k];
			drawPart(ctx, box, lane, i, 'run', spans.start[i], spans.length[i]);
			if (lane.kind === 'vcpu' && spans.gap[i])
				drawPart(ctx, box, lane, i, 'gap', spans.start[i] + spans.length[i], spans.gap[i]);
		}
		// On top of their neighbours.
		box.marks.forEach(([i, x]) => drawMarks(ctx, i, x, box));
		return;
	}
	for (let k = first; k < last; k++) {
		const i = lane.items[k], end = spans.start[i] + spans.length[i];
		const x = (end - view.t0) * box.w / (view.t1 - view.t0);
		if (picked.hits && picked.hits.has(i))
			drawHit(ctx, x, box);
		if (picked.span && picked.span.i === i && picked.span.lane === lane) {
			ctx.fillStyle = theme.text;
			ctx.fillRect(x - 1, box.y, 2, box.h);
		}
	}
}

// How many CPUs run the host: exact where all their spans are kept, else by bucket.
function drawHost(ctx, lane, box) {
	const cpus = lanes.filter((l) => l.kind === 'cpu'), n = levelFor(machine.width, box.w);
	if (n >= 0 || cpus.some((l) => l.droppedIn(view.t0, view.t1) > 0)) {
		drawShares(ctx, lane, machine, box, Math.max(0, n), n < 0 ? () => true : null);
		return;
	}
	const scale = box.w / (view.t1 - view.t0), cover = new Float64Array(Math.ceil(box.w) + 1);
	for (const cpu of cpus) {
		for (let [k, end] = cpu.range(view.t0, view.t1); k < end; k++) {
			const i = cpu.items[k];
			if (spans.kind[i] !== KIND.host)
				continue;
			const a = Math.max(0, (spans.start[i] - view.t0) * scale);
			const b = Math.min(box.w, (spans.start[i] + spans.length[i] - view.t0) * scale);
			for (let x = Math.floor(a); x < b; x++)
				cover[x] += Math.min(b, x + 1) - Math.max(a, x);
		}
	}
	ctx.fillStyle = theme.host;
	for (let x = 0; x < box.w; x++) {
		const h = box.h * Math.min(1, cover[x] / Math.max(1, cpus.length));
		ctx.fillRect(x, box.y + box.h - h, 1, h);
	}
}

// ---- the three canvases ----

const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

function fitCanvas(canvas, w, h, fixed) {
	const ratio = devicePixelRatio || 1;
	if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
		if (!fixed) {
			canvas.style.width = w + 'px';
			canvas.style.height = h + 'px';
		}
	}
	const ctx = canvas.getContext('2d');
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	ctx.clearRect(0, 0, w, h);
	ctx.font = FONT;
	ctx.textBaseline = 'middle';
	return ctx;
}

function stepFor(span, w, gap) {
	const unit = hz || 1, least = span / unit * gap / w, ten = 10 ** Math.floor(Math.log10(least));
	const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= least) * unit;
	return hz ? step : Math.max(1, step);
}

// Where the axis has marks: at whole steps from time 0 of the trace.
function marks(step) {
	const list = [];
	for (let k = Math.ceil((begin + view.t0) / step); k * step - begin <= view.t1 && list.length < 100; k++)
		list.push(k * step - begin);
	return list;
}

// What the axis counts from, if its numbers would be too long: a round time before the view.
function axisBase(step) {
	const span = hz ? (view.t1 - view.t0) / hz : 0, round = 10 ** (Math.floor(Math.log10(span)) + 1);
	const base = hz ? Math.floor((begin + view.t0) / hz / round + 1e-9) * round * hz - begin : 0;
	return hz && point(view.t1, step).length > 12 && base > -begin ? { base, round: round * hz } : null;
}

function drawAxis(w) {
	const ctx = fitCanvas($('axis'), w, 24), step = stepFor(view.t1 - view.t0, w, 120), from = axisBase(step);
	ctx.strokeStyle = theme.line;
	for (const at of marks(step)) {
		const x = (at - view.t0) / (view.t1 - view.t0) * w;
		const text = from ? '+ ' + relative(at - from.base, from.round * 2, step) : point(at, step);
		ctx.fillStyle = theme.dim;
		ctx.fillRect(Math.round(x), 16, 1, 8);
		if (x + 4 + ctx.measureText(text).width < w)
			ctx.fillText(text, x + 4, 10);
	}
	$('axis-label').textContent = from ? point(from.base, from.round) + ' +' : clockName();
	$('axis-label').title = 'Times: ' + clockName();
	return step;
}

function drawOverview(w) {
	const ctx = fitCanvas($('overview'), w, 36), now = { t0: view.t0, t1: view.t1 };
	Object.assign(view, { t0: 0, t1: view.end });
	drawShares(ctx, { kind: 'machine' }, machine, { y: 2, h: 32, w }, Math.max(0, levelFor(machine.width, w)));
	Object.assign(view, now);
	const a = view.t0 / view.end * w, b = Math.max(a + 2, view.t1 / view.end * w);
	ctx.globalAlpha = 0.7;
	ctx.fillStyle = theme.bg;
	ctx.fillRect(0, 0, a, 36);
	ctx.fillRect(b, 0, w - b, 36);
	ctx.globalAlpha = 1;
	ctx.strokeStyle = theme.accent;
	ctx.lineWidth = 1.5;
	ctx.strokeRect(a + 0.75, 0.75, b - a - 1.5, 34.5);
}

function drawLanes(w, height, scroll, step) {
	const ctx = fitCanvas($('lanes'), w, height);
	ctx.fillStyle = theme.line;
	for (const at of marks(step))
		ctx.fillRect(Math.round((at - view.t0) / (view.t1 - view.t0) * w), 0, 1, height);
	for (const row of rows) {
		const y = row.y - scroll;
		if (y + row.height < 0 || y > height)
			continue;
		if (row.group) {
			ctx.fillStyle = theme.soft;
			ctx.fillRect(0, y, w, row.height);
			continue;
		}
		const box = { y: y + 2, h: row.height - 4, w, last: -1, marks: [] };
		ctx.fillStyle = theme.line;
		ctx.fillRect(0, y + row.height - 1, w, 1);
		if (row.flame)
			drawFlames(ctx, row.flame, { y: y + 4, h: row.height - 8, w });
		else if (row.lane.kind === 'host')
			drawHost(ctx, row.lane, box);
		else
			drawLane(ctx, row.lane, box);
		if (row.lane)
			drawWindows(ctx, row.lane, box);
		if (picked.lane >= 0 && rows[picked.lane] === row && document.activeElement === $('lanes')) {
			ctx.fillStyle = theme.accent;
			ctx.fillRect(0, y, 3, row.height);
		}
	}
}
