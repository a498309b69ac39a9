// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Header, legend, key; the view and how pointer and keyboard move it.

let drawn = 0, step = 1, exitTimer = 0;

// ---- drawing, at most once a frame ----

function draw() {
	if (!drawn)
		drawn = requestAnimationFrame(() => {
			drawn = 0;
			drawNow();
		});
}

function drawNow() {
	const w = Math.max(50, $('scroll').clientWidth - $('labels').offsetWidth), h = Math.max(60, $('scroll').clientHeight);
	step = drawAxis(w);
	drawOverview(w);
	drawLanes(w, h, $('scroll').scrollTop, step);
	tellLevel(w);
}

function tellLevel(w) {
	let dropped = 0;
	for (const row of rows)
		if (row.lane && row.lane.kind === 'vcpu')
			dropped += row.lane.droppedIn(view.t0, view.t1);
	const bucket = Math.max(vcpuGrid.width, cpuGrid.width), near = (view.t1 - view.t0) / w < bucket / 3;
	$('level').textContent = !dropped ? 'every span is here' : near && !bytes ?
		`${number(dropped)} spans here, not kept singly: --from ${argument(view.t0)} --to ${argument(view.t1)} gives them` :
		`shares of time; of ${number(meta.spans)} spans ${number(spans.n)} are kept singly`;
}

function tell(text) {
	$('status').textContent = text;
}

function tellView(what) {
	const s = (view.t1 - view.t0) / 1000;
	tell(`${what ? what + ' · ' : ''}${point(view.t0, s)} … ${point(view.t1, s)}, ${time(view.t1 - view.t0)}`);
}

function setView(t0, t1, what) {
	const least = hz ? Math.max(4, hz * 4e-9) : 10, length = Math.min(view.end, Math.max(least, t1 - t0));
	t0 = Math.max(0, Math.min(view.end - length, t0));
	Object.assign(view, { t0, t1: t0 + length });
	$('tip').hidden = true;
	if (flameKey() === shownFlames)
		draw();
	else
		layout();
	tellView(what);
	remember();
	if (!$('exits').hidden && exitView.visible) {
		clearTimeout(exitTimer);
		exitTimer = setTimeout(fillExits, 150);
	}
}

function zoom(factor, at) {
	const middle = at === undefined ? (view.t0 + view.t1) / 2 : at;
	let length = (view.t1 - view.t0) * factor;
	length = Math.min(view.end, Math.max(hz ? Math.max(4, hz * 4e-9) : 10, length));
	const part = (middle - view.t0) / (view.t1 - view.t0);
	setView(middle - length * part, middle + length * (1 - part));
}

// ---- the view in the address ----

let urlTimer = 0;

function fragment() {
	const all = new URLSearchParams(), row = rows[picked.lane];
	const add = (name, value) => value && all.set(name, value);
	if (view.t0 > 0 || view.t1 < view.end) {
		// More digits than --from takes: the same view to the pixel.
		for (const [name, at] of [['from', view.t0], ['to', view.t1]])
			add(name, String(hz ? Number(((begin + at) / hz).toFixed(12)) : begin + at));
	}
	add('lane', row && row.lane && row.lane.name);
	add('vm', exitView.vm >= 0 && vmName(exitView.vm));
	add('tab', shownTab === firstTab() ? '' : shownTab);
	add('theme', userTheme);
	return String(all);
}

const firstTab = () => meta.vms.length ? 'vms' : 'span';

// When the view has been still for a while it becomes a step for the browser's Back.
function remember() {
	clearTimeout(urlTimer);
	urlTimer = setTimeout(() => {
		const now = fragment();
		if (now !== location.hash.slice(1))
			history.pushState(null, '', '#' + now);
	}, 300);
}

function restore() {
	const all = new URLSearchParams(location.hash.slice(1)), ticks = (name, none) => {
		const value = parseFloat(all.get(name));
		return Number.isFinite(value) ? (hz ? value * hz : value) - begin : none;
	};
	userTheme = /^(light|dark)$/.test(all.get('theme')) ? all.get('theme') : '';
	retheme();
	setView(ticks('from', 0), Math.max(ticks('from', 0), ticks('to', view.end)));
	exitView.vm = meta.vms.findIndex((vm) => vm.name === all.get('vm'));
	picked.span = null;
	picked.lane = rows.findIndex((row) => row.lane && row.lane.name === all.get('lane'));
	scrollTo(rows[picked.lane] || rowOfVm());
	showSpan();
	fillVms();
	showTab($('tab-' + all.get('tab')) && !$('tab-' + all.get('tab')).hidden ? all.get('tab') : firstTab());
	markLabels();
	clearTimeout(urlTimer);
}

function retheme() {
	readTheme();
	fillVms();
	fillKey();
	layout();
	if (shownTab === 'exits')
		fillExits();
	fillFlames();
}

const pan = (part) => setView(view.t0 + (view.t1 - view.t0) * part, view.t1 + (view.t1 - view.t0) * part);
const fit = () => setView(0, view.end, 'The whole trace');

function zoomTo(sel) {
	const s = spans, end = sel.cells ? 0 : s.start[sel.i] + s.length[sel.i];
	const from = sel.cells ? sel.cells.from : sel.part === 'gap' ? end : s.start[sel.i];
	const length = sel.cells ? sel.cells.width : sel.part === 'gap' ? s.gap[sel.i] : s.length[sel.i];
	const room = Math.max(length * 0.6, hz ? hz * 2e-8 : 8);
	setView(from - room, from + length + room);
}

// ---- selection ----

function select(sel, move) {
	picked.span = sel;
	picked.lane = rows.findIndex((row) => row.lane === sel.lane);
	const facts = sel.cells ? shareFacts(sel.cells) : factsOf(sel);
	if (move && !sel.cells) {
		const at = spans.start[sel.i] + (sel.part === 'gap' ? spans.length[sel.i] : 0), length = view.t1 - view.t0;
		if (at < view.t0 || at > view.t1)
			setView(at - length / 2, at + length / 2);
	}
	showSpan();
	showTab('span');
	markLabels();
	scrollTo(rows[picked.lane]);
	draw();
	remember();
	tell(`${sel.cells || facts.title.startsWith(sel.lane.name) ? '' : sel.lane.name + ': '}${facts.title}, ${facts.rows.slice(0, 1).map((r) => r.slice(0, 2).join(' ')).join()}`);
}

function clearPicked() {
	Object.assign(picked, { span: null, reason: -1 });
	showSpan();
	markLabels();
	if (!$('exits').hidden)
		fillExits();
	draw();
	remember();
	tellView('Nothing selected');
}

// The next span of the lane; of a vCPU its exit first.
function stepSpan(way) {
	const sel = picked.span;
	if (!sel || sel.cells)
		return;
	const { lane } = sel, both = lane.kind === 'vcpu';
	let k = lower(lane.starts, spans.start[sel.i]);
	while (lane.items[k] !== sel.i)
		k++;
	if (both && way > 0 && sel.part === 'run' && spans.gap[sel.i])
		return select({ lane, i: sel.i, part: 'gap' }, true);
	if (both && way < 0 && sel.part === 'gap')
		return select({ lane, i: sel.i, part: 'run' }, true);
	const i = lane.items[k + way];
	if (i === undefined)
		return tell('No further span in this lane');
	return select({ lane, i, part: both && way < 0 && spans.gap[i] ? 'gap' : 'run' }, true);
}

function pickReason(reason) {
	picked.reason = picked.reason === reason ? -1 : reason;
	picked.span = null;
	showTab('exits');
	markLabels();
	draw();
	tellView(picked.reason < 0 ? 'No reason highlighted' : 'Highlighted: ' + reasonName(reason));
}

function searchFor(text) {
	$('ip').value = text;
	nextHit(1);
}

function nextHit(way) {
	const text = $('ip').value;
	if (text !== search.text)
		runSearch(text);
	showTab('ips');
	if (!search.list.length) {
		fillIps();
		draw();
		tell(!text.trim() ? 'Give an IP in hex, a range, or a symbol' : search.total ?
			`${number(search.total)} exits there, none kept singly` : 'No exit at ' + text);
		return;
	}
	const n = search.list.length;
	jumpTo(search.at < 0 ? (way > 0 ? 0 : n - 1) : (search.at + way + n) % n);
}

function jumpTo(k) {
	const i = search.list[k], lane = lanes.find((l) => l.kind === 'vcpu' && l.id === spans.line[i]);
	search.at = k;
	picked.reason = -1;
	if (lane)
		select({ lane, i, part: 'run' });
	const at = spans.start[i] + spans.length[i];
	const length = Math.min(view.t1 - view.t0, Math.max(hz ? hz * 5e-5 : 1000, (spans.length[i] + spans.gap[i]) * 8));
	setView(at - length / 2, at + length / 2);
	showTab('ips');
	fillIps();
	tell(`Exit ${number(k + 1)} of ${number(search.list.length)} at ${hex(spans.ip.of(i))}: ` +
		`${exact(at)}, ${lineName(spans.line[i])}, ${reasonName(spans.reason[i])}`);
}

// ---- pointer ----

const timeAt = (canvas, x) => {
	const box = canvas.getBoundingClientRect();
	return view.t0 + (x - box.left) / box.width * (view.t1 - view.t0);
};

function under(event) {
	const y = event.clientY - $('lanes').getBoundingClientRect().top + $('scroll').scrollTop;
	const row = rows.find((r) => y >= r.y && y < r.y + r.height), t = timeAt($('lanes'), event.clientX);
	if (!row || row.group || t < 0 || t > view.end)
		return null;
	if (row.flame)
		return frameAt(row.flame, t, y - row.y - 4);
	return inLane(row.lane, t);
}

function inLane(lane, t) {
	const slack = (view.t1 - view.t0) / $('lanes').clientWidth * 3;
	if (lane.kind !== 'host') {
		const hit = lane.at(t, slack);
		if (hit && (lane.complete || levelFor(lane.shares.width, $('lanes').clientWidth) < 0))
			return hit;
		const cells = lane.sharesAt(t);
		return cells ? { lane, cells } : hit;
	}
	let found = null;
	machine.visit(0, t, t + 1, (from, width, first, end, level, b) => {
		if (from <= t && t < from + width)
			found = { lane, from, width: width * Math.max(1, meta.streams.length), first, end, level, b };
	});
	return found ? { lane, cells: found } : null;
}

function showTip(event) {
	const tip = $('tip'), sel = under(event);
	tip.hidden = !sel;
	if (!sel)
		return;
	const facts = sel.frame ? frameFacts(sel) : sel.cells ? shareFacts(sel.cells) : factsOf(sel);
	tip.textContent = '';
	tip.append(make('strong', {}, facts.title), dlRows(facts.rows.slice(0, 14)));
	if (facts.note)
		tip.append(make('p', { class: 'warn' }, facts.note));
	const x = event.clientX + 14, y = event.clientY + 14, box = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, x + box.width > innerWidth ? event.clientX - box.width - 10 : x) + 'px';
	tip.style.top = Math.max(4, Math.min(y, innerHeight - box.height - 4)) + 'px';
}

function listenLanes() {
	const canvas = $('lanes');
	let from = null;
	canvas.addEventListener('wheel', (e) => {
		e.preventDefault();
		const turn = e.deltaMode ? 30 : 1;
		if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
			pan((e.deltaX || e.deltaY) * turn / 1000);
		else
			zoom(2 ** (e.deltaY * turn / 240), timeAt(canvas, e.clientX));
		showTip(e);
	}, { passive: false });
	canvas.addEventListener('pointerdown', (e) => {
		if (e.button)
			return;
		from = { x: e.clientX, y: e.clientY, t0: view.t0, t1: view.t1, top: $('scroll').scrollTop, moved: false };
		canvas.setPointerCapture(e.pointerId);
	});
	canvas.addEventListener('pointermove', (e) => {
		if (!from)
			return showTip(e);
		if (Math.abs(e.clientX - from.x) + Math.abs(e.clientY - from.y) > 4)
			from.moved = true;
		if (!from.moved)
			return undefined;
		canvas.classList.add('drag');
		$('tip').hidden = true;
		const t = (from.x - e.clientX) / canvas.clientWidth * (from.t1 - from.t0);
		$('scroll').scrollTop = from.top + from.y - e.clientY;
		return setView(from.t0 + t, from.t1 + t);
	});
	canvas.addEventListener('pointerup', (e) => {
		const sel = from && !from.moved ? under(e) : null;
		canvas.classList.remove('drag');
		if (sel && sel.frame)
			zoomToFrame(sel);
		else if (sel)
			select(sel);
		else if (from && !from.moved)
			clearPicked();
		from = null;
	});
	canvas.addEventListener('pointercancel', () => {
		from = null;
	});
	canvas.addEventListener('pointerleave', () => {
		$('tip').hidden = true;
	});
	canvas.addEventListener('dblclick', (e) => zoom(1 / 4, timeAt(canvas, e.clientX)));
	canvas.addEventListener('focus', draw);
	canvas.addEventListener('blur', draw);
}

// The strip of the whole trace: a click moves the view there.
function listenOverview() {
	const canvas = $('overview');
	const go = (e) => {
		const box = canvas.getBoundingClientRect(), half = (view.t1 - view.t0) / 2;
		const t = (e.clientX - box.left) / box.width * view.end;
		if (e.buttons & 1)
			setView(t - half, t + half);
	};
	canvas.addEventListener('pointerdown', (e) => {
		canvas.setPointerCapture(e.pointerId);
		go(e);
	});
	canvas.addEventListener('pointermove', go);
}

// ---- keyboard ----

function pickLane(way) {
	let k = picked.lane;
	do
		k += way;
	while (rows[k] && !rows[k].lane);
	if (!rows[k])
		return;
	picked.lane = k;
	remember();
	const middle = (view.t0 + view.t1) / 2, { lane } = rows[k];
	const hit = inLane(lane, middle);
	tell(`Lane ${lane.name}` + (hit ? '; in the middle: ' + (hit.cells ? shareFacts(hit.cells) : factsOf(hit)).title : ''));
	scrollTo(rows[k]);
	draw();
}

const KEYS = {
	'+': () => zoom(1 / 2), '=': () => zoom(1 / 2), '-': () => zoom(2), 0: fit, f: fit,
	ArrowLeft: (e) => e.shiftKey ? stepSpan(-1) : pan(-0.2), ArrowRight: (e) => e.shiftKey ? stepSpan(1) : pan(0.2),
	ArrowUp: () => pickLane(-1), ArrowDown: () => pickLane(1), Home: () => setView(0, view.t1 - view.t0),
	End: () => setView(view.end - (view.t1 - view.t0), view.end), Escape: clearPicked,
	Enter: () => {
		const row = rows[picked.lane], hit = row && row.lane && inLane(row.lane, (view.t0 + view.t1) / 2);
		if (hit)
			select(hit);
	},
};

function listenKeys() {
	$('lanes').addEventListener('keydown', (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key])
			return;
		e.preventDefault();
		KEYS[e.key](e);
	});
	document.addEventListener('keydown', (e) => {
		if (/^(INPUT|SELECT)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey)
			return;
		if (e.key === '/') {
			e.preventDefault();
			$('ip').focus();
		} else if (e.target === document.body && KEYS[e.key] && !/^(Arrow(Up|Down)|Enter|Home|End)$/.test(e.key)) {
			e.preventDefault();
			KEYS[e.key](e);
		}
	});
	$('ip').addEventListener('keydown', (e) => {
		if (e.key === 'Enter') {
			e.preventDefault();
			nextHit(e.shiftKey ? -1 : 1);
		}
	});
	$('search').addEventListener('submit', (e) => {
		e.preventDefault();
		nextHit(1);
	});
	const tabs = [...document.querySelectorAll('[role=tab]')].filter((tab) => !tab.hidden);
	tabs.forEach((tab, k) => {
		tab.addEventListener('click', () => showTab(tab.id.slice(4)));
		tab.addEventListener('keydown', (e) => {
			const way = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
			if (way) {
				const next = tabs[(k + way + tabs.length) % tabs.length];
				showTab(next.id.slice(4));
				next.focus();
			}
		});
	});
}
