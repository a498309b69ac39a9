// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Compares traces of the bare program with expectations written from the manual's tables. libipt
 * reads the packets; CFE and EVD are read here if it is 2.0, which does not know them.
 *
 *	judge FOLDER SYMBOLS EXPECTED...
 *	judge -p FILE SYMBOLS
 *
 * SYMBOLS: nm's output for the program. A file of expectations has sections:
 *
 *	trace NAME [WORD...]	one or more of these lines: NAME.pt in FOLDER must match
 *	[+WORD|-WORD]... PACKET	only with, or without, these words
 *	PACKET ?		may be missing
 *	PACKET || PACKET	either
 *	...			any packets
 *	PSB+			PSB to PSBEND and all packets between
 *
 * A section with the word "timing" also compares TSC, TMA, CBR, MTC and CYC; the others ignore
 * them. PAD is always ignored. Values are hex, a symbol, or symbol+hex. -p prints the packets of
 * one file as they would be compared.
 */
#include <ctype.h>
#include <errno.h>
#include <intel-pt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/types.h"

#define PACKETS 65536
#define LINES	256
#define LINE	128

/* ---- symbols ---- */

static struct symbol {
	char name[64];
	u64 value;
} symbols[4096];
static size_t n_symbols;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("judge: ", stderr);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\n", stderr);
	exit(2);
}

static void read_symbols(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f) && n_symbols < 4096) {
		struct symbol *s = &symbols[n_symbols];

		n_symbols += sscanf(line, "%llx %*c %63s", (unsigned long long *)&s->value,
				    s->name) == 2;
	}
	fclose(f);
}

static bool find_symbol(const char *name, size_t len, u64 *value)
{
	for (size_t i = 0; i < n_symbols; i++) {
		if (strlen(symbols[i].name) == len && !memcmp(symbols[i].name, name, len)) {
			*value = symbols[i].value;
			return true;
		}
	}
	return false;
}

/* Addresses by name, for messages. */
static void put_named(FILE *to, const char *line)
{
	const char *hex = strstr(line, "0x");
	u64 value = hex ? strtoull(hex, NULL, 16) : 0;
	const char *name = NULL;

	for (size_t i = 0; hex && value >= 0x1000 && i < n_symbols; i++) {
		if (symbols[i].value == value)
			name = symbols[i].name;
	}
	fprintf(to, name ? "\t%s (%s)\n" : "\t%s\n", line, name);
}

/* ---- packets as lines ---- */

struct trace {
	char line[PACKETS][LINE];
	size_t lines;
	u64 last_ip;
	bool timing;
};

static void __attribute__((format(printf, 2, 3))) say(struct trace *t, const char *format, ...)
{
	va_list args;

	if (t->lines == PACKETS)
		die("more than %d packets", PACKETS);
	va_start(args, format);
	vsnprintf(t->line[t->lines++], LINE, format, args);
	va_end(args);
}

static void ip(struct trace *t, const char *name, const struct pt_packet_ip *p)
{
	u64 ip = p->ip, old = t->last_ip;

	switch (p->ipc) {
	case pt_ipc_suppressed:
		say(t, "%s -", name);
		return;
	case pt_ipc_update_16:
		ip = (old & ~0xffffULL) | (ip & 0xffff);
		break;
	case pt_ipc_update_32:
		ip = (old & ~0xffffffffULL) | (ip & 0xffffffff);
		break;
	case pt_ipc_update_48:
		ip = (old & ~0xffffffffffffULL) | (ip & 0xffffffffffff);
		break;
	case pt_ipc_sext_48:
		ip = (u64)((s64)(ip << 16) >> 16);
		break;
	case pt_ipc_full:
		break;
	}
	t->last_ip = ip;
	say(t, "%s 0x%llx", name, (unsigned long long)ip);
}

static void tnt(struct trace *t, const struct pt_packet_tnt *p)
{
	char bits[65] = "";

	for (unsigned int i = 0; i < p->bit_size && i < 64; i++)
		bits[i] = p->payload >> (p->bit_size - 1 - i) & 1 ? 'T' : 'N';
	say(t, "TNT %s", bits);
}

static void mode(struct trace *t, const struct pt_packet_mode *p)
{
	if (p->leaf == pt_mol_exec)
		say(t, "MODE.Exec %d", p->bits.exec.csl ? 64 : p->bits.exec.csd ? 32 : 16);
	else
		say(t, "MODE.TSX %s",
		    p->bits.tsx.intx   ? "InTX"
		    : p->bits.tsx.abrt ? "TXAbort"
				       : "-");
}

static void timing(struct trace *t, const struct pt_packet *p)
{
	if (!t->timing)
		return;
	if (p->type == ppt_cbr)
		say(t, "CBR");
	else if (p->type == ppt_tsc)
		say(t, "TSC 0x%llx", (unsigned long long)p->payload.tsc.tsc);
	else
		say(t, p->type == ppt_tma ? "TMA" : p->type == ppt_mtc ? "MTC" : "CYC");
}

static void power(struct trace *t, const struct pt_packet *p)
{
	if (p->type == ppt_exstop)
		say(t, p->payload.exstop.ip ? "EXSTOP IP" : "EXSTOP");
	else if (p->type == ppt_mwait)
		say(t, "MWAIT 0x%x 0x%x", p->payload.mwait.hints, p->payload.mwait.ext);
	else if (p->type == ppt_pwre)
		say(t, "PWRE C%u.%u%s", p->payload.pwre.state + 0u, p->payload.pwre.sub_state + 0u,
		    p->payload.pwre.hw ? " HW" : "");
	else
		say(t, "PWRX C%u C%u%s%s%s", p->payload.pwrx.last + 0u,
		    p->payload.pwrx.deepest + 0u, p->payload.pwrx.interrupt ? " INT" : "",
		    p->payload.pwrx.store ? " ST" : "", p->payload.pwrx.autonomous ? " HW" : "");
}

static void cfe(struct trace *t, unsigned int type, bool ip, unsigned int vector)
{
	static const char *const names[] = { "0",	 "INTR", "IRET",    "SMI",    "RSM",
					     "SIPI",	 "INIT", "VMENTRY", "VMEXIT", "VMEXIT_INTR",
					     "SHUTDOWN", "11",	 "UINTR",   "UIRET" };

	say(t, "CFE.%s%s 0x%x", type < 14 ? names[type] : "?", ip ? " IP" : "", vector);
}

static void evd(struct trace *t, unsigned int type, u64 payload)
{
	static const char *const names[] = { "PFA", "VMXQ", "VMXR", "3" };

	say(t, "EVD.%s 0x%llx", names[type & 3], (unsigned long long)payload);
}

/* CFE: 02 13, bit 7 IP and type, vector. EVD: 02 53, type, payload (Tables 33-49, 33-51). */
static void unknown(struct trace *t, const u8 *at)
{
	u64 payload = 0;

	if (at[1] == 0x13) {
		cfe(t, at[2] & 0x1f, at[2] & 0x80, at[3]);
		return;
	}
	memcpy(&payload, at + 3, 8);
	evd(t, at[2], payload);
}

static int read_unknown(struct pt_packet_unknown *p, const struct pt_config *config, const u8 *pos,
			void *context)
{
	(void)context;
	p->packet = pos;
	if (config->end - pos >= 4 && pos[0] == 2 && pos[1] == 0x13)
		return 4;
	if (config->end - pos >= 11 && pos[0] == 2 && pos[1] == 0x53)
		return 11;
	return -pte_bad_opc;
}

static void packet(struct trace *t, const struct pt_packet *p)
{
	static const char *const names[] = { [ppt_tip] = "TIP",
					     [ppt_fup] = "FUP",
					     [ppt_tip_pge] = "TIP.PGE",
					     [ppt_tip_pgd] = "TIP.PGD" };

	switch ((int)p->type) {
	case ppt_pad:
		break;
	case ppt_psb:
		t->last_ip = 0;
		say(t, "PSB");
		break;
	case ppt_psbend:
		say(t, "PSBEND");
		break;
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		ip(t, names[p->type], &p->payload.ip);
		break;
	case ppt_tnt_8:
	case ppt_tnt_64:
		tnt(t, &p->payload.tnt);
		break;
	case ppt_mode:
		mode(t, &p->payload.mode);
		break;
	case ppt_pip:
		say(t, "PIP 0x%llx%s", (unsigned long long)p->payload.pip.cr3,
		    p->payload.pip.nr ? " NR" : "");
		break;
	case ppt_vmcs:
		say(t, "VMCS 0x%llx", (unsigned long long)p->payload.vmcs.base);
		break;
	case ppt_stop:
		say(t, "TraceStop");
		break;
	case ppt_ovf:
		say(t, "OVF");
		break;
	case ppt_ptw:
		say(t, "PTW%s 0x%llx", p->payload.ptw.ip ? " IP" : "",
		    (unsigned long long)p->payload.ptw.payload);
		break;
	case ppt_exstop:
	case ppt_mwait:
	case ppt_pwre:
	case ppt_pwrx:
		power(t, p);
		break;
	case ppt_unknown:
		unknown(t, p->payload.unknown.packet);
		break;
#if LIBIPT_VERSION >= 0x201
	case ppt_cfe:
		cfe(t, p->payload.cfe.type, p->payload.cfe.ip, p->payload.cfe.vector);
		break;
	case ppt_evd:
		evd(t, p->payload.evd.type, p->payload.evd.payload);
		break;
#endif
	default:
		timing(t, p);
	}
}

/* False: no such file. */
static bool read_trace(struct trace *t, const char *path)
{
	static u8 bytes[4 << 20];
	struct pt_packet_decoder *decoder;
	struct pt_config config;
	struct pt_packet p;
	FILE *f = fopen(path, "rb");
	size_t size;
	int ret;

	t->lines = 0;
	t->last_ip = 0;
	if (!f)
		return false;
	size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (!size)
		return true;
	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + size;
	config.decode.callback = read_unknown;
	decoder = pt_pkt_alloc_decoder(&config);
	if (!decoder)
		die("no decoder");
	ret = pt_pkt_sync_set(decoder, 0);
	while (ret >= 0 && (ret = pt_pkt_next(decoder, &p, sizeof(p))) >= 0)
		packet(t, &p);
	if (ret != -pte_eos)
		say(t, "libipt: %s", pt_errstr(pt_errcode(ret)));
	pt_pkt_free_decoder(decoder);
	return true;
}

/* ---- expectations ---- */

static struct {
	char line[LINES][LINE];
	size_t lines;
	char trace[64][LINE];
	size_t traces;
} section;

static bool has_word(const char *words, const char *word, size_t len)
{
	const char *at = words;

	while ((at = strstr(at, word))) {
		if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
		at++;
	}
	return false;
}

/* Values in @from as hex, as packets are printed. */
static void canonical(char *to, size_t size, const char *from, const char *where)
{
	size_t used = 0;

	while (*from) {
		size_t len = strcspn(from, " \t"), name = strcspn(from, " \t+");
		u64 value;

		if (used)
			used += (size_t)snprintf(to + used, size - used, " ");
		if (islower((u8)*from) || *from == '_') {
			if (!find_symbol(from, name, &value))
				die("%s: no symbol %.*s", where, (int)name, from);
			if (from[name] == '+')
				value += strtoull(from + name + 1, NULL, 16);
			used += (size_t)snprintf(to + used, size - used, "0x%llx",
						 (unsigned long long)value);
		} else {
			used += (size_t)snprintf(to + used, size - used, "%.*s", (int)len, from);
		}
		from += len;
		from += strspn(from, " \t");
	}
}

static bool matches(const struct trace *t, size_t at, size_t want);

/* One pattern of possibly several between ||. */
static bool one(const struct trace *t, size_t at, size_t want, const char *pattern)
{
	char text[LINE], *optional;
	size_t i;

	if (!strcmp(pattern, "...")) {
		for (i = at; i <= t->lines; i++) {
			if (matches(t, i, want + 1))
				return true;
		}
		return false;
	}
	snprintf(text, sizeof(text), "%s", pattern);
	optional = strstr(text, " ?");
	if (optional) {
		*optional = 0;
		if (matches(t, at, want + 1))
			return true;
	}
	if (at >= t->lines)
		return false;
	if (!strcmp(text, "PSB+")) {
		if (strcmp(t->line[at], "PSB"))
			return false;
		while (++at < t->lines && strcmp(t->line[at], "PSBEND"))
			;
		return matches(t, at + 1, want + 1);
	}
	return !strcmp(t->line[at], text) && matches(t, at + 1, want + 1);
}

static size_t furthest, words_at;

static bool applies(const char **line)
{
	bool all = true;

	while (**line == '+' || **line == '-') {
		const char *end = *line + strcspn(*line, " \t");
		char word[LINE];

		snprintf(word, sizeof(word), "%.*s", (int)(end - *line - 1), *line + 1);
		if (has_word(section.trace[words_at], word, strlen(word)) != (**line == '+'))
			all = false;
		*line = end + strspn(end, " \t");
	}
	return all;
}

static bool matches(const struct trace *t, size_t at, size_t want)
{
	const char *line, *bar;
	char pattern[LINE], text[LINE];

	if (at > furthest)
		furthest = at;
	for (; want < section.lines; want++) {
		line = section.line[want];
		if (applies(&line))
			break;
	}
	if (want == section.lines)
		return at == t->lines;
	for (;;) {
		bar = strstr(line, " || ");
		snprintf(pattern, sizeof(pattern), "%.*s", bar ? (int)(bar - line) : LINE, line);
		canonical(text, sizeof(text), pattern, section.trace[words_at]);
		if (one(t, at, want, text))
			return true;
		if (!bar)
			return false;
		line = bar + 4;
	}
}

static unsigned int checks, failures;

static void show(const struct trace *t)
{
	const char *line;

	printf("  expected:\n");
	for (size_t i = 0; i < section.lines; i++) {
		line = section.line[i];
		if (applies(&line))
			printf("\t%s\n", line);
	}
	printf("  is, and nothing matches after packet %zu:\n", furthest);
	for (size_t i = 0; i < t->lines && i < 60; i++)
		put_named(stdout, t->line[i]);
}

static void judge(const char *folder)
{
	static struct trace t;
	char path[4096], name[LINE];

	for (size_t i = 0; i < section.traces; i++) {
		words_at = i;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(section.trace[i], " "),
			 section.trace[i]);
		snprintf(path, sizeof(path), "%s/%s.pt", folder, name);
		t.timing = has_word(section.trace[i], "timing", 6);
		furthest = 0;
		checks++;
		if (!read_trace(&t, path)) {
			failures++;
			printf("not ok trace %s: there is none\n", name);
		} else if (!matches(&t, 0, 0)) {
			failures++;
			printf("not ok trace %s\n", name);
			show(&t);
		} else {
			printf("ok trace %s\n", name);
		}
	}
	section.traces = section.lines = 0;
}

static void take(const char *folder, const char *line)
{
	if (!strncmp(line, "trace ", 6)) {
		if (section.lines)
			judge(folder);
		if (section.traces < 64)
			snprintf(section.trace[section.traces++], LINE, "%s", line + 6);
	} else if (section.lines < LINES) {
		snprintf(section.line[section.lines++], LINE, "%s", line);
	}
}

static void judge_file(const char *folder, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		char *at = line + strspn(line, " \t");

		line[strcspn(line, "#\n")] = 0;
		for (size_t n = strlen(at); n && isspace((u8)at[n - 1]); n--)
			at[n - 1] = 0;
		if (*at)
			take(folder, at);
	}
	fclose(f);
	judge(folder);
}

int main(int argc, char **argv)
{
	static struct trace t;

	if (argc == 4 && !strcmp(argv[1], "-p")) {
		read_symbols(argv[3]);
		t.timing = true;
		if (!read_trace(&t, argv[2]))
			die("%s: %s", argv[2], strerror(errno));
		for (size_t i = 0; i < t.lines; i++)
			put_named(stdout, t.line[i]);
		return 0;
	}
	if (argc < 4)
		die("judge FOLDER SYMBOLS EXPECTED...");
	read_symbols(argv[2]);
	for (int i = 3; i < argc; i++)
		judge_file(argv[1], argv[i]);
	printf("traces: %u, not as expected: %u\n", checks, failures);
	return failures != 0;
}
