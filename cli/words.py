#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Man pages and completions, from the tables of options that the commands print.

	words.py man TEMPLATE VERSION TABLES... > PAGE
	words.py bash|fish|zsh TEMPLATE TABLES... > COMPLETION

TABLES are the output of "vmpt help --format=json" and "vmpt domain --format=json". In the template
of a page @VERSION@ stands for VERSION, @COMMANDS@ for the list of vmpt's commands, @PAGES@ for
references to their pages. A line

	@OPTIONS COMMAND: TITLE; TITLE...@

stands for the options that --help has under these titles. After it, "@--NAME" begins additional text
for an option, up to the next such line or section.
"""

import json
import re
import sys


def roff(text):
	text = text.replace("\\", "\\e").replace("-", "\\-")
	text = "".join(c if c < "\x7f" else "\\[u%04X]" % ord(c) for c in text)
	return re.sub(r"^([.'])", r"\\&\1", text)


def man_option(option, more):
	name, arg = roff("--" + option["name"]), option["arg"]
	letter = "\\-" + option["letter"] if option["letter"] else ""
	text = option["text"]
	if arg:
		form = "\\fB%s\\fR[\\fB=\\fI%s\\fR]" if option["optional"] else "\\fB%s=\\fI%s\\fR"
		head = form % (name, roff(arg))
		letter = letter and "\\fB%s\\fR \\fI%s\\fR, " % (letter, roff(arg))
	else:
		head = "\\fB%s\\fR" % name
		letter = letter and "\\fB%s\\fR, " % letter
	text = re.sub(r" \[(.*)\]$", r". Default: \1", text[0].upper() + text[1:])
	lines = [".TP", letter + head, roff(text + "."), *more]
	return "\n".join(lines) + "\n"


def man_commands(commands):
	return "".join(".TP\n.BR vmpt-%s (1)\n%s.\n" % (c["name"], roff(c["title"][0].upper() + c["title"][1:]))
		       for c in commands if " " not in c["name"])


def man_pages(commands):
	return "".join(".BR vmpt-%s (1),\n" % c["name"] for c in commands if " " not in c["name"])


def man(template, version, commands):
	out, more, options = [], {}, []

	def flush():
		names = [o["name"] for o in options]
		for name in more:
			if name not in names:
				sys.exit("%s: no option --%s here" % (sys.argv[2], name))
		out.extend(man_option(o, more.get(o["name"], [])) for o in options)
		options.clear()
		more.clear()

	to = None
	template = template.replace("@VERSION@", version)
	template = template.replace("@COMMANDS@\n", man_commands(commands))
	template = template.replace("@PAGES@\n", man_pages(commands))
	for line in template.splitlines():
		place = re.fullmatch("@OPTIONS (.*?): (.*)@", line)
		if place or line.startswith((".SH", ".SS")):
			flush()
			to = None
		if place:
			command = next(c for c in commands if c["name"] == place[1])
			for title in place[2].split("; "):
				found = [g for g in command["groups"] if g["title"] == title]
				if not found:
					sys.exit("%s: vmpt %s has no '%s'" % (sys.argv[2], place[1], title))
				options.extend(o for g in found for o in g["options"])
		elif line.startswith("@--"):
			to = more.setdefault(line[3:], [])
		elif to is not None:
			to.append(line)
		else:
			out.append(line + "\n")
	flush()
	return "".join(out)


def quoted(text):
	return "'" + text.replace("'", "'\\''") + "'"


def options(command):
	return (o for g in command["groups"] for o in g["options"])


# The words that the value of an option may be; what begins with "$(" is the shell's to run.
def values(option):
	return [v for v in dict.fromkeys(option["words"].split(", ") + option["more_words"]) if v]


def summary(option):
	return re.split("; | \\[", option["text"])[0]


def bash(template, commands):
	out = [template]
	for command in commands:
		words = []
		for option in options(command):
			names = ["--" + option["name"]]
			if option["letter"]:
				names.append("-" + option["letter"])
			words.append(names[0] + ("=" if option["arg"] else ""))
			words.extend(names[1:])
			value = quoted(" ".join([option["complete"], *values(option)]))
			for name in names if option["arg"] else []:
				out.append("_vmpt_value[%s]=%s\n" % (quoted(command["name"] + " " + name), value))
		out.append("_vmpt_options[%s]=%s\n" % (quoted(command["name"]), quoted(" ".join(words))))
	return "".join(out)


def fish_summary(option):
	"""Without the words themselves, which fish shows beside it."""
	text = summary(option)
	listed = ": " + ", ".join(values(option))
	return text.removesuffix(listed) if values(option) else text


def fish(template, commands):
	out = [template]
	for command in commands:
		*above, name = command["name"].split()
		out.append("complete -c vmpt -n '__vmpt_after %s' -x -a %s -d %s\n"
			   % (" ".join(above), name, quoted(command["title"])))
		out.append("complete -c vmpt -n '__vmpt_after help %s' -x -a %s\n" % (" ".join(above), name))
		for option in options(command):
			line = ["complete -c vmpt -n '__vmpt_in %s'" % command["name"], "-l", option["name"]]
			if option["letter"]:
				line += ["-s", option["letter"]]
			words = " ".join(values(option))
			if option["arg"]:
				line += {"file": ["-rF"], "dir": ["-x", "-a", "'(__fish_complete_directories)'"],
					 "list": ["-x", "-a", quoted("(__fish_append , %s)" % words)],
					 "words": ["-f -a" if option["optional"] else "-x -a", quoted(words)],
					 }[option["complete"]]
			out.append(" ".join([*line, "-d", quoted(fish_summary(option))]) + "\n")
	return "".join(out)


def zsh(template, commands):
	def plain(text):
		return re.sub(r"([][:\\])", r"\\\1", text)

	out = []
	for command in commands:
		specs = []
		for option in options(command):
			words = " ".join(values(option))
			value = {"file": "_files", "dir": "_files -/", "words": "(%s)" % words,
				 "list": " _values -s , %s %s" % (option["arg"], words) if words else "",
				 }[option["complete"]]
			value = ":%s:%s" % (plain(option["arg"] or ""), value) if option["arg"] else ""
			text = "[%s]" % plain(summary(option))
			if option["optional"]:
				specs.append("--" + option["name"] + "=-" + text + ":" + value)
				continue
			many = "*" if value else ""
			specs.append(many + "--" + option["name"] + ("=" if value else "") + text + value)
			if option["letter"]:
				specs.append(many + "-" + option["letter"] + ("+" if value else "") + text + value)
		out.append("titles+=(%s %s)\n" % (quoted(command["name"]), quoted(command["title"])))
		out.append("specs+=(%s %s)\n" % (quoted(command["name"]), quoted("\n".join(specs))))
	return template.replace("@TABLES@\n", "".join(out))


def main():
	with open(sys.argv[2], encoding="utf-8") as f:
		template = f.read()
	more = sys.argv[3:]
	version = more.pop(0) if sys.argv[1] == "man" else None
	commands = []
	for path in more:
		with open(path, encoding="utf-8") as f:
			commands.extend(json.load(f))
	shells = {"bash": bash, "fish": fish, "zsh": zsh}
	sys.stdout.write(man(template, version, commands) if version else shells[sys.argv[1]](template, commands))


main()
