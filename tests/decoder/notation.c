// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/notation.h"

/* ---- reading ---- */

struct word {
	char *name, *arg[3];
	unsigned int args;
};

static u64 number(const struct word *w, unsigned int i)
{
	char *end;
	u64 v;

	if (i >= w->args)
		ck_abort_msg("%s: argument %u is missing", w->name, i);
	v = strtoull(w->arg[i], &end, 16);
	if (*end)
		ck_abort_msg("%s: not a number: %s", w->name, w->arg[i]);
	return v;
}

static bool has_arg(const struct word *w, const char *s)
{
	unsigned int i;

	for (i = 0; i < w->args; i++)
		if (!strcmp(w->arg[i], s))
			return true;
	return false;
}

static bool read_owner(const struct word *w, struct notation_slice *s)
{
	const char *n = w->name + 1;

	if (!strcmp(n, "loss"))
		s->loss = true;
	else if (!strcmp(n, "host"))
		s->owner.kind = VMPT_OWNER_HOST;
	else if (!strcmp(n, "vm") && w->args)
		s->owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = number(w, 0) };
	else if (!strcmp(n, "vm"))
		s->owner.kind = VMPT_OWNER_VM_ANY;
	else if (strcmp(n, "unknown"))
		return false;
	return true;
}

static u64 named(const struct word *w, unsigned int kind, unsigned int count)
{
	struct vmpt_pt_packet p = { .kind = (u8)kind };
	const char *name;
	unsigned int i;

	for (i = 0; i < count; i++) {
		*(kind == VMPT_PT_CFE ? &p.cfe.type : &p.evd.type) = i;
		name = vmpt_pt_value_name(&p, 0);
		if (name && !strcmp(name, w->arg[0]))
			return i;
	}
	return number(w, 0);
}

static int ip_kind(const char *name)
{
	static const struct {
		const char *name;
		int kind;
	} k[] = { { "tip", VMPT_PT_TIP },
		  { "pge", VMPT_PT_TIP_PGE },
		  { "pgd", VMPT_PT_TIP_PGD },
		  { "fup", VMPT_PT_FUP } };
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(k); i++)
		if (!strcmp(name, k[i].name))
			return k[i].kind;
	return -1;
}

static bool fill_simple(const struct word *w, struct vmpt_pt_packet *p)
{
	static const struct {
		const char *name;
		u8 kind, numbers; /* of arguments that are numbers, in the order of val[] */
	} k[] = {
		{ "psb", VMPT_PT_PSB, 0 }, { "psbend", VMPT_PT_PSBEND, 0 },
		{ "ovf", VMPT_PT_OVF, 0 }, { "tracestop", VMPT_PT_TRACESTOP, 0 },
		{ "cbr", VMPT_PT_CBR, 1 }, { "tsc", VMPT_PT_TSC, 1 },
		{ "tma", VMPT_PT_TMA, 2 }, { "mtc", VMPT_PT_MTC, 1 },
		{ "cyc", VMPT_PT_CYC, 1 }, { "mwait", VMPT_PT_MWAIT, 1 },
		{ "mnt", VMPT_PT_MNT, 1 }, { "bip", VMPT_PT_BIP, 2 },
	};
	unsigned int i, j;

	for (i = 0; i < VMPT_ARRAY_SIZE(k); i++) {
		if (strcmp(w->name, k[i].name))
			continue;
		p->kind = k[i].kind;
		for (j = 0; j < k[i].numbers; j++)
			p->val[j] = number(w, j);
		return true;
	}
	return false;
}

static bool fill(const struct word *w, struct vmpt_pt_packet *p, u64 *last_ip)
{
	const char *s;

	if (fill_simple(w, p))
		return true;
	if (ip_kind(w->name) >= 0) {
		p->kind = (u8)ip_kind(w->name);
		if (has_arg(w, "-"))
			return true;
		p->ip.ipbytes = vmpt_pt_ip_compress(*last_ip, number(w, 0));
		p->ip.ip = vmpt_pt_ip_payload(number(w, 0), (unsigned int)p->ip.ipbytes);
		*last_ip = number(w, 0);
	} else if (!strcmp(w->name, "pip")) {
		p->kind = VMPT_PT_PIP;
		p->pip.cr3 = number(w, 0);
		p->pip.nr = has_arg(w, "nr");
	} else if (!strcmp(w->name, "vmcs")) {
		p->kind = VMPT_PT_VMCS;
		p->vmcs.pointer = has_arg(w, "none") ? VMPT_PT_VMCS_NONE : number(w, 0);
	} else if (!strcmp(w->name, "exec")) {
		p->kind = VMPT_PT_MODE_EXEC;
		p->exec.cs_l = !strncmp(w->arg[0], "64", 2);
		p->exec.cs_d = !strncmp(w->arg[0], "32", 2);
		p->exec.rflags_if = strlen(w->arg[0]) > 2;
	} else if (!strcmp(w->name, "tsx")) {
		p->kind = VMPT_PT_MODE_TSX;
		p->tsx.intx = number(w, 0) & 1;
		p->tsx.txabort = number(w, 0) >> 1;
	} else if (!strcmp(w->name, "tnt")) {
		p->tnt.count = strlen(w->arg[0]);
		p->kind = p->tnt.count > 6 ? VMPT_PT_TNT_64 : VMPT_PT_TNT_8;
		for (s = w->arg[0]; *s; s++)
			p->tnt.bits = p->tnt.bits << 1 | (*s == 'T');
	} else if (!strcmp(w->name, "cfe")) {
		p->kind = VMPT_PT_CFE;
		p->cfe.type = named(w, VMPT_PT_CFE, 32);
		p->cfe.ip = has_arg(w, "ip");
	} else if (!strcmp(w->name, "evd")) {
		p->kind = VMPT_PT_EVD;
		p->evd.type = named(w, VMPT_PT_EVD, 64);
		p->evd.payload = number(w, 1);
	} else if (!strcmp(w->name, "ptw")) {
		p->kind = VMPT_PT_PTW;
		p->ptw.payload_bytes = 1;
		p->ptw.payload = number(w, 0);
		p->ptw.ip = has_arg(w, "ip");
	} else if (!strcmp(w->name, "trig")) {
		p->kind = VMPT_PT_TRIG;
		p->trig.trbv = number(w, 0);
		p->trig.ip = has_arg(w, "ip");
	} else if (!strcmp(w->name, "bbp")) {
		p->kind = VMPT_PT_BBP;
		p->bbp.type = number(w, 0);
		p->bbp.sz = number(w, 1);
	} else if (!strcmp(w->name, "bep") || !strcmp(w->name, "exstop")) {
		p->kind = w->name[0] == 'b' ? VMPT_PT_BEP : VMPT_PT_EXSTOP;
		p->val[0] = has_arg(w, "ip");
	} else {
		return false;
	}
	return true;
}

static void put_raw(struct notation *n, const char *hex)
{
	unsigned int byte;

	for (; hex[0] && hex[1]; hex += 2) {
		ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
		n->bytes[n->size++] = (u8)byte;
	}
}

static void split_word(char *text, struct word *w)
{
	char *save = NULL;

	memset(w, 0, sizeof(*w));
	w->name = strtok_r(text, ":", &save);
	while (w->args < 3 && (w->arg[w->args] = strtok_r(NULL, ":", &save)))
		w->args++;
}

void notation_read(struct notation *n, const char *text)
{
	char *copy = strdup(text), *save = NULL, *t;
	unsigned int block = 0;
	u64 last_ip = 0;
	struct word w;
	int size;

	memset(n, 0, sizeof(*n));
	for (t = strtok_r(copy, " \n\t", &save); t; t = strtok_r(NULL, " \n\t", &save)) {
		struct vmpt_pt_packet p = { 0 };

		split_word(t, &w);
		if (w.name[0] == '|') {
			struct notation_slice *s = &n->slices[n->slice_count++];

			ck_assert_uint_lt(n->slice_count, NOTATION_SLICES);
			s->offset = n->size;
			ck_assert_msg(read_owner(&w, s), "no owner: %s", w.name);
			continue;
		}
		if (!strcmp(w.name, "raw")) {
			put_raw(n, w.arg[0]);
			continue;
		}
		if (!strncmp(w.name, "pad", 3)) {
			n->size += w.name[3] == '*' ? strtoul(w.name + 4, NULL, 10) : 1;
			if (n->size > sizeof(n->bytes))
				ck_abort_msg("more than %zu bytes", sizeof(n->bytes));
			continue;
		}
		/* A check that passes costs a system call: not for every word. */
		if (!fill(&w, &p, &last_ip))
			ck_abort_msg("no packet: %s", w.name);
		if (p.kind == VMPT_PT_PSB)
			last_ip = 0;
		size = vmpt_pt_encode(&p, n->bytes + n->size, sizeof(n->bytes) - n->size, block);
		if (size <= 0)
			ck_abort_msg("%s: %s", w.name, vmpt_strerror(size));
		block = vmpt_pt_block_after(&p, block);
		n->size += (size_t)size;
	}
	free(copy);
	n->stream = (struct vmpt_stream){ .data = n->bytes, .size = n->size, .tid = -1 };
}

/* ---- writing ---- */

static const char *lower_name(unsigned int kind)
{
	static const char *const name[VMPT_PT_KINDS] = {
		[VMPT_PT_TIP] = "tip",	      [VMPT_PT_TIP_PGE] = "pge",
		[VMPT_PT_TIP_PGD] = "pgd",    [VMPT_PT_FUP] = "fup",
		[VMPT_PT_PSB] = "psb",	      [VMPT_PT_PSBEND] = "psbend",
		[VMPT_PT_OVF] = "ovf",	      [VMPT_PT_TRACESTOP] = "tracestop",
		[VMPT_PT_CBR] = "cbr",	      [VMPT_PT_TSC] = "tsc",
		[VMPT_PT_MTC] = "mtc",	      [VMPT_PT_CYC] = "cyc",
		[VMPT_PT_VMCS] = "vmcs",      [VMPT_PT_TMA] = "tma",
		[VMPT_PT_PTW] = "ptw",	      [VMPT_PT_BBP] = "bbp",
		[VMPT_PT_BIP] = "bip",	      [VMPT_PT_BEP] = "bep",
		[VMPT_PT_MWAIT] = "mwait",    [VMPT_PT_EXSTOP] = "exstop",
		[VMPT_PT_MNT] = "mnt",	      [VMPT_PT_CFE] = "cfe",
		[VMPT_PT_EVD] = "evd",	      [VMPT_PT_PIP] = "pip",
		[VMPT_PT_MODE_EXEC] = "exec", [VMPT_PT_MODE_TSX] = "tsx",
		[VMPT_PT_TRIG] = "trig",
	};

	return name[kind] ? name[kind] : "?";
}

static void write_packet(FILE *f, const struct vmpt_pt_packet *p, u64 last_ip)
{
	int i;

	switch (p->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		fprintf(f, "tnt:");
		for (i = (int)p->tnt.count - 1; i >= 0; i--)
			fputc(p->tnt.bits >> i & 1 ? 'T' : 'N', f);
		return;
	}
	fprintf(f, "%s", lower_name(p->kind));
	if (vmpt_pt_table[p->kind].classes & VMPT_PT_HAS_IP) {
		if (p->ip.ipbytes)
			fprintf(f, ":%llx", (unsigned long long)last_ip);
		else
			fprintf(f, ":-");
		return;
	}
	switch (p->kind) {
	case VMPT_PT_PIP:
		fprintf(f, ":%llx%s", (unsigned long long)p->pip.cr3, p->pip.nr ? ":nr" : "");
		break;
	case VMPT_PT_MODE_EXEC:
		fprintf(f, ":%d%s",
			p->exec.cs_l   ? 64
			: p->exec.cs_d ? 32
				       : 16,
			p->exec.rflags_if ? "if" : "");
		break;
	case VMPT_PT_MODE_TSX:
		fprintf(f, ":%llx", (unsigned long long)(p->tsx.intx | p->tsx.txabort << 1));
		break;
	case VMPT_PT_CFE:
	case VMPT_PT_EVD:
		fprintf(f, ":%s", vmpt_pt_value_name(p, 0));
		if (p->kind == VMPT_PT_EVD)
			fprintf(f, ":%llx", (unsigned long long)p->evd.payload);
		else if (p->cfe.ip)
			fprintf(f, ":ip");
		break;
	case VMPT_PT_PTW:
		fprintf(f, ":%llx%s", (unsigned long long)p->ptw.payload, p->ptw.ip ? ":ip" : "");
		break;
	case VMPT_PT_TRIG:
		fprintf(f, ":%llx%s", (unsigned long long)p->trig.trbv, p->trig.ip ? ":ip" : "");
		break;
	case VMPT_PT_BBP:
		fprintf(f, ":%llx:%llx", (unsigned long long)p->bbp.type,
			(unsigned long long)p->bbp.sz);
		break;
	case VMPT_PT_BEP:
	case VMPT_PT_EXSTOP:
		fprintf(f, "%s", p->val[0] ? ":ip" : "");
		break;
	default:
		for (i = 0; i < vmpt_pt_table[p->kind].fields; i++)
			fprintf(f, ":%llx", (unsigned long long)p->val[i]);
	}
}

const char *notation_write(const u8 *bytes, size_t size)
{
	static char text[65536];
	FILE *f = fmemopen(text, sizeof(text), "w");
	struct vmpt_pt_packet p;
	unsigned int block = 0;
	bool first = true;
	u64 last_ip = 0;
	size_t at;

	for (at = 0; at < size; at += p.size) {
		ck_assert_int_eq(vmpt_pt_decode(&p, bytes + at, size - at, block), 0);
		block = vmpt_pt_block_after(&p, block);
		if (p.kind == VMPT_PT_PAD)
			continue;
		if (p.kind == VMPT_PT_PSB)
			last_ip = 0;
		if (vmpt_pt_table[p.kind].classes & VMPT_PT_HAS_IP)
			last_ip = vmpt_pt_ip_expand(last_ip, (unsigned int)p.ip.ipbytes, p.ip.ip);
		if (!first)
			fputc(' ', f);
		first = false;
		write_packet(f, &p, last_ip);
	}
	fputc('\0', f);
	fclose(f);
	return text;
}

/* ---- slices ---- */

static const char *owner_text(const struct vmpt_owner *o, bool loss)
{
	static char text[2][40];
	static int turn;
	char *t = text[turn ^= 1];

	if (loss)
		return "loss";
	switch (o->kind) {
	case VMPT_OWNER_HOST:
		return "host";
	case VMPT_OWNER_VM:
		snprintf(t, sizeof(text[0]), "vm:%llx", (unsigned long long)o->vmcs);
		return t;
	case VMPT_OWNER_VM_ANY:
		return "vm";
	default:
		return "unknown";
	}
}

void notation_check_slices(const char *text, const struct vmpt_options *options)
{
	static struct notation n;
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	const struct notation_slice *want;
	u64 at = 0;
	size_t i;
	int ret;

	notation_read(&n, text);
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, options), 0);
	for (i = 0; (ret = vmpt_split_next(split, &slice)) > 0; i++) {
		ck_assert_msg(i < n.slice_count, "slice %zu at %#llx was not expected", i,
			      (unsigned long long)slice.offset);
		want = &n.slices[i];
		ck_assert_uint_eq(slice.offset, at);
		at += slice.size;
		ck_assert_msg(slice.offset == want->offset &&
				      vmpt_owner_same(&slice.owner, &want->owner) &&
				      want->loss == (slice.begin == VMPT_BEGIN_LOSS),
			      "slice %zu: %s at %#llx, expected %s at %#llx", i,
			      owner_text(&slice.owner, slice.begin == VMPT_BEGIN_LOSS),
			      (unsigned long long)slice.offset,
			      owner_text(&want->owner, want->loss),
			      (unsigned long long)want->offset);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(i, n.slice_count);
	ck_assert_uint_eq(at, n.size);
	vmpt_splitter_close(split);
}
