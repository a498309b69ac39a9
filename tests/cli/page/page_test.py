#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What people do with the HTML page, done in a browser: page_test.py CHROMIUM FOLDER. Looks at what
they see: text of the status line, the panel, pixels of the canvases."""
import json
import re
import sys

from browser import Browser

SHIFT = 8
HOSTILE = "</script><img src=x onerror=alert(1)>"
LANES = "document.getElementById('lanes')"
ROWS = "[...document.querySelectorAll('#exits tbody tr')]"
# What the page draws: its texts with their boxes, and the bars.
SPY = """
	window.spied = {};
	const proto = CanvasRenderingContext2D.prototype, of = (c) => window.spied[c.canvas.id] ||= { texts: [], bars: [] };
	for (const name of ['clearRect', 'fillRect', 'fillText']) {
		const real = proto[name];
		proto[name] = function (...args) {
			if (name === 'clearRect')
				window.spied[this.canvas.id] = { texts: [], bars: [] };
			else if (name === 'fillRect')
				of(this).bars.push(args);
			else {
				const [text, x, y] = args, m = this.measureText(text);
				of(this).texts.push([text, x, y - m.actualBoundingBoxAscent, m.width,
					m.actualBoundingBoxAscent + m.actualBoundingBoxDescent]);
			}
			return real.apply(this, args);
		};
	}
"""
# Elements that stick out of the window, or of the part of it that they are in.
OUTSIDE = """(() => {
	const out = [], name = (e) => `${e.tagName}#${e.id}.${e.className} ${e.textContent.slice(0, 30)}`;
	for (const e of document.querySelectorAll('body *')) {
		const r = e.getBoundingClientRect();
		if (r.width && r.height && (r.right > innerWidth + 0.5 || r.left < -0.5))
			out.push(name(e));
	}
	for (const e of document.querySelectorAll('[role=tabpanel], [role=tablist], header, #tools, .label, #labels > *'))
		if (e.clientWidth && e.scrollWidth > e.clientWidth + 1)
			out.push('inside ' + name(e));
	return out;
})()"""
SWATCHES = """((within) => [...document.querySelectorAll(within)].map((c) =>
	[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]))"""


class Test:
	def __init__(self, browser, folder):
		self.b, self.folder = browser, folder
		self.checks, self.failures = 0, 0

	def check(self, good, what):
		self.checks += 1
		if not good:
			self.failures += 1
			print(f"FAILED: {what}")

	def load(self, name, width=1280, height=800, dark=False, hash_=""):
		self.b.size(width, height, dark)
		if hash_:
			self.b.goto_blank()
		self.b.goto(f"{self.folder}/{name}.html", hash_)
		# The page before may be there for a while.
		self.b.wait(f"location.pathname.endsWith('/{name}.html') && "
			    "document.readyState === 'complete' && /^Ready/.test("
			    "document.getElementById('status').textContent)", f"{name} is ready")
		self.b.frame()

	def text(self, id_):
		self.b.frame()
		return self.b.run(f"document.getElementById('{id_}').textContent")

	def box(self, selector):
		return self.b.run(f"(() => {{ const r = document.querySelector({selector!r})"
				  ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")

	def click(self, selector):
		x, y, w, h = self.box(selector)
		self.b.click(x + w / 2, y + h / 2)
		self.b.frame()

	def wheel(self, x, y, turns):
		for _ in range(abs(turns)):
			self.b.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240 if turns > 0 else 240)
		self.b.frame()

	# All pixels of a canvas.
	def pixels(self, id_="lanes"):
		self.b.frame()
		return self.b.run(f"document.getElementById('{id_}').toDataURL()")

	# The visible seconds in the status line: "1.5 ms" after the last comma.
	def visible(self):
		number, unit = re.search(r"([\d.]+) (s|ms|µs|ns)$", self.text("status")).groups()
		return float(number) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]

	def shot(self, name):
		self.b.screenshot(f"{self.folder}/{name}.png")

	def row_of(self, name, group):
		"""Middle of the lane with that label, below that group."""
		return self.b.run(
			"(() => { let seen = false; for (const el of document.getElementById('labels')"
			f".children) {{ seen = seen || el.textContent.includes({group!r}); if (seen && "
			f"el.textContent === {name!r}) {{ const r = el.getBoundingClientRect(); "
			"return r.y + r.height / 2; } } return 0; })()")

	# ---- what is tried ----

	def header(self):
		self.check(not self.b.run("document.getElementById('vms').hidden") and
			   self.b.run("document.querySelectorAll('#vms tbody tr').length") == 3,
			   "what it opens with: VMs")
		self.check(self.b.run("document.title") == "host.perf.data – vmpt timeline", "title")
		facts = self.text("facts")
		for word in ("Duration", "CPUs4", "Exits3,000", "Clockhost TSC", "Losses3"):
			self.check(word in facts, f"the header tells {word}: {facts}")
		self.check("contradicts the trace" in self.text("note-list"), "the header warns")
		self.check(self.b.run("document.images.length") == 0, "a name made no element")
		self.check(self.b.run("[...document.querySelectorAll('#labels [title]')].some((e) => "
				      f"e.title.startsWith({HOSTILE!r}))"), "a hostile name is shown as it is")
		self.check(self.text("level") == "every span is here", "a small trace is whole")

	def zooming(self):
		whole, pixels = self.visible(), self.pixels()
		x, y, w, _ = self.box("#lanes")
		self.wheel(x + w / 4, y + 100, 1)
		near = self.visible()
		self.check(abs(near - whole / 2) < whole / 50, f"the wheel zooms: {whole} {near}")
		first = re.match(r"([\d.]+) (ms|µs)", self.text("status"))
		start = float(first[1]) * {"ms": 1e-3, "µs": 1e-6}[first[2]]
		self.check(abs(start - whole / 8) < whole / 50, "the wheel zooms at the pointer")
		self.check(self.pixels() != pixels, "zooming is seen")
		pixels = self.pixels()
		self.b.mouse("mousePressed", x + 300, y + 100, button="left", buttons=1, clickCount=1)
		self.b.mouse("mouseMoved", x + 200, y + 100, button="left", buttons=1)
		self.b.mouse("mouseReleased", x + 200, y + 100, button="left", clickCount=1)
		self.check(self.pixels() != pixels and abs(self.visible() - near) < near / 50,
			   "dragging moves")
		self.b.run(LANES + ".focus()")
		for key, factor in (("+", 0.5), ("-", 1), ("0", 2)):
			self.b.key(key)
			self.check(abs(self.visible() - near * factor) < near / 25, f"key {key}")
		before = self.text("status")
		self.b.key("+")
		self.b.key("ArrowRight")
		self.check(self.text("status") != before, "key →")
		self.click("#fit")
		self.check("whole trace" in self.text("status"), "Fit")

	def selecting(self):
		x, _, w, _ = self.box("#lanes")
		y = self.row_of("vcpu 0", "web01")
		self.wheel(x + w / 2, y, 5)
		pixels = self.pixels()
		self.b.run(LANES + ".focus()")
		self.b.key("ArrowDown")
		self.check(self.text("status").startswith("Lane host"), "arrows choose a lane")
		self.b.click(x + w / 2, y)
		facts = self.text("span")
		for word in ("Start TSC0x", "CPUCPU ", "Ownerweb01 vcpu 0", "VMCS0x1000", "Trace bytes",
			     "CR30x2000", "IP0x"):
			self.check(word in facts or word.replace("Start", "From") in facts,
				   f"the panel tells {word}: {facts}")
		self.check(re.search(r"(Start|From)\d+\.\d{6} ms −10.0 ns \+20.0 ns", facts),
			   f"times have bounds: {facts}")
		self.check(self.pixels() != pixels, "the selection is seen")
		self.check(self.b.run("document.querySelectorAll('#labels .on').length") == 1,
			   "the label of its lane is marked")
		self.shot("span-light")
		self.b.run(LANES + ".focus()")
		self.b.key("ArrowRight", SHIFT)
		self.check(self.text("span") != facts, "Shift + → goes to the next span")
		self.b.mouse("mouseMoved", x + w / 2 + 30, y)
		self.b.frame()
		self.check(self.b.run("!document.getElementById('tip').hidden"), "there is a tooltip")
		self.check("Lasts" in self.text("tip"), "the tooltip has facts")
		self.b.key("Escape")
		self.check("Click a span" in self.text("span"), "Esc selects nothing")
		self.wheel(x + w / 2, y, 12)
		self.shot("deep-light")
		self.click("#fit")

	def counts(self):
		"""What page-make says: exits by reason as the page names it."""
		names = {"external interrupt": "external interrupt", "I/O instruction": "I/O instruction?",
			 "HLT": "HLT (halted)", "unknown": "reason unknown"}
		with open(f"{self.folder}/small.txt", encoding="utf-8") as file:
			found = re.findall(r"^exits (\d+) 0x(\w+) (.*)$", file.read(), re.M)
		return ({names.get(name, name): int(n) for n, _, name in found},
			{ip: int(n) for n, ip, _ in found})

	def table(self):
		self.b.frame()
		rows = self.b.run(ROWS + ".map(tr => [...tr.cells].map(td => td.textContent))")
		return {row[0]: int(row[1].replace(",", "")) for row in rows}

	def exits(self):
		want, _ = self.counts()
		self.click("#tab-exits")
		self.check(self.table() == want, f"exits by reason: {self.table()}, not {want}")
		self.check("whole trace" in self.text("exit-scope"), "it says what they are of")
		bars = self.pixels("hist")
		pixels = self.pixels()
		self.click("#exits tbody tr:first-child button")
		self.check(self.pixels() != pixels, "the exits of a reason are seen")
		self.check(self.pixels("hist") != bars, "the histogram is of that reason")
		self.check(self.b.run("document.querySelectorAll('#exits tr.on').length") == 1,
			   "its row is marked")
		first = self.b.run("document.querySelector('#exits tbody button').textContent")
		self.check(self.text("status").startswith("Highlighted: " + first), "the status line names it")
		self.shot("exits-light")
		x, y, w, _ = self.box("#lanes")
		self.wheel(x + w / 2, y + 100, 2)
		# A while after each turn: a slow browser fills it in between, too, with a half.
		self.b.wait(ROWS + ".reduce((sum, tr) => sum + Number(tr.cells[1].textContent"
			    f".replaceAll(',', '')), 0) < {sum(want.values()) // 3}",
			    "the table follows the view")
		self.check("visible range, exactly" in self.text("exit-scope"), "it says of what")
		self.check(sum(self.table().values()) > 0, "only what is visible")
		self.click("#exits tbody tr:first-child button")
		self.click("#fit")

	def searching(self):
		_, ips = self.counts()
		self.b.run(LANES + ".focus()")
		self.b.key("/")
		self.b.type("ffffffff81234560")
		self.b.key("Enter")
		n = f"{ips['ffffffff81234560']:,}"
		self.check(self.text("hit-count") == f"{n} exits.", f"hits: {self.text('hit-count')}")
		first, pixels = self.text("status"), self.pixels()
		self.check(first.startswith(f"Exit 1 of {n} at 0xffffffff81234560"), f"first: {first}")
		self.b.key("Enter")
		self.check(self.text("status").startswith("Exit 2 of"), "Enter: the next one")
		self.check(self.pixels() != pixels, "the view went there")
		self.b.key("Enter", SHIFT)
		self.check(self.text("status") == first, "Shift+Enter: the one before")
		self.shot("search-light")
		self.click("#ips ol li:nth-child(6) button")
		self.check(self.text("status").startswith("Exit 6 of"), "an exit of the list")
		self.b.run(LANES + ".focus()")
		for _ in range(9):
			self.b.key("+")
		# The end of a run is there in two lanes, 30 ns wide.
		self.check(self.visible() < 5e-7, "zooming below a microsecond")
		self.shot("edge-light")
		self.b.run("document.getElementById('ip').focus()")
		for text, hits in (("0xffffffff81300000-0xffffffff813fffff", ips["ffffffff81300012"]),
				   ("native_outb", ips["ffffffff81300012"]), ("401000", ips["401000"]),
				   ("400fff+2", ips["401000"])):
			self.b.run("document.getElementById('ip').value = ''")
			self.b.type(text)
			self.b.key("Enter")
			self.check(f" of {hits:,} at " in self.text("status"), f"search for {text}")
		self.b.run("document.getElementById('ip').value = ''")
		self.b.type("0xdead")
		self.b.key("Enter")
		self.check(self.text("status") == "No exit at 0xdead", "an IP that is not there")
		self.click("#ips tbody button")
		self.check(self.text("status").startswith("Exit 1 of"), "an IP of the list")
		self.click("#fit")

	def legend(self):
		labels = "document.querySelectorAll('#labels > *').length"
		before, pixels = self.b.run(labels), self.pixels()
		self.click("#tab-vms")
		self.click("#vms tbody tr:nth-child(2) input")
		self.check(self.b.run(labels) == before - 4 and self.pixels() != pixels, "a VM hides")
		self.click("#vms tbody tr:nth-child(2) input")
		self.check(self.b.run(labels) == before, "and comes back")
		self.click("#labels button")
		self.check(self.b.run(labels) == before - 4, "the CPUs fold")
		self.click("#tab-span")
		self.b.key("ArrowRight")
		self.check(self.b.run("document.activeElement.id") == "tab-exits", "arrows on tabs")

	def large(self):
		self.load("large", dark=True)
		self.check("kept singly" in self.text("level"), "it says that not all is there")
		self.shot("large-dark")
		x, y, w, _ = self.box("#lanes")
		self.wheel(x + w / 2, y + 200, 12)
		level = self.text("level")
		self.check(re.match(r"[\d,]+ spans here, not kept singly: --from [\d.]+ --to [\d.]+ gives",
				    level), f"it says how to see more: {level}")
		self.shot("deep-dark")
		self.click("#tab-exits")
		self.check("rounded to buckets" in self.text("exit-scope"), "it says what is rounded")
		self.shot("exits-dark")

	# ---- B13: many VMs, any window ----

	def b13_widths(self):
		"""40 VMs on 16 CPUs and 2 on one: nothing sticks out, labels differ, text fits."""
		for name, rows in (("two", 3), ("many", 41)):
			self.load(name, 1440, 900)
			high = self.b.run("[...document.querySelectorAll('#labels > *')].reduce((sum, e) => sum + "
					  "e.offsetHeight, 0) / document.getElementById('scroll').clientHeight")
			self.check(0.9 < high <= 1.01 if name == "two" else high > 1.5,
				   f"{name}: lanes take the height there is, or scroll: {high}")
			sizes = ((1440, True), (1280, False), (800, True), (400, False))
			for width, dark in sizes[name == "two":] + ((1920, False),) * (name == "many"):
				self.b.size(width, 900, dark)
				self.b.frame()
				for tab in ("key", "exits", "ips", "vms") if width in (1280, 400) else ("ips", "vms"):
					self.b.run(f"document.getElementById('tab-{tab}').click()")
					self.b.frame()
					out = self.b.run(OUTSIDE)
					self.check(not out, f"{name}, {width}, {tab}: outside: {out}")
				names = self.b.run("[...document.querySelectorAll('#vms tbody tr')].map((e) => "
						   "e.cells[0].textContent)")
				self.check(len(names) == rows and len(set(names)) == rows,
					   f"{width}: names in the table differ: {names}")
				labels = self.b.run("[...document.querySelectorAll('#labels > *:not(.in)')].map((e) => "
						    "e.textContent)")
				self.check(len(labels) > rows and len(set(labels)) == len(labels),
					   f"{width}: labels differ: {labels}")
				self.texts_fit(f"{name}, {width}")
				self.check(self.box("#lanes")[2] > width / 3, f"{width}: lanes have room")
				if width < 1500:
					self.shot(f"{name}-{width}-{'dark' if dark else 'light'}")

	def texts_fit(self, what, least=0):
		"""A text on the lanes is in a bar, or above one, and in the window; axis in few letters."""
		spied = self.b.run("spied")
		texts, bars = spied["lanes"]["texts"], spied["lanes"]["bars"]
		# What is just below the text does not count.
		bars = [bar for bar in bars if bar[3] > 12]
		bad = [text for text, x, y, w, h in texts if not any(
			bx <= x and x + w <= bx + bw + 1 and by <= y and y + h <= by + bh
			for bx, by, bw, bh in bars) and not (re.match(r"waits for|for |.*\(halted\)$", text) and y > 0)]
		self.check(not bad and len(texts) >= least, f"{what}: texts in bars: {bad} of {len(texts)}")
		axis = [text for text, *_ in spied["axis"]["texts"]]
		self.check(len(axis) > 1 and all(re.fullmatch(r"(\+ )?\d{1,4}(\.\d+)? (s|ms|µs|ns)", text) and
						 len(text) < 14 for text in axis), f"{what}: the axis: {axis}")

	def b13_colours(self):
		"""Each VM has its hue and pattern; reasons are none of them; all stand out."""
		for dark in (False, True):
			self.b.size(1440, 900, dark)
			self.b.frame()
			vms = self.b.run(SWATCHES + "('#vms tr:nth-child(n+2) .swatch')")
			self.b.run("document.getElementById('tab-key').click()")
			reasons = self.b.run(SWATCHES + "('#key-reasons .swatch')")
			self.b.run("document.getElementById('tab-vms').click()")
			self.check(len(vms) == 40 and len(reasons) == 5, "there are swatches")
			far = lambda a, b: sum(abs(p - q) for p, q in zip(a, b)) / (len(a) / 4)
			near = min((far(a, b), i, k) for i, a in enumerate(vms) for k, b in enumerate(vms[:i]))
			self.check(near[0] > 15, f"VMs differ: {near}, dark {dark}")
			near = min((far(a, b), i, k) for i, a in enumerate(reasons) for k, b in enumerate(vms + reasons[:i]))
			self.check(near[0] > 40, f"reasons differ from VMs and each other: {near}, dark {dark}")
			back = self.b.run("getComputedStyle(document.body).backgroundColor")
			back = self.light([int(part) for part in re.findall(r"\d+", back)])
			for what, list_ in (("VM", vms[:8]), ("reason", reasons)):
				for k, pixels in enumerate(list_):
					front = self.light(pixels[:3])
					ratio = (max(front, back) + 0.05) / (min(front, back) + 0.05)
					self.check(ratio >= 3, f"{what} {k} on the background, dark {dark}: {ratio:.2f}")

	def settled(self, what, test):
		self.b.wait(f"(h => {test})(decodeURIComponent(location.hash))", what)
		return self.b.run("location.hash")

	def b13_address(self):
		"""The view is in the address: loaded, and back and forward."""
		self.b.size(1440, 900)
		self.b.run("document.querySelector('#vms tr:nth-child(4) button').click()")
		self.settled("the VM is in the address", "/vm=customer-a-production-frontend-02/.test(h)")
		self.b.run(LANES + ".focus()")
		for _ in range(6):
			self.b.key("+")
		near = self.settled("the times are in the address", "/from=.*to=/.test(h)")
		pixels, status = self.pixels(), self.text("status")
		self.texts_fit("zoomed", 10)
		self.click("#theme")
		self.settled("the theme is in the address", "/theme=dark/.test(h)")
		self.check(self.b.run("document.documentElement.dataset.theme") == "dark", "dark by a click")
		self.shot("many-zoomed-dark")
		self.b.run("history.back()")
		self.b.wait(f"location.hash === {near!r}", "back")
		self.check(self.pixels() == pixels and self.text("status") == status, "back is the view before")
		self.b.run("history.back()")
		self.b.wait("!location.hash.includes('from')", "back once more")
		self.check(self.pixels() != pixels, "back to the whole")
		self.b.run("history.forward()")
		self.b.wait(f"location.hash === {near!r}", "forward")
		self.check(self.pixels() == pixels, "forward again")
		self.load("many", 1440, 900, hash_=near)
		self.check(self.pixels() == pixels, "the address alone gives the view")
		self.check(self.b.run("document.querySelectorAll('#vms tr.on').length") == 1, "and the VM")
		for bad in ("#from=1e99&to=-3", "#from=x&lane=%00&vm=nobody&tab=nothing&theme=pink", "#%%%&=&from=5&to=1"):
			self.b.run(f"location.hash = {bad!r}")
			self.b.wait("document.getElementById('status').textContent.includes('…')", "an answer")
			self.check(re.search(r"\d (s|ms|µs|ns)$", self.text("status")) and not self.b.run(
				"document.getElementById('vms').hidden"), f"a wrong address: {bad}")

	def b13_ticks(self):
		"""A trace whose frequency is not known."""
		self.load("ticks")
		self.check("Timesin ticks" in self.text("facts"), "the header says that times are ticks")
		for width in (1280, 400):
			self.b.size(width, 800)
			self.b.frame()
			for tab in ("ips", "exits", "vms"):
				self.b.run(f"document.getElementById('tab-{tab}').click()")
				self.b.frame()
				out = self.b.run(OUTSIDE)
				self.check(not out, f"ticks, {width}, {tab}: outside: {out}")

	def b13_clock(self):
		"""Wall-clock times, of 2025-11-22 14:03:07.25 an hour east of Greenwich."""
		self.load("wall", 1440, 900)
		self.check("Timeswall clock" in self.text("facts"), "the header says whose times")
		self.check(re.match(r"Ready · 14:03:07\.250* … 14:03:07\.2", self.text("status")),
			   f"the status line: {self.text('status')}")
		axis = lambda: [text for text, *_ in self.b.run("spied.axis.texts")]
		self.check(axis()[0] == "14:03:07.250", f"the axis: {axis()}")
		self.b.run(LANES + ".focus()")
		for _ in range(8):
			self.b.key("+")
		self.check(re.match(r"14:03:07\.25\d+ \+$", self.text("axis-label")) and re.match(
			r"\+ [\d.]+ µs$", axis()[0]), f"the axis near: {self.text('axis-label')} {axis()}")

	def b13_waits(self):
		"""The table of VMs says what vmpt timeline --summary --json says."""
		with open(f"{self.folder}/fight.json", encoding="utf-8") as file:
			summary = json.load(file)
		self.load("fight", 1440, 900)
		meta = self.b.run("JSON.parse(document.getElementById('meta').textContent)")
		waited = 0
		for vm in summary["vms"]:
			mine = [vcpu["vmcs"] for vcpu in vm["vcpus"]]
			lines = [line for line in meta["lines"] if line["vmcs"] in mine]
			for key, name in (("running_ns", "run"), ("wait_ns", "wait"), ("host_ns", "host"),
					  ("halted_ns", "halt")):
				here = sum(line[name] for line in lines) / meta["hz"] * 1e9
				self.check(abs(here - vm[key]) <= 1, f"{mine}: {name}: {here}, {vm[key]}")
			waited += vm["wait_ns"]
			for line in lines:
				self.check(sum(ticks for _, ticks in line["on"]) == line["wait"] and
					   all(meta["lines"][who] not in lines for who, _ in line["on"]),
					   f"for whom {line['name']} waited")
		self.check(waited > 1000, "there are waits")
		self.click("#vms tbody tr:nth-child(2) button")
		self.check("for " + meta["lines"][1]["name"] in self.text("vms"), "the table says for whom")
		self.b.run(LANES + ".focus()")
		while self.visible() > 1e-5:
			self.b.key("+")
			self.b.frame()
		texts = [text[0] for text in self.b.run("spied.lanes.texts")]
		self.check(any(text.startswith("waits for") for text in texts), f"a wait has its text: {texts}")
		self.texts_fit("waits")
		self.shot("waits-light")

	def truth(self):
		"""Guests' ranges that the host follows, by the generator's truth: by owner."""
		exits, before = {}, {}
		with open(f"{self.folder}/demo.json", encoding="utf-8") as file:
			for line in file:
				fact = json.loads(line)
				if fact["type"] != "range":
					continue
				last = before.get(fact["cpu"])
				if fact["owner"] == "host" and last not in (None, "host"):
					exits[last] = exits.get(last, 0) + 1
				before[fact["cpu"]] = fact["owner"]
		return exits

	def whole_way(self):
		"""A trace through vmpt timeline to the browser."""
		exits = self.truth()
		self.load("demo")
		facts = self.text("facts")
		for word in ("CPUs2", f"VMs{len(exits)} with", f"Exits{sum(exits.values()):,}", "Clockhost TSC"):
			self.check(word in facts, f"a generated trace: {word}: {facts}")
		self.click("#tab-exits")
		self.check(sum(self.table().values()) == sum(exits.values()), "its exits by reason")
		self.check(self.text("level") == "every span is here", "it is whole")
		self.check(self.b.run("document.querySelectorAll('#flames .windows button').length") == 20, "windows of calls")
		self.click("#tab-flames")
		self.click("#flames .windows button")
		shown = [t[0] for t in self.b.run("spied.lanes.texts")]
		self.check("host: unknown" in shown and any(t.startswith("0xffffffff82000") for t in shown),
			   f"the host's code, in the vCPU's lane: {shown}")
		self.check(self.b.run("document.querySelectorAll('#graph-vm option').length") == 3, "graphs of two VMs and the host")
		self.shot("demo-light")

	@staticmethod
	def light(rgb):
		parts = [c / 255 for c in rgb]
		parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
		return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

	def contrast(self):
		"""WCAG 2: 4.5 at least, for text."""
		def light(color):
			return self.light([int(color[i:i + 2], 16) for i in (1, 3, 5)])

		for dark in (False, True):
			self.b.size(1280, 800, dark)
			self.b.frame()
			get = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
			for on in ("bg", "soft"):
				back = light(self.b.run(get % on))
				for name in ("text", "dim", "warn", "bad", "accent"):
					front = light(self.b.run(get % name))
					ratio = (max(front, back) + 0.05) / (min(front, back) + 0.05)
					self.check(ratio >= 4.5, f"{name} on {on}, dark {dark}: {ratio:.2f}")

	def calls(self):
		"""The chart of one window, of page-make's, below its lane; the flame graph."""
		self.load("many")
		self.check(self.b.run("document.getElementById('tab-flames').hidden"), "no calls, no tab")
		self.load("small", 1280, 900)
		rows = "document.querySelectorAll('#labels > *').length"
		before = self.b.run(rows)
		self.click("#tab-flames")
		self.click("#window-0")
		self.check(re.search(r", 530.0 ns$", self.text("status")), "the window is shown: " + self.text("status"))
		self.check(self.b.run(rows) == before + 1, "a row below the lane")
		texts = {text: (x, y) for text, x, y, _, _ in self.b.run("spied.lanes.texts")}
		for name in ("init 1", "main", "leaf", "vmx_handle_exit"):
			self.check(name in texts, f"a frame: {name}: {sorted(texts)}")
		x, y, _, _ = self.box("#lanes")
		at = texts.get("vmx_handle_exit", (0, 0))
		self.b.mouse("mouseMoved", x + at[0] + 5, y + at[1] + 5)
		tip = self.text("tip")
		self.check(all(word in tip for word in ("vmx_handle_exit", "250.0 ns", "of the host")), "its facts: " + tip)
		self.shot("calls-light")
		self.b.click(x + at[0] + 5, y + at[1] + 5)
		self.check("vmx_handle_exit" in self.text("status"), "a click zooms to it")
		table = ("[...document.querySelectorAll('#flames .graph + table tbody tr')].map((r) => "
			 "[...r.children].map((c) => c.textContent))")
		self.check(self.b.run(table) == [["main", "200 ns", "450 ns", "40.0"], ["leaf", "150 ns", "150 ns", "30.0"],
						 [HOSTILE[:9] + "<b>", "150 ns", "150 ns", "30.0"],
						 ["web01", "0", "500 ns", "0.0"], ["init 1", "0", "450 ns", "0.0"]], f"functions: {self.b.run(table)}")
		x, y, _, _ = self.box("#graph")
		self.b.click(x + 20, y + 13 * 2 + 6)
		self.b.frame()
		self.check(self.b.run(table)[0] == ["main", "200 ns", "450 ns", "44.4"], "a click goes into the graph")
		self.load("small", 400, 900, True, "#tab=flames")
		self.check(not self.b.run(OUTSIDE), f"narrow: {self.b.run(OUTSIDE)}")
		self.click("#window-0")
		self.shot("calls-400-dark")

	def quiet(self):
		"""No errors, nothing blocked, nothing from anywhere but the file itself."""
		for event in self.b.events:
			method, params = event.get("method"), event.get("params", {})
			self.check(method not in ("Runtime.exceptionThrown", "Log.entryAdded",
						  "Runtime.consoleAPICalled",
						  "Page.javascriptDialogOpening"), f"{method}: {params}")
			if method == "Network.requestWillBeSent":
				url = params["request"]["url"]
				self.check(re.fullmatch(r"file://.*/(small|large|many|two|wall|ticks|fight|demo)\.html(#.*)?|about:blank", url),
					   f"a request: {url}")


def main(chromium, folder):
	browser = Browser(chromium)
	test = Test(browser, folder)
	try:
		browser.open(SPY)
		test.load("small")
		test.shot("whole-light")
		for part in (test.header, test.zooming, test.selecting, test.exits, test.searching,
			     test.legend, test.large, test.whole_way, test.b13_widths, test.b13_colours,
			     test.b13_address, test.b13_ticks, test.b13_clock, test.b13_waits, test.calls, test.contrast, test.quiet):
			part()
	finally:
		browser.close()
	good = test.checks - test.failures
	print(f"{100 * good // test.checks}%: Checks: {test.checks}, Failures: {test.failures}, "
	      "Errors: 0")
	return 1 if test.failures else 0


sys.exit(main(*sys.argv[1:]))
