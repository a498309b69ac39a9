#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A browser for test-page-browser.sh: Chromium without a window, driven over a pipe (Chrome
DevTools Protocol), no library needed. Messages are JSON that ends with a NUL."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
	 "--disable-background-networking --disable-component-update --disable-sync "
	 "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe").split()


class Browser:
	def __init__(self, chromium):
		# Not below $TMPDIR: the name of a socket in it may have 107 characters.
		self.profile = tempfile.mkdtemp(prefix="vmpt-page-", dir="/tmp")
		# Nothing of the user's, flags or settings.
		env = {"PATH": os.environ["PATH"], "HOME": self.profile, "TMPDIR": self.profile,
		       "LC_ALL": "C.UTF-8"}
		to_read, self.to = os.pipe()
		self.back, back_write = os.pipe()

		def fds():
			# The pipe's ends are 3 and 4 there; first out of the way of each other.
			a, b = os.dup(to_read), os.dup(back_write)
			while a < 5:
				a = os.dup(a)
			while b < 5:
				b = os.dup(b)
			os.dup2(a, 3)
			os.dup2(b, 4)

		self.process = subprocess.Popen(
			[chromium, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
			env=env, preexec_fn=fds, close_fds=False, start_new_session=True,
			stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		os.close(to_read)
		os.close(back_write)
		self.buffer, self.last, self.session, self.events = b"", 0, None, []

	def read(self, until):
		while b"\0" not in self.buffer:
			left = until - time.monotonic()
			if left <= 0 or not select.select([self.back], [], [], left)[0]:
				raise TimeoutError("the browser does not answer")
			data = os.read(self.back, 1 << 20)
			if not data:
				raise EOFError("the browser ended")
			self.buffer += data
		message, _, self.buffer = self.buffer.partition(b"\0")
		return json.loads(message)

	def send(self, method, **params):
		self.last += 1
		message = {"id": self.last, "method": method, "params": params}
		if self.session:
			message["sessionId"] = self.session
		data = json.dumps(message).encode() + b"\0"
		while data:
			data = data[os.write(self.to, data):]
		until = time.monotonic() + 100
		while True:
			answer = self.read(until)
			if answer.get("id") == self.last:
				if "error" in answer:
					raise RuntimeError(f"{method}: {answer['error']}")
				return answer["result"]
			self.events.append(answer)

	def open(self, script):
		"""@script runs before each page's own."""
		target = self.send("Target.createTarget", url="about:blank")["targetId"]
		self.session = self.send("Target.attachToTarget", targetId=target,
					 flatten=True)["sessionId"]
		for domain in ("Page", "Runtime", "Network", "Log"):
			self.send(domain + ".enable")
		self.send("Page.addScriptToEvaluateOnNewDocument", source=script)

	def close(self):
		try:
			self.session = None
			self.send("Browser.close")
			self.process.wait(10)
		except (OSError, EOFError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
			pass
		# Only its own: the group began with it.
		try:
			os.killpg(self.process.pid, signal.SIGKILL)
		except ProcessLookupError:
			pass
		self.process.wait()
		shutil.rmtree(self.profile, ignore_errors=True)

	# ---- a page ----

	def size(self, width, height, dark=False):
		self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
			  deviceScaleFactor=1, mobile=False)
		self.send("Emulation.setEmulatedMedia", features=[
			{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

	def run(self, script):
		result = self.send("Runtime.evaluate", expression=script, returnByValue=True,
				   awaitPromise=True)
		if "exceptionDetails" in result:
			raise RuntimeError(f"{script}: {result['exceptionDetails']}")
		return result["result"].get("value")

	def wait(self, script, what):
		until = time.monotonic() + 100
		while not self.run(script):
			if time.monotonic() > until:
				raise TimeoutError(f"never: {what}")
			time.sleep(0.02)

	def frame(self):
		self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

	def goto(self, path, hash_=""):
		self.send("Page.navigate", url="file://" + os.path.abspath(path) + hash_)

	def goto_blank(self):
		self.send("Page.navigate", url="about:blank")

	def mouse(self, kind, x, y, **more):
		self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

	def click(self, x, y):
		for kind, buttons in (("mousePressed", 1), ("mouseReleased", 0)):
			self.mouse(kind, x, y, button="left", buttons=buttons, clickCount=1)

	def key(self, key, modifiers=0):
		text = key if len(key) == 1 else "\r" if key == "Enter" else ""
		for kind in ("keyDown", "keyUp"):
			more = {"text": text} if text and kind == "keyDown" else {}
			self.send("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
				  **more)

	def type(self, text):
		self.send("Input.insertText", text=text)

	def screenshot(self, path):
		self.frame()
		data = self.send("Page.captureScreenshot", format="png")["data"]
		with open(path, "wb") as file:
			file.write(base64.b64decode(data))
