// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The static parts: header, labels of the lanes, the key; and the start of the page.

function fillHeader() {
	$('title').textContent = (meta.title || '') + (meta.more || '');
	document.title = (meta.title ? meta.title + ' – ' : '') + 'vmpt timeline';
	const totals = meta.totals || {}, facts = [[bytes ? 'Length' : 'Duration', time(view.end)],
		['CPUs', number(meta.streams.length)], ['VMs', meta.vms.length ? `${number(meta.vms.length)} with ${number(meta.lines.length)} vCPUs` : 'none'],
		['Exits', number(totals.exits || 0)], ['Clock', meta.base + (hz || bytes ? '' : ', frequency not known')], ['Times', clockName()],
		['Losses', totals.losses ? number(totals.losses) : 'none', totals.losses ? 'bad' : '']];
	for (const [name, value, look] of facts)
		$('facts').append(make('div', {}, make('dt', {}, name), make('dd', look ? { class: look } : {}, value)));
	const notes = [...meta.notes || []];
	if (meta.untold)
		notes.push({ level: 'warning', text: `${number(meta.untold)} spans are of vCPUs for which the page has no lane` });
	$('notes').hidden = !notes.length;
	const warnings = notes.filter((n) => n.level === 'warning').length;
	$('notes-sum').textContent = warnings ? `${warnings} warning${warnings > 1 ? 's' : ''}` : 'Notes';
	for (const note of notes)
		$('note-list').append(make('li', { class: note.level === 'warning' ? 'warn' : '' }, note.text));
}

// The column is as wide as names need, up to a fifth of the lanes; longer names lose their middle.
function labelTexts() {
	const names = rows.map((row) => row.flame ? '' : row.group || row.alone ? row.name : row.lane.kind === 'vcpu' ? shortName(row.lane.id) : row.lane.name);
	const most = Math.max(100, Math.min(300, $('chart').clientWidth * 0.22)), bold = textWidth(600);
	const room = Math.min(most, Math.max(100, ...names.map((name) => bold(name) + 44)));
	$('chart').style.setProperty('--label', Math.ceil(room) + 'px');
	// Names of VMs must differ from each other, names of vCPUs within their VM.
	const cut = shorten(names.filter((name, k) => rows[k].group || rows[k].alone), room - 42, bold);
	return names.map((name, k) => rows[k].group || rows[k].alone ? cut.shift() : shorten([name], room - 32, textWidth(400))[0]);
}

let shownFlames = '';

// The set of lanes has changed: rebuild rows and labels.
function layout() {
	const lane = rows[picked.lane] && rows[picked.lane].lane, height = layRows(), box = $('labels');
	$('rows').style.height = Math.max(height, $('scroll').clientHeight) + 'px';
	box.textContent = '';
	const texts = labelTexts();
	rows.forEach((row, k) => {
		const el = row.group ? button(`${folded.has(row.group) ? '▸' : '▾'} `, () => {
			if (!folded.delete(row.group))
				folded.add(row.group);
			layout();
		}, { class: 'group', 'aria-expanded': String(!folded.has(row.group)), title: `${row.name}: ${row.count} lanes` }) :
			make('div', { class: row.alone || k === 0 ? 'lane' : 'lane in', title: row.flame ? 'calls of ' + row.flame.name : row.lane.name });
		const vm = row.group ? row.vm : row.alone && row.lane.kind === 'vcpu' ? row.lane.vm : -1;
		el.append(...vm >= 0 ? [swatch((ctx) => vmFill(ctx, vm))] : [], texts[k]);
		el.style.top = row.y + 'px';
		el.style.height = el.style.lineHeight = row.height + 'px';
		box.append(el);
	});
	shownFlames = flameKey();
	picked.lane = lane ? rows.findIndex((row) => row.lane === lane) : -1;
	markLabels();
	draw();
}

function markLabels() {
	const line = picked.span && !picked.span.cells ? spans.line[picked.span.i] : -1;
	[...$('labels').children].forEach((el, k) => {
		const { lane } = rows[k];
		el.classList.toggle('on', Boolean(lane && (k === picked.lane || (lane.kind === 'vcpu' && line >= 0 && lane.id === line))));
	});
}

// ---- the key ----

function keyBox(state, kind, height, text) {
	const canvas = make('canvas', { 'aria-hidden': 'true' }), lane = { kind, vm: 0 };
	requestAnimationFrame(() => {
		const ctx = fitCanvas(canvas, 40, 16);
		ctx.fillStyle = state === 'pale' ? vmColor(0) : fillOf(ctx, kind, state) ||
			(state === RUNS ? vmColor(0) : state >= WAITS ? vmColor(1) : REASON_COLORS[theme.dark ? 'dark' : 'light'][0]);
		ctx.globalAlpha = state === 'pale' ? 0.45 : 1;
		ctx.fillRect(0, 16 - 16 * height, 40, 16 * height);
		ctx.globalAlpha = 1;
		if (state >= WAITS)
			fence(ctx, 0, 16 - 16 * height, 40, 16 * height);
		if (state === 'pale') {
			ctx.fillStyle = pattern(ctx, 'pale');
			ctx.fillRect(0, 0, 40, 16);
		}
	});
	return lane && [canvas, make('span', {}, text)];
}

function fillKey() {
	const box = $('key');
	box.textContent = '';
	box.append(make('h2', {}, 'Lanes'), make('div', { class: 'keybox' },
		...keyBox(RUNS, 'vcpu', 1, 'the guest runs: full height, its VM’s colour and pattern'),
		...keyBox(STATES, 'vcpu', 0.55, 'out of the guest after an exit: lower, coloured by reason'),
		...keyBox(STATES, 'vcpu', 0.12, 'halted: a thin line'),
		...keyBox(WAITS + 1, 'vcpu', 0.3, 'waits: low, and barred in the colour of the VM that has the CPU'),
		...keyBox(RUNS, 'cpu', 0.4, 'the host runs on a CPU'),
		...keyBox(UNKNOWN, 'cpu', 1, 'unknown: dotted; packets, but no proven owner'),
		...keyBox(LOST, 'cpu', 1, 'lost: hatched; bytes are gone, or an overflow'),
		...keyBox('pale', 'vcpu', 1, 'pale and striped: shares of time in a bucket, spans not kept singly')),
	make('p', {}, 'From afar a lane shows shares of time, stacked. A translucent edge is where a time may be: its bounds. ' +
		'A diamond: the vCPU came from another CPU; a red one: an overflow, a failed entry, or time went back. ' +
		'A reason with ? is a guess.'),
	make('h2', {}, 'Reasons'), make('div', { class: 'keybox', id: 'key-reasons' }), make('h2', {}, 'Keys'));
	const order = reasonRank.map((rank, reason) => [rank, reason]).filter(Boolean).sort((a, b) => a[0] - b[0]);
	for (const [, reason] of order.slice(0, 16)) {
		$('key-reasons').append(swatch(() => reasonColor(reason)), make('span', {}, `${reasonName(reason)}: ${SOURCES[reasonOf(reason).source]}`));
	}
	box.append(dlRows([['+ −', 'zoom; wheel: at the pointer; double click: 4 ×'], ['← →', 'earlier, later; drag does it too'],
		['0', 'the whole trace'], ['↑ ↓', 'lane'], ['Enter', 'select what is in the middle'],
		['Shift + ← →', 'the span before, the next one'], ['/', 'search by IP; Enter: next, Shift+Enter: previous'],
		['Esc', 'select nothing']]));
}

async function start() {
	readTheme();
	try {
		await load();
	} catch (error) {
		tell('The page cannot be read: ' + error.message);
		return;
	}
	view.end = Math.max(1, Number(meta.duration) || 1);
	Object.assign(view, { t0: 0, t1: view.end });
	$('tab-flames').hidden = !meta.flames;
	fillHeader();
	listenLanes();
	listenOverview();
	listenKeys();
	for (const [id, fn] of [['zoom-in', () => zoom(1 / 2)], ['zoom-out', () => zoom(2)], ['left', () => pan(-0.3)],
		['right', () => pan(0.3)], ['fit', fit]])
		$(id).addEventListener('click', fn);
	$('scroll').addEventListener('scroll', draw);
	new ResizeObserver(() => layout()).observe($('scroll'));
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', retheme);
	$('theme').addEventListener('click', () => {
		userTheme = theme.dark ? 'light' : 'dark';
		retheme();
		remember();
	});
	layout();
	fillIps();
	fillFlames();
	restore();
	addEventListener('popstate', restore);
	tellView('Ready');
}

start();
