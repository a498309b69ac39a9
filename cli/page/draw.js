// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The lanes on canvas. Where buckets are narrow, each pixel shows shares of time, stacked; where
// they are wide, single spans on top of the others, which are shown pale and striped.

const GROUP = 20;
const view = { t0: 0, t1: 1, end: 1 };
const picked = { span: null, reason: -1, hits: null, lane: -1 };
let rows = [], hiddenVms = new Set(), showCpus = true, folded = new Set();

// ---- rows ----

function layRows() {
	const shown = lanes.filter((l) => l.kind === 'cpu' ? showCpus : !hiddenVms.has(l.vm)).length;
	// Few lanes get more room each.
	const high = Math.max(22, Math.min(38, Math.floor(($('scroll').clientHeight - 120) / (shown + 1))));
	let y = 0;
	rows = [];
	const add = (row, height) => {
		rows.push({ ...row, y, height });
		y += height;
	};
	const addGroup = (key, name, members) => {
		add({ group: key, name, count: members.length }, GROUP);
		if (!folded.has(key))
			members.forEach((lane) => add({ lane }, high));
	};
	add({ lane: lanes[0] }, Math.round(high * 1.3));
	if (showCpus)
		addGroup('cpus', 'CPUs', lanes.filter((l) => l.kind === 'cpu'));
	meta.vms.forEach((vm, v) => {
		const members = lanes.filter((l) => l.kind === 'vcpu' && l.vm === v);
		if (members.length && !hiddenVms.has(v))
			addGroup('vm' + v, vm.name, members);
	});
	return y;
}

// ---- painting ----

function pattern(ctx, name) {
	if (theme.patterns[name])
		return theme.patterns[name];
	const tile = document.createElement('canvas'), size = tile.width = tile.height = 6;
	const c = tile.getContext('2d');
	if (name === 'unknown') {
		c.fillStyle = theme.dim;
		c.fillRect(0, 0, 1.5, 1.5);
		c.fillRect(3, 3, 1.5, 1.5);
	} else {
		c.strokeStyle = name === 'lost' ? theme.bad : theme.bg;
		c.lineWidth = name === 'lost' ? 2 : 1.2;
		c.beginPath();
		for (const x of [-size, 0, size]) {
			c.moveTo(x, size);
			c.lineTo(x + size, 0);
		}
		c.stroke();
	}
	theme.patterns[name] = ctx.createPattern(tile, 'repeat');
	return theme.patterns[name];
}

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
	return vmColor(kind === 'machine' ? state - STATES : lineVm(state - STATES));
}

function paintOf(ctx, lane, state) {
	const fill = fillOf(ctx, lane.kind, state);
	if (fill)
		return fill;
	return state === RUNS ? vmColor(lane.vm) : reasonColor(state - STATES);
}

const halted = (lane, state) => lane.kind === 'vcpu' && state >= STATES && reasonOf(state - STATES).halted;

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
	return state < STATES ? 1 : halted(lane, state) ? 0.16 : 0.55;
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

function label(ctx, text, x, y, w, h, fill, faded) {
	if (w < 34)
		return;
	const rgb = /^#(..)(..)(..)$/.exec(fill);
	const light = rgb && parseInt(rgb[1], 16) * 0.3 + parseInt(rgb[2], 16) * 0.59 +
		parseInt(rgb[3], 16) * 0.11 > 120;
	ctx.save();
	ctx.beginPath();
	ctx.rect(x, y, w - 3, h);
	ctx.clip();
	ctx.fillStyle = !rgb || faded ? theme.text : light ? '#111111' : '#ffffff';
	ctx.fillText(text, x + 4, y + h / 2 + 0.5);
	ctx.restore();
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
	const name = ['host', 'unknown', 'lost', 'tracing off', 'others'][state];
	if (lane.kind === 'vcpu')
		return state === RUNS ? 'running' : name || reasonName(state - STATES);
	return name || (lane.kind === 'host' ? vmName(state - STATES) : lineName(state - STATES));
}

function drawPart(ctx, box, lane, i, part, from, length) {
	const scale = box.w / (view.t1 - view.t0), state = spanState(lane, i, part);
	let x = (from - view.t0) * scale, w = Math.max(1, length * scale);
	if (x + w < 0 || x > box.w)
		return;
	if (x < -4) {
		w += x + 4;
		x = -4;
	}
	w = Math.min(w, box.w + 8 - x);
	const h = Math.max(2, heightOf(lane, state) * box.h), y = box.y + box.h - h;
	const column = Math.floor(x) * 8192 + state;
	if (w < 1.5 && column === box.last)
		return;
	box.last = column;
	const fill = paintOf(ctx, lane, state);
	if (!lane.complete) {
		ctx.fillStyle = theme.bg;
		ctx.fillRect(x, box.y, w, box.h);
	}
	ctx.globalAlpha = alphaOf(lane, state);
	ctx.fillStyle = fill;
	ctx.fillRect(x, y, w > 4 ? w - 0.5 : w, h);
	ctx.globalAlpha = 1;
	if (h > 9)
		label(ctx, stateName(lane, state), Math.max(0, x), y, w + Math.min(0, x), h, fill, alphaOf(lane, state) < 0.6);
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
		drawMarks(ctx, i, x, box);
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

function fitCanvas(canvas, w, h) {
	const ratio = devicePixelRatio || 1;
	if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
		canvas.style.width = w + 'px';
		canvas.style.height = h + 'px';
	}
	const ctx = canvas.getContext('2d');
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	ctx.clearRect(0, 0, w, h);
	ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
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

function drawAxis(w) {
	const ctx = fitCanvas($('axis'), w, 24), step = stepFor(view.t1 - view.t0, w, 120);
	ctx.fillStyle = theme.dim;
	ctx.strokeStyle = theme.line;
	for (const at of marks(step)) {
		const x = (at - view.t0) / (view.t1 - view.t0) * w, text = point(at, step);
		ctx.fillRect(Math.round(x), 16, 1, 8);
		if (x + 4 + ctx.measureText(text).width < w)
			ctx.fillText(text, x + 4, 10);
	}
	$('axis-label').textContent = hz ? 'from the start' : unitName + ' from the start';
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
		const box = { y: y + 2, h: row.height - 4, w, last: -1 };
		ctx.fillStyle = theme.line;
		ctx.fillRect(0, y + row.height - 1, w, 1);
		if (row.lane.kind === 'host')
			drawHost(ctx, row.lane, box);
		else
			drawLane(ctx, row.lane, box);
		if (picked.lane >= 0 && rows[picked.lane] === row && document.activeElement === $('lanes')) {
			ctx.fillStyle = theme.accent;
			ctx.fillRect(0, y, 3, row.height);
		}
	}
}
