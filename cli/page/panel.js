// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The side panel: facts of a span, exits by reason, exiting IPs, the key. Text goes in as text.

const dlRows = (list) => {
	const dl = make('dl', { class: 'rows' });
	for (const row of list)
		if (row)
			dl.append(make('dt', {}, row[0]), make('dd', row[2] ? { class: row[2] } : {}, row[1]));
	return dl;
};

const button = (text, fn, props) => make('button', { type: 'button', onclick: fn, ...props }, text);

function showTab(name) {
	for (const tab of document.querySelectorAll('[role=tab]')) {
		const on = tab.id === 'tab-' + name;
		tab.setAttribute('aria-selected', String(on));
		tab.tabIndex = on ? 0 : -1;
		$(tab.id.slice(4)).hidden = !on;
	}
	shownTab = name;
	if (name === 'exits')
		fillExits();
	if (name === 'flames')
		drawGraph();
	remember();
}

function swatch(paint) {
	const canvas = make('canvas', { class: 'swatch', 'aria-hidden': 'true' }), ctx = fitCanvas(canvas, 14, 14, true);
	ctx.fillStyle = paint(ctx);
	ctx.fillRect(0, 0, 14, 14);
	return canvas;
}

// ---- VMs ----

const exitView = { vm: -1, visible: true };
let shownTab = '';

function table(heads, ...rows) {
	return make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((t) => make('th', { scope: 'col' }, t)))),
		make('tbody', {}, ...rows));
}

const rowOfVm = () => rows.find((row) => row.lane && row.lane.kind === 'vcpu' && row.lane.vm === exitView.vm);

function scrollTo(row) {
	const box = $('scroll');
	if (row && (row.y < box.scrollTop || row.y + row.height > box.scrollTop + box.clientHeight))
		box.scrollTop = row.y - 40;
}

function pickVm(vm) {
	exitView.vm = exitView.vm === vm ? -1 : vm;
	scrollTo(exitView.vm < 0 ? null : rowOfVm());
	fillVms();
	markLabels();
	remember();
}

function laneSwitch(name, text, on, fn, paint, props, press) {
	const box = make('input', { type: 'checkbox', 'aria-label': name + ' shown', onchange: (e) => {
		fn(e.target.checked);
		layout();
		tell(`${name} ${e.target.checked ? 'shown' : 'hidden'}`);
	} });
	box.checked = on;
	return make('td', {}, make('div', {}, box, swatch(paint), press ? button(text, press, props) : text));
}

// Also the legend: which colour is whose, and which lanes are shown. Times are of the whole trace.
function fillVms() {
	const box = $('vms'), share = (ticks, mark) => make('td', {}, ticks ? time(ticks, 3) + mark : '–'), names = ['run', 'wait', 'host', 'halt', 'unknown'];
	const cut = shorten(meta.vms.map((vm) => vm.name), Math.max(110, $('panel').clientWidth - 290), textWidth(400));
	const body = meta.vms.map((vm, v) => {
		const of = meta.lines.filter((line) => line.vm === v);
		const sums = names.map((name) => of.reduce((sum, line) => sum + (line[name] || 0), 0));
		return make('tr', v === exitView.vm ? { class: 'on' } : {}, laneSwitch(vm.name, cut[v], !hiddenVms.has(v), (on) => {
			if (on)
				hiddenVms.delete(v);
			else
				hiddenVms.add(v);
		}, (ctx) => vmFill(ctx, v), { 'aria-pressed': String(v === exitView.vm), title: vm.name }, () => pickVm(v)), ...sums.slice(0, 4).map((sum, k) => share(sum, k && of.some((line) => line.guessed) ? '?' : '')));
	});
	box.textContent = '';
	box.append(table(['VM', 'Run', 'Wait', 'Host', 'Halted'], make('tr', {}, laneSwitch('CPUs', 'CPUs', showCpus, (on) => {
		showCpus = on;
	}, () => theme.host), ...['', '', '', ''].map((t) => make('td', {}, t))), ...body),
	make('p', { class: 'dim' }, bytes ? 'In bytes of the trace.' : 'Of the whole trace. Wait: out of the guest and not halted, while another vCPU had the CPU. ?: reasons are guesses, or unknown.'));
	if (exitView.vm >= 0)
		box.append(...waitsOf(exitView.vm));
}

// For whom the vCPUs of a VM waited.
function waitsOf(vm) {
	const list = [];
	meta.lines.forEach((line, i) => {
		if (line.vm !== vm)
			return;
		list.push(make('h3', {}, lineName(i)), dlRows([['Ran', time(line.run || 0)], ['Host ran', time(line.host || 0)],
			['Halted', time(line.halt || 0)], line.unknown && ['Not traced', time(line.unknown)],
			['Waited', line.wait ? `${time(line.wait)}, ${(line.wait / (line.wait + line.run) * 100).toFixed(1)} % of what it could have run` : '0'],
			...(line.on || []).map(([who, ticks]) => ['for ' + (meta.lines[who] ? lineName(who) : 'others'), time(ticks)])]));
	});
	return list;
}

// ---- a span ----

function bounds(early, late) {
	if (!early || !late)
		return early || late ? ' (bounded on one side)' : ' (no bound known)';
	const e = early - 1, l = late - 1;
	return e === l ? (e ? ' ± ' + time(e) : ' exactly') : ` −${time(e)} +${time(l)}`;
}

function ownerOf(i) {
	if (spans.kind[i] !== KIND.guest)
		return KINDS[spans.kind[i]];
	const line = spans.line[i];
	return line < 0 ? 'a VM, which one is not known' : lineName(line);
}

// Title and rows: of a run, or of the time out of the guest after it.
function factsOf({ i, part }) {
	const s = spans, f = s.flags[i], end = s.start[i] + s.length[i], gap = part === 'gap';
	const reason = f & EXITED ? reasonOf(s.reason[i]) : null;
	const rows = [];
	const edge = (name, at, b, how) => rows.push([name, exact(at) + (bytes ? '' : bounds(s.bound[b][i], s.bound[b + 1][i]))],
		how && ['', how, 'dim'], !bytes && [name + ' TSC', tsc(at)]);
	if (gap) {
		edge('From', end, 2, '');
		rows.push(['To', exact(end + s.gap[i])], ['Lasts', time(s.gap[i])], ...outOf(i));
	} else {
		edge('Start', s.start[i], 0, s.kind[i] === KIND.guest ? EDGES[s.edges[i] & 7] : '');
		edge('End', end, 2, s.kind[i] === KIND.guest ? EDGES[s.edges[i] >> 3] : '');
		rows.push(['Lasts', time(s.length[i])]);
	}
	rows.push(['CPU', cpuName(s.stream[i])], ['Owner', ownerOf(i) + (s.sure[i] ? ` (${SURE[s.sure[i]]})` : '')]);
	if (s.line[i] >= 0)
		rows.push(['VMCS', (meta.lines[s.line[i]] || {}).vmcs || '–']);
	if (reason)
		rows.push(['Exit', `${reason.name}${reason.number === 65535 ? '' : ' (' + reason.number + ')'}`],
			['Source', SOURCES[reason.source] + (guessed(reason) ? ': a guess' : ''), guessed(reason) ? 'warn' : ''],
			reason.halted && ['State', 'halted: nothing to do']);
	if (f & HAS_IP)
		rows.push(['IP', hex(s.ip.of(i)) + symbolOf(s.ip.of(i))], ['CR3', s.cr3.of(i) ? hex(s.cr3.of(i)) : '–']);
	if (f & HAS_QUAL)
		rows.push(['Qualification', hex(s.qual.of(i))]);
	if (!gap && reason)
		rows.push(['Then out', f & TIMED ? time(s.gap[i]) : 'not known: a loss, or the end']);
	rows.push(['Trace bytes', `${number(s.offset[i])} … ${number(s.offset[i] + s.size[i])} (${number(s.size[i])})`]);
	if (f & MOVED)
		rows.push(['Moved', `from ${cpuName(s.from[i] - 1)}`, 'warn']);
	if (s.back[i])
		rows.push(['Time went back', BACKS[s.back[i]] || 'for a reason not known', 'bad']);
	if (s.overflows[i])
		rows.push(['Overflows', number(s.overflows[i]), 'bad']);
	if (s.failed[i])
		rows.push(['Failed entries', number(s.failed[i]), 'warn']);
	const title = gap ? (f & TIMED ? 'Out of the guest: ' + reasonName(s.reason[i]) : 'Unknown: not seen to come back') :
		ownerOf(i) + (s.kind[i] === KIND.guest ? ' runs' : '');
	return { title, rows: rows.filter(Boolean) };
}

// The parts of the time out of the guest, and whose the CPU was.
function outOf(i) {
	const wait = spans.waited[i], unknown = spans.unknown[i], by = new Map();
	if (!(spans.flags[i] & TIMED) || bytes || wait + unknown === 0)
		return [];
	for (const [state, , length, line] of partsOf(i) || [])
		if (state >= WAITS)
			by.set(line, (by.get(line) || 0) + length);
	const list = [...by].sort((a, b) => b[1] - a[1]);
	return [['Host ran', time(spans.gap[i] - wait - unknown)], wait && ['Waited', time(wait)],
		...list.slice(0, 5).map(([line, ticks]) => ['for ' + (line < 0 ? 'others' : lineName(line)), time(ticks)]),
		unknown && ['Not traced', time(unknown)]];
}

function symbolOf(ip) {
	const text = '0x' + ip.toString(16);
	for (const vm of meta.ips)
		for (const entry of vm.list)
			if (entry.ip === text && entry.symbol)
				return ' ' + entry.symbol;
	return '';
}

function shareFacts(cells) {
	const { lane, from, width, first, end, level, b } = cells, list = [];
	for (let c = first; c < end; c++)
		list.push([stateName(lane, level.state[c]),
			`${(level.ticks[c] / Math.min(width, Math.max(1, view.end - from)) * 100).toFixed(1)} %` +
			(level.count[c] ? `, ${number(level.count[c])} spans` : '')]);
	const n = lane.kind === 'host' ? 0 : lane.dropped[b];
	return { title: `${lane.name}: shares of ${time(width)}`, rows: [['From', exact(from)], ...list],
		note: n > 0 && !bytes ? `${number(n)} spans here, not kept singly: ${meta.command || 'vmpt timeline --html FILE'} ` +
			`--from ${argument(from)} --to ${argument(from + width)} gives them.` : '' };
}

// In the format of vmpt timeline --from.
const argument = (ticks) => hz ? ((begin + ticks) / hz).toFixed(9) : String(Math.round(begin + ticks));

function showSpan() {
	const box = $('span'), sel = picked.span;
	box.textContent = '';
	if (!sel) {
		box.append(make('p', { class: 'dim' }, 'Click a span, or go to the lanes with Tab and use arrows and Enter.'));
		return;
	}
	const facts = sel.cells ? shareFacts(sel.cells) : factsOf(sel);
	box.append(make('h2', {}, facts.title), dlRows(facts.rows));
	if (facts.note)
		box.append(make('p', { class: 'warn' }, facts.note));
	const acts = make('div', { class: 'acts' });
	acts.append(button('Zoom to it', () => zoomTo(sel)), button('◀ Previous', () => stepSpan(-1)),
		button('Next ▶', () => stepSpan(1)));
	if (!sel.cells && sel.part === 'gap')
		acts.append(button('All of this reason', () => pickReason(spans.reason[sel.i])));
	if (!sel.cells && spans.flags[sel.i] & HAS_IP)
		acts.append(button('All at this IP', () => searchFor(hex(spans.ip.of(sel.i)))));
	acts.append(button('Clear', clearPicked));
	box.append(acts);
}

// ---- exits ----

const newStat = () => ({ count: 0, timed: 0, ticks: 0, waited: 0, max: 0, bins: new Map() });

function wholeStats() {
	const stats = new Map();
	for (const h of hists) {
		if (exitView.vm >= 0 && lineVm(h.line) !== exitView.vm)
			continue;
		const st = stats.get(h.reason) || newStat();
		st.waited += h.waited;
		st.count += h.count;
		st.timed += h.timed;
		st.ticks += h.ticks;
		st.max = Math.max(st.max, h.max);
		for (const [bin, n] of h.bins)
			st.bins.set(bin, (st.bins.get(bin) || 0) + n);
		stats.set(h.reason, st);
	}
	return stats;
}

// Of the visible range: from single spans if all are kept, else from buckets, without percentiles.
function rangeStats() {
	const stats = new Map(), chosen = lanes.filter((l) => l.kind === 'vcpu' && (exitView.vm < 0 || l.vm === exitView.vm));
	const all = chosen.every((l) => l.droppedIn(view.t0, view.t1) === 0);
	const get = (reason) => {
		if (!stats.has(reason))
			stats.set(reason, newStat());
		return stats.get(reason);
	};
	for (const lane of chosen) {
		if (all) {
			for (let [k, last] = lane.range(view.t0, view.t1); k < last; k++) {
				const i = lane.items[k], at = spans.start[i] + spans.length[i];
				if (!(spans.flags[i] & EXITED) || at < view.t0 || at >= view.t1)
					continue;
				const st = get(spans.reason[i]), gap = spans.gap[i] - spans.waited[i] - spans.unknown[i], bin = binOf(gap);
				st.count++;
				if (!(spans.flags[i] & TIMED))
					continue;
				st.timed++;
				st.ticks += gap;
				st.waited += spans.waited[i];
				st.max = Math.max(st.max, gap);
				st.bins.set(bin, (st.bins.get(bin) || 0) + 1);
			}
			continue;
		}
		lane.shares.visit(0, view.t0, view.t1, (from, width, first, end, level) => {
			for (let c = first; c < end; c++)
				if (level.state[c] >= STATES && level.state[c] < WAITS) {
					const st = get(level.state[c] - STATES);
					st.count += level.count[c];
					st.ticks += level.ticks[c];
				}
		});
	}
	return { stats, all };
}

function fillExits() {
	const box = $('exits'), whole = !exitView.visible || (view.t0 <= 0 && view.t1 >= view.end);
	const range = whole ? { stats: wholeStats(), all: true } : rangeStats();
	const list = [...range.stats].sort((a, b) => reasonOf(a[0]).halted - reasonOf(b[0]).halted || b[1].ticks - a[1].ticks);
	const focus = document.activeElement && document.activeElement.id;
	const select = make('select', { id: 'exit-vm', 'aria-label': 'VM', onchange: (e) => {
		exitView.vm = Number(e.target.value);
		fillExits();
		fillVms();
		remember();
	} }, make('option', { value: -1 }, 'all VMs'), ...meta.vms.map((vm, i) => make('option', { value: i }, vm.name)));
	select.value = String(exitView.vm);
	const check = make('input', { type: 'checkbox', id: 'exit-range', onchange: (e) => {
		exitView.visible = e.target.checked;
		fillExits();
	} });
	check.checked = exitView.visible;
	box.textContent = '';
	box.append(make('div', { class: 'opts' }, select, make('label', {}, check, ' only what is visible')),
		make('p', { class: 'dim', id: 'exit-scope' }, whole ? `Of the whole trace. ${bytes ? 'Bytes' : 'Host: it ran'} from the exit to the next entry${bytes ? '' : '; percentiles are of that'}.` :
			range.all ? 'Of the visible range, exactly.' :
				`Of the visible range, rounded to buckets of ${time(vcpuGrid.width)}; percentiles: zoom in, or see the whole.`));
	const body = [];
	for (const [reason, st] of list) {
		const bins = [...st.bins].sort((a, b) => a[0] - b[0]);
		const q = (part) => st.timed ? time(quantile(bins, st.timed, part, st.max), 3) : '–';
		const cells = [number(st.count), time(st.ticks, 3), ...bytes ? [] : [st.waited || range.all ? time(st.waited, 3) : '–'], q(0.5), q(0.95), q(0.99)];
		body.push(make('tr', reason === picked.reason ? { class: 'on' } : {},
			make('td', {}, make('div', {}, swatch(() => reasonColor(reason)), button(reasonName(reason), () => pickReason(reason),
				{ 'aria-pressed': String(reason === picked.reason), title: SOURCES[reasonOf(reason).source] }))),
			...cells.map((text) => make('td', {}, text))));
	}
	box.append(table(['Reason', 'Exits', ...bytes ? ['Bytes'] : ['Host', 'Wait'], 'p50', 'p95', 'p99'], ...body));
	if (!list.length)
		box.append(make('p', { class: 'dim' }, 'No exits here.'));
	box.append(make('h3', {}, 'Exits by host time, ' + (picked.reason < 0 ? 'all but halts' : reasonName(picked.reason))),
		make('canvas', { id: 'hist', role: 'img', 'aria-label': 'Histogram of the exits’ host times' }));
	drawHist(range, list);
	if (focus && $(focus))
		$(focus).focus();
}

function drawHist(range, list) {
	const canvas = $('hist'), w = canvas.clientWidth, h = 120;
	if (!w)
		return;
	const ctx = fitCanvas(canvas, w, h), bins = new Map(), stats = range.all ? list : wholeStats();
	for (const [reason, st] of stats)
		if (picked.reason < 0 ? !reasonOf(reason).halted : reason === picked.reason)
			for (const [bin, n] of st.bins) {
				if (!bin)
					continue;
				const half = Math.floor(bin / 4);
				bins.set(half, (bins.get(half) || 0) + n);
			}
	// What is shorter than the clock can show is no bar: it would be out of scale and proportion.
	const zeros = (picked.reason < 0 ? [...stats] : [...stats].filter(([r]) => r === picked.reason)).reduce((sum, [r, st]) =>
		sum + (picked.reason < 0 && reasonOf(r).halted ? 0 : st.bins.get(0) || 0), 0);
	ctx.fillStyle = theme.dim;
	ctx.fillText((zeros ? `${number(zeros)} of 0: shorter than the clock shows` : '') + (range.all ? '' : ' (whole trace)'), 2, 6);
	if (!bins.size)
		return;
	const keys = [...bins.keys()], low = Math.max(0, Math.min(...keys) - 1), high = Math.max(...keys) + 2;
	const most = Math.max(...bins.values()), left = 40, bar = (w - left) / (high - low), base = h - 16;
	// Heights are logarithmic: rare long exits are what one looks for.
	const up = (n) => Math.log10(1 + n) / Math.log10(1 + most) * (base - 18);
	for (let n = 1; n <= most; n *= 10) {
		ctx.fillStyle = theme.line;
		ctx.fillRect(left, base - up(n), w - left, 1);
		ctx.fillStyle = theme.dim;
		if (n === 1 || up(n) - up(n / 10) > 9)
			ctx.fillText(n < 1e3 ? n : n < 1e6 ? n / 1e3 + ' k' : n / 1e6 + ' M', 2, base - up(n));
	}
	ctx.fillStyle = picked.reason < 0 ? theme.dim : reasonColor(picked.reason);
	for (const [bin, n] of bins)
		ctx.fillRect(left + (bin - low) * bar, base - up(n), Math.max(1, bar - 1), up(n));
	ctx.fillStyle = theme.line;
	ctx.fillRect(left, base, w - left, 1);
	ctx.fillStyle = theme.dim;
	for (let bin = low, x = -99; bin <= high; bin++) {
		const at = left + (bin - low) * bar;
		if (at - x > 72 && at < w - 44) {
			ctx.fillRect(at, base, 1, 4);
			ctx.fillText(time(binEdge(bin * 4), 2), at + 2, h - 6);
			x = at;
		}
	}
}

// ---- IPs ----

const search = { list: [], at: -1, text: '', total: 0 };

// The value or the range in @text; null: not a number.
function parseIps(text) {
	const m = /^\s*(?:0x)?([0-9a-f]{1,16})\s*(?:(-|\+|\.\.)\s*(?:0x)?([0-9a-f]{1,16}))?\s*$/i.exec(text);
	if (!m)
		return null;
	const from = BigInt('0x' + m[1]), second = m[3] ? BigInt('0x' + m[3]) : 0n;
	return [from, !m[2] ? from : m[2] === '+' ? from + second - 1n : second];
}

function runSearch(text) {
	Object.assign(search, { list: [], at: -1, text, total: 0 });
	picked.hits = null;
	if (!text.trim())
		return;
	const range = parseIps(text), word = text.trim().toLowerCase(), named = new Set();
	for (const vm of meta.ips)
		for (const entry of vm.list) {
			const ip = BigInt(entry.ip), fits = range && ip >= range[0] && ip <= range[1];
			if (fits || (entry.symbol && entry.symbol.toLowerCase().includes(word))) {
				named.add(ip);
				search.total += entry.count;
			}
		}
	const wanted = Uint8Array.from(spans.ip.table, (ip) =>
		Number((range && ip >= range[0] && ip <= range[1]) || named.has(ip)));
	for (let i = 0; i < spans.n; i++)
		if (spans.ip.index[i] >= 0 && wanted[spans.ip.index[i]])
			search.list.push(i);
	search.list.sort((a, b) => spans.start[a] + spans.length[a] - spans.start[b] - spans.length[b]);
	picked.hits = new Set(search.list);
}

function fillIps() {
	const box = $('ips');
	box.textContent = '';
	if (search.text) {
		const more = search.total > search.list.length ? ` of ${number(search.total)}, the others are not kept singly` : '';
		box.append(make('h2', {}, 'Exits at ' + search.text), make('p', { class: 'dim', id: 'hit-count' },
			search.list.length || search.total ? `${number(search.list.length)} exits${more}.` : 'No exit at that IP.'));
		const hits = make('ol', { class: 'hits' }), first = Math.max(0, Math.min(search.at - 100, search.list.length - 200));
		search.list.slice(first, first + 200).forEach((i, k) => {
			const end = spans.start[i] + spans.length[i];
			hits.append(make('li', first + k === search.at ? { class: 'on' } : {},
				button(`${exact(end)}  ${lineName(spans.line[i])}  ${reasonName(spans.reason[i])}`, () => jumpTo(first + k))));
		});
		if (search.list.length)
			box.append(hits);
		const on = hits.querySelector('.on');
		if (on)
			hits.scrollTop = on.offsetTop - hits.offsetTop - 80;
	}
	for (const vm of meta.ips) {
		box.append(make('h3', {}, `${vmName(vm.vm)}: IPs of most exits`));
		if (vm.missed)
			box.append(make('p', { class: 'dim' }, `Counts may be up to ${number(vm.missed)} too low; ${number(vm.total)} exits in all.`));
		box.append(table(['IP', 'Exits', 'Host', 'Mostly'], ...vm.list.slice(0, 60).map((entry) => make('tr', {},
			make('td', {}, button('', () => searchFor(entry.ip), { 'aria-label': 'Exits at ' + entry.ip }),
				entry.symbol ? make('span', { class: 'sym' }, entry.symbol) : null), make('td', {}, number(entry.count)),
			make('td', {}, time(entry.ticks, 3)), make('td', { class: 'wrap' }, reasonName(entry.reason))))));
		box.lastChild.querySelectorAll('button').forEach((b, k) => b.append(make('code', {}, vm.list[k].ip)));
	}
	if (!meta.ips.length)
		box.append(make('p', { class: 'dim' }, 'The trace has no IPs of exits.'));
}
