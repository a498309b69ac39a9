// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Flame charts below the lanes of vCPUs, in windows of time, and flame graphs of VMs at the side.

const FRAME = 13, FRAMES_DEEP = 26, FRAME_HOST = 1, FRAME_ROOT = 2;
let flames = { windows: [], graphs: [] };
const graphView = { graph: 0, node: 0 };

function readFlames(reader) {
	if (!meta.flames)
		return;
	flames = { names: meta.flames.names, windows: meta.flames.windows, graphs: meta.flames.graphs };
	for (const w of flames.windows) {
		w.frames = [];
		for (let n = reader.next(), at = w.from; n > 0; n--) {
			const start = at += reader.step();
			w.frames.push({ start, length: reader.next(), depth: reader.next(), name: reader.next(), kind: reader.next() });
		}
		w.deep = w.frames.reduce((deep, f) => Math.max(deep, f.depth + 1), 0);
	}
	for (const g of flames.graphs) {
		g.nodes = [];
		for (let n = reader.next(), k = 0; k < n; k++) {
			const up = reader.next(), node = { parent: k - up, name: reader.next(), total: reader.next(), children: [] };
			node.self = node.total;
			g.nodes.push(node);
			if (k) {
				g.nodes[node.parent].children.push(k);
				g.nodes[node.parent].self -= node.total;
			}
		}
	}
}

const frameName = (f) => flames.names[f.name] || '?';
const windowsOf = (line) => flames.windows.filter((w) => w.line === line && w.frames.length);

// How deep the chart of a vCPU is where its windows are wide enough to be read; 0: none is in view.
function flameDepth(line) {
	const scale = ($('lanes').clientWidth || 600) / (view.t1 - view.t0);
	return windowsOf(line).reduce((deep, w) => (Math.min(w.to, view.t1) - Math.max(w.from, view.t0)) * scale >= 40 ?
		Math.max(deep, Math.min(FRAMES_DEEP, w.deep)) : deep, 0);
}

const flameKey = () => meta.lines.map((line, i) => flameDepth(i)).join();

function frameColor(ctx, frame, vm) {
	if (frame.kind === FRAME_ROOT)
		return theme.soft;
	return frame.kind === FRAME_HOST ? theme.host : vmColor(vm);
}

// A frame's box with as much of its name as fits. @odd: one of two shades, to tell neighbours apart.
function drawFrame(ctx, x, y, w, fill, text, odd) {
	ctx.globalAlpha = odd ? 0.62 : 0.45;
	ctx.fillStyle = fill;
	ctx.fillRect(x, y, Math.max(0.7, w > 3 ? w - 0.7 : w), FRAME - 1);
	ctx.globalAlpha = 1;
	if (w < 26)
		return;
	let shown = text;
	if (widthOf(ctx, shown) > w - 6) {
		shown = text.slice(0, Math.max(1, Math.floor(text.length * (w - 12) / widthOf(ctx, text)))) + '…';
		if (widthOf(ctx, shown) > w - 4)
			return;
	}
	ctx.fillStyle = theme.text;
	ctx.fillText(shown, x + 3, y + FRAME / 2);
}

function drawFlames(ctx, lane, box) {
	const scale = box.w / (view.t1 - view.t0);
	for (const w of windowsOf(lane.id)) {
		const from = (w.from - view.t0) * scale, to = (w.to - view.t0) * scale;
		if (to < 0 || from > box.w)
			continue;
		ctx.fillStyle = theme.lane;
		ctx.fillRect(from, box.y, to - from, box.h);
		for (const f of w.frames) {
			const x = (f.start - view.t0) * scale, wide = f.length * scale;
			if (x + wide < 0 || x > box.w || f.depth >= FRAMES_DEEP || wide < 0.3)
				continue;
			const left = Math.max(-2, x);
			drawFrame(ctx, left, box.y + f.depth * FRAME, Math.min(box.w + 2, x + wide) - left, frameColor(ctx, f, lane.vm), frameName(f), f.name % 2);
		}
		ctx.strokeStyle = theme.accent;
		ctx.lineWidth = 1;
		ctx.strokeRect(from + 0.5, box.y - 0.5, Math.max(1, to - from - 1), box.h);
	}
}

// Where there is a chart, on the lane itself.
function drawWindows(ctx, lane, box) {
	const scale = box.w / (view.t1 - view.t0);
	ctx.fillStyle = theme.accent;
	for (const w of lane.kind === 'vcpu' ? windowsOf(lane.id) : []) {
		const x = (w.from - view.t0) * scale, wide = Math.max(4, (w.to - w.from) * scale);
		if (x + wide >= 0 && x <= box.w)
			ctx.fillRect(x, box.y - 2, wide, 3);
	}
}

// The frame of a chart at @t, @y pixels below its top.
function frameAt(lane, t, y) {
	const depth = Math.floor(y / FRAME), slack = (view.t1 - view.t0) / $('lanes').clientWidth;
	for (const w of windowsOf(lane.id))
		for (const f of w.frames)
			if (f.depth === depth && f.start - slack <= t && t <= f.start + f.length + slack)
				return { lane, frame: f, window: w };
	return null;
}

function frameFacts({ frame, window, lane }) {
	return { title: frameName(frame), rows: [['From', exact(frame.start)], ['For', time(frame.length)],
		['Code', frame.kind === FRAME_ROOT ? 'of this process' : frame.kind === FRAME_HOST ? 'of the host' : 'of a guest'],
		['Depth', String(frame.depth)], ['On', cpuName(window.stream)], ['Below', lane.name]] };
}

function zoomToFrame({ frame }) {
	const room = Math.max(frame.length * 0.05, 4);
	setView(frame.start - room, frame.start + frame.length + room, frameName(frame));
}

function zoomToWindow(w) {
	const lane = lanes.find((l) => l.kind === 'vcpu' && l.id === w.line), room = (w.to - w.from) * 0.03;
	setView(w.from - room, w.to + room, 'Calls of ' + lineName(w.line));
	picked.lane = rows.findIndex((row) => row.lane === lane);
	scrollTo(rows[picked.lane]);
	markLabels();
}

// ---- flame graphs ----

// Boxes of the graph from the chosen node on: [node, depth, from, part].
function graphBoxes(g) {
	const boxes = [], add = (k, depth, from, part) => {
		boxes.push([k, depth, from, part]);
		let at = from;
		for (const child of [...g.nodes[k].children].sort((a, b) => g.nodes[b].total - g.nodes[a].total)) {
			const wide = part * g.nodes[child].total / g.nodes[k].total;
			if (wide > 0.001 && depth < 60)
				add(child, depth + 1, at, wide);
			at += wide;
		}
	};
	if (g.nodes.length)
		add(graphView.node, 0, 0, 1);
	return boxes;
}

function drawGraph() {
	const canvas = $('graph'), g = flames.graphs[graphView.graph];
	if (!canvas || !g || !canvas.clientWidth)
		return;
	const w = canvas.parentNode.clientWidth - 2, boxes = graphBoxes(g), deep = boxes.reduce((m, b) => Math.max(m, b[1] + 1), 1);
	const ctx = fitCanvas(canvas, w, deep * FRAME), vm = meta.vms.findIndex((v) => v.name === g.name);
	for (const [k, depth, from, part] of boxes)
		drawFrame(ctx, from * w, depth * FRAME, part * w, vm < 0 ? theme.host : vmColor(vm), flames.names[g.nodes[k].name], g.nodes[k].name % 2);
	canvas.boxes = boxes;
}

function amount(n) {
	return meta.flames.unit === 'ticks' ? time(n, 3) : number(n);
}

function graphAt(event) {
	const canvas = $('graph'), r = canvas.getBoundingClientRect(), x = (event.clientX - r.left) / r.width;
	const depth = Math.floor((event.clientY - r.top) / FRAME);
	return (canvas.boxes || []).find(([, d, from, part]) => d === depth && from <= x && x < from + part);
}

function chooseNode(k) {
	graphView.node = k;
	fillFlames();
	tell(`${flames.names[flames.graphs[graphView.graph].nodes[k].name]}: ${amount(flames.graphs[graphView.graph].nodes[k].total)}`);
}

// By function, within the chosen node; of recursive ones the outermost counts.
function functionSums(g) {
	const sums = new Map(), path = new Set(), add = (k) => {
		const node = g.nodes[k], first = !path.has(node.name), sum = sums.get(node.name) || [0, 0];
		sums.set(node.name, [sum[0] + node.self, sum[1] + (first ? node.total : 0)]);
		if (first)
			path.add(node.name);
		node.children.forEach(add);
		if (first)
			path.delete(node.name);
	};
	add(graphView.node);
	return [...sums].sort((a, b) => b[1][0] - a[1][0]);
}

function fillGraph(box) {
	const g = flames.graphs[graphView.graph], node = g.nodes[graphView.node];
	if (!node)
		return;
	const processes = g.nodes[0].children, inside = processes.includes(graphView.node) ? graphView.node : graphView.node ? -1 : 0;
	const select = (id, label, list, value, fn) => {
		const el = make('select', { id, 'aria-label': label, onchange: (e) => fn(Number(e.target.value)) },
			...list.map(([v, text]) => make('option', { value: v }, text)));
		el.value = String(value);
		return el;
	};
	box.append(make('div', { class: 'opts' }, select('graph-vm', 'VM', flames.graphs.map((f, i) => [i, f.name]), graphView.graph, (v) => {
		Object.assign(graphView, { graph: v, node: 0 });
		fillFlames();
	}), select('graph-process', 'Process', [[0, 'all processes'], ...inside < 0 ? [[-1, '(a function)']] : [],
		...[...processes].sort((a, b) => g.nodes[b].total - g.nodes[a].total).map((k) => [k, flames.names[g.nodes[k].name]])], inside,
	(v) => v >= 0 && chooseNode(v)), ...graphView.node ? [button('Up', () => chooseNode(node.parent))] : []));
	const canvas = make('canvas', { id: 'graph', role: 'img', 'aria-label': `Flame graph of ${flames.names[node.name]}; the table below has its functions` });
	canvas.addEventListener('click', (e) => {
		const hit = graphAt(e);
		if (hit)
			chooseNode(hit[0]);
	});
	canvas.addEventListener('pointermove', (e) => {
		const hit = graphAt(e);
		canvas.title = hit ? `${flames.names[g.nodes[hit[0]].name]}: ${amount(g.nodes[hit[0]].total)}, ${(100 * g.nodes[hit[0]].total / g.nodes[0].total).toFixed(1)} % of ${g.name}` : '';
	});
	box.append(make('div', { class: 'graph' }, canvas),
		table(['Function', 'Self', 'Total', '%'], ...functionSums(g).slice(0, 20).map(([name, [self, total]]) => make('tr', {},
			make('td', {}, flames.names[name]), make('td', {}, amount(self)), make('td', {}, amount(total)),
			make('td', {}, (100 * self / Math.max(1, node.total)).toFixed(1))))));
	drawGraph();
}

function fillFlames() {
	const box = $('flames');
	if (!meta.flames)
		return;
	box.textContent = '';
	box.append(make('h2', {}, 'Calls, on the lanes'), make('p', { class: 'dim' }, flames.windows.length ?
		'Marked on the lanes; below them when zoomed in: what the CPU executed, guests and host.' : 'No exit is long enough, or none was seen.'));
	const list = flames.windows.map((w, i) => [w, i]).filter(([w]) => w.frames.length).sort((a, b) => a[0].from - b[0].from);
	box.append(make('div', { class: 'windows' }, table(['vCPU', 'From', 'For'], ...list.map(([w, i]) => make('tr', {},
		make('td', {}, button(lineName(w.line), () => zoomToWindow(w), { id: 'window-' + i, title: w.left ? `${number(w.left)} frames are too short to be seen` : '' })),
		make('td', {}, point(w.from, hz ? hz * 1e-6 : 1)), make('td', {}, time(w.to - w.from, 3)))))));
	if (flames.graphs.length) {
		box.append(make('h2', {}, meta.flames.unit === 'ticks' ? 'Flame graph: time of the whole' : 'Flame graph: instructions of the whole'));
		fillGraph(box);
	}
}
