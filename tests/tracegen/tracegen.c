// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The library's interface: run a script, return the results, free them. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tests/tracegen/internal.h"
#include "util/hash.h"

void tg_fail(struct tracegen *g, const char *fmt, ...)
{
	va_list args;
	int n = 0;

	if (g->failed)
		return;
	g->failed = true;
	if (g->node)
		n = snprintf(g->error, sizeof(g->error), "%s:%d: ", g->file, g->node->line);
	else
		n = snprintf(g->error, sizeof(g->error), "%s: ", g->file);
	if (n < 0 || (size_t)n >= sizeof(g->error))
		n = 0;
	va_start(args, fmt);
	vsnprintf(g->error + n, sizeof(g->error) - (size_t)n, fmt, args);
	va_end(args);
}

bool tg_room(struct tracegen *g, int err)
{
	if (err)
		tg_fail(g, "out of memory");
	return !err;
}

/* splitmix64 */
u64 tg_random(struct tracegen *g)
{
	return vmpt_mix64(g->rng += 0x9e3779b97f4a7c15ULL);
}

static void finish(struct tracegen *g)
{
	size_t i;

	for (i = 0; i < TRACEGEN_CPUS && !g->failed; i++) {
		if (!g->cpu[i])
			continue;
		tg_settle(g, g->cpu[i]);
		tg_tnt_flush(g, g->cpu[i]);
	}
}

static struct tracegen *gen_new(const char *file, const struct tracegen_options *options)
{
	struct tracegen *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->file = strdup(file);
	if (!g->file) {
		free(g);
		return NULL;
	}
	if (options)
		g->opt = *options;
	tg_setup(g);
	return g;
}

static void gen_run(struct tracegen *g)
{
	g->script = tg_parse(g, g->text);
	if (g->failed)
		return;
	tg_run_nodes(g, g->script);
	finish(g);
}

struct tracegen *tracegen_run(const char *file, const char *text,
			      const struct tracegen_options *options)
{
	struct tracegen *g = gen_new(file, options);

	if (!g)
		return NULL;
	g->text = strdup(text);
	if (!g->text) {
		tracegen_free(g);
		return NULL;
	}
	gen_run(g);
	return g;
}

/* A whole file as a string; NULL with errno. */
static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t size = 0, n, room = 0;

	if (!f)
		return NULL;
	do {
		if (vmpt_reserve(&text, &room, size + 65536)) {
			free(text);
			fclose(f);
			return NULL;
		}
		n = fread(text + size, 1, room - size - 1, f);
		size += n;
	} while (n);
	text[size] = '\0';
	if (ferror(f) || strlen(text) != size) {
		if (!ferror(f))
			errno = EILSEQ; /* a NUL byte */
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

struct tracegen *tracegen_run_file(const char *path, const struct tracegen_options *options)
{
	struct tracegen *g = gen_new(path, options);

	if (!g)
		return NULL;
	g->text = read_text(path);
	if (g->text)
		gen_run(g);
	else
		tg_fail(g, "%s", strerror(errno));
	return g;
}

static void cpu_free(struct tg_cpu *p)
{
	if (!p)
		return;
	tg_code_free(&p->host);
	free(p->out.data);
	free(p->out.ranges);
	free(p->out.packets);
	free(p->out.rets);
	free(p->out.insns);
	free(p->out.losses);
	free(p->out.vms);
	free(p);
}

void tracegen_free(struct tracegen *g)
{
	size_t i;

	if (!g)
		return;
	for (i = 0; i < TRACEGEN_CPUS; i++)
		cpu_free(g->cpu[i]);
	for (i = 0; i < g->vm_count; i++) {
		tg_code_free(g->vms[i]);
		free(g->vms[i]);
	}
	free(g->vms);
	free(g->vm_info);
	tg_script_free(g->script);
	free(g->text);
	free((char *)g->file);
	free(g);
}

const char *tracegen_error(const struct tracegen *g)
{
	return g->failed ? g->error : NULL;
}

size_t tracegen_streams(const struct tracegen *g)
{
	return g->stream_count;
}

const struct tracegen_stream *tracegen_stream(const struct tracegen *g, size_t i)
{
	return i < g->stream_count ? g->streams[i] : NULL;
}

size_t tracegen_vms(const struct tracegen *g)
{
	return g->vm_count;
}

const struct tracegen_vm *tracegen_vm(const struct tracegen *g, size_t i)
{
	return i < g->vm_count ? &g->vm_info[i] : NULL;
}

/* The @i-th page of one context; counts @i down by those it has. */
static bool code_page(const struct tg_ctx *c, size_t *i, struct tracegen_code *code)
{
	size_t r, n;

	for (r = 0; r < 3; r++) {
		if (!c->region[r])
			continue;
		for (n = 0; n < VMPT_ARRAY_SIZE(c->region[r]->pages); n++) {
			const struct tg_page *page = c->region[r]->pages[n];

			if (!page || (*i)--)
				continue;
			*code = (struct tracegen_code){ .base = c->region[r]->base + n * TG_PAGE,
							.bytes = page->bytes,
							.size = TG_PAGE,
							.owner = c->owner };
			return true;
		}
	}
	return false;
}

bool tracegen_code(const struct tracegen *g, size_t i, struct tracegen_code *code)
{
	size_t n;

	for (n = 0; n < TRACEGEN_CPUS; n++)
		if (g->cpu[n] && code_page(&g->cpu[n]->host, &i, code))
			return true;
	for (n = 0; n < g->vm_count; n++)
		if (code_page(g->vms[n], &i, code))
			return true;
	return false;
}
