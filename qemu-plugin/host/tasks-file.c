// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes what was read of tasks. All names are the guest's: any bytes. */
#include "qemu-plugin/host/tasks-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/json-text.h"
#include "qemu-plugin/flow/flow.h"
#include "util/array.h"

/* How the files begin. The second is a line for readers of kallsyms, too: the bytes "vmptsyms". */
#define MARK	     "{\"tsc\":\"0x"
#define SYMBOLS_MARK "766d707473796d73"
/* Of a line, for its readers; more maps of a process are left out. */
#define LINE_MAX     60000u
#define MAP_MAX	     8192u
#define SIZE_MAX_MIB 64u

/* ---- the file ---- */

const char *tasks_file_open(struct tasks_file *f, const char *path, u64 mode)
{
	const char *why = NULL;
	struct stat st;

	f->path = path;
	f->fd = file_open(path, mode, MARK, &why);
	if (f->fd < 0)
		return why;
	if (flock(f->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? "another QEMU writes to it" : strerror(errno);
	if (fstat(f->fd, &st))
		return strerror(errno);
	f->size = (u64)st.st_size;
	return NULL;
}

void tasks_file_close(struct tasks_file *f)
{
	close(f->fd);
}

/* All of it, or nothing. */
static int write_all(int fd, const char *text, size_t n, u64 at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t more = pwrite(fd, text + done, n - done, (off_t)(at + done));

		if (more > 0)
			done += (size_t)more;
		else if (!more || errno != EINTR)
			break;
	}
	if (done == n)
		return 0;
	if (done && ftruncate(fd, (off_t)at))
		return errno;
	return errno ? errno : EIO;
}

void tasks_file_flush(struct tasks_file *f, struct tasks_pending *pending, u64 moved)
{
	size_t i;

	for (i = 0; i < pending->count; i++) {
		const struct tasks_pending_line *l = &pending->line[i];
		const unsigned long long tsc = l->tsc + moved;
		char *line = NULL;
		int n = asprintf(&line, MARK "%llx\",%s", tsc, l->text);

		if (n < 0)
			f->err = f->err ? f->err : ENOMEM;
		else if (!f->err && f->size + (u64)n > (u64)SIZE_MAX_MIB << 20)
			f->err = EFBIG;
		else if (!f->err)
			f->err = write_all(f->fd, line, (size_t)n, f->size);
		if (!f->err)
			f->size += (u64)n;
		if (n >= 0)
			free(line);
		free(l->text);
	}
	pending->count = 0;
}

/* ---- lines ---- */

static void put_hex(struct text *t, const char *name, u64 v)
{
	put_str(t, ",\"");
	put_str(t, name);
	put_str(t, "\":\"0x");
	put_number(t, v, 16, 1);
	put_char(t, '"');
}

static void put_decimal(struct text *t, const char *name, u64 v)
{
	put_str(t, ",\"");
	put_str(t, name);
	put_str(t, "\":");
	put_number(t, v, 10, 1);
}

static void put_name(struct text *t, const char *name, const char *value)
{
	put_str(t, ",\"");
	put_str(t, name);
	put_str(t, "\":\"");
	put_json(t, value);
	put_char(t, '"');
}

static void put_id(struct text *t, const u8 *id, size_t size)
{
	size_t i;

	if (!size)
		return;
	put_str(t, ",\"build_id\":\"");
	for (i = 0; i < size; i++)
		put_number(t, id[i], 16, 2);
	put_char(t, '"');
}

/* Ends the line in @t, whose .buf has room for LINE_MAX, and takes it. */
static int add(struct tasks_pending *p, u64 tsc, struct text *t)
{
	struct tasks_pending_line l = { .tsc = tsc };

	put_str(t, "}\n");
	if (finish(t) >= t->len)
		return -VMPT_E_NOMEM;
	if (vmpt_grow(&p->line, p->count))
		return -VMPT_E_NOMEM;
	l.text = strdup(t->buf);
	if (!l.text)
		return -VMPT_E_NOMEM;
	p->line[p->count++] = l;
	return 0;
}

int tasks_put_machine(struct tasks_pending *p, u64 tsc, const char *vm)
{
	char buf[4096];
	struct text t = { buf, sizeof(buf), 0 };

	put_str(&t, "\"kind\":\"machine\"");
	put_name(&t, "vm", vm);
	return add(p, tsc, &t);
}

int tasks_put_kernel(struct tasks_pending *p, u64 tsc, const struct vmpt_guest_kernel *k)
{
	char buf[8192];
	struct text t = { buf, sizeof(buf), 0 };

	put_str(&t, "\"kind\":\"kernel\"");
	put_name(&t, "release", k->release);
	put_id(&t, k->build_id, k->build_id_size);
	put_hex(&t, "start", k->start);
	put_hex(&t, "end", k->end);
	put_hex(&t, "offset", k->offset);
	put_hex(&t, "cr3", k->cr3);
	return add(p, tsc, &t);
}

int tasks_put_task(struct tasks_pending *p, u64 tsc, const struct vmpt_guest_task *task)
{
	char buf[6 * 4200];
	struct text t = { buf, sizeof(buf), 0 };

	put_str(&t, "\"kind\":\"task\"");
	if (task->cr3)
		put_hex(&t, "cr3", task->cr3);
	put_decimal(&t, "tgid", task->tgid);
	put_decimal(&t, "pid", task->pid);
	put_decimal(&t, "parent", task->parent);
	put_name(&t, "comm", task->comm);
	put_hex(&t, "start_ns", task->start);
	if (task->program)
		put_name(&t, "program", task->program);
	return add(p, tsc, &t);
}

int tasks_put_maps(struct tasks_pending *p, u64 tsc, const struct vmpt_guest_task *task,
		   const struct vmpt_guest_map *map, size_t count)
{
	struct text t = { malloc(LINE_MAX), LINE_MAX, 0 };
	const char *before = "{\"start\":\"0x";
	size_t i;
	int ret;

	if (!t.buf)
		return -VMPT_E_NOMEM;
	put_str(&t, "\"kind\":\"maps\"");
	put_hex(&t, "cr3", task->cr3);
	put_decimal(&t, "tgid", task->tgid);
	put_str(&t, ",\"maps\":[");
	for (i = 0; i < count && t.used < LINE_MAX - MAP_MAX; i++) {
		size_t used = t.used;

		if (!map[i].exec || !map[i].file)
			continue;
		put_str(&t, before);
		put_number(&t, map[i].start, 16, 1);
		put_char(&t, '"');
		put_hex(&t, "end", map[i].end);
		put_hex(&t, "offset", map[i].offset);
		put_name(&t, "file", map[i].file);
		put_id(&t, map[i].build_id, map[i].build_id_size);
		put_char(&t, '}');
		/* A path with very many bytes that have to be escaped. */
		if (t.used >= LINE_MAX - 64)
			t.used = used;
		else
			before = ",{\"start\":\"0x";
	}
	put_char(&t, ']');
	ret = add(p, tsc, &t);
	free(t.buf);
	return ret;
}

/* ---- symbols ---- */

static void print_symbol(FILE *out, const struct vmpt_guest_symbol *s)
{
	const u8 *c;

	fprintf(out, "%016llx %c ", (unsigned long long)s->address, s->type);
	/* A line has spaces only where it has to; names of a kernel have none. */
	for (c = (const u8 *)s->name; *c; c++)
		fputc(*c > ' ' && *c != 0x7f ? *c : '?', out);
	if (s->module) {
		fputs("\t[", out);
		for (c = (const u8 *)s->module; *c; c++)
			fputc(*c > ' ' && *c != 0x7f ? *c : '?', out);
		fputc(']', out);
	}
	fputc('\n', out);
}

/* Functions only; where none follows, an end, which readers of kallsyms do not look at. */
static void print_symbols(FILE *out, const struct vmpt_guest *guest)
{
	struct vmpt_guest_symbol s;
	u64 end = 0;
	u32 i;

	fputs(SYMBOLS_MARK " A vmpt\n", out);
	for (i = 0; vmpt_guest_symbol(guest, i, &s); i++) {
		/* "T" and "t", "W" and "w": code. */
		if (!s.type || !strchr("tTwW", s.type))
			continue;
		if (end && end < s.address)
			fprintf(out, "%016llx A end\n", (unsigned long long)end);
		print_symbol(out, &s);
		end = s.address + s.size;
	}
	if (end)
		fprintf(out, "%016llx A end\n", (unsigned long long)end);
}

const char *tasks_symbols_write(const char *path, u64 mode, const struct vmpt_guest *guest)
{
	const char *why = NULL;
	int fd = file_open(path, mode, SYMBOLS_MARK, &why);
	FILE *out;

	if (fd < 0)
		return why;
	out = ftruncate(fd, 0) ? NULL : fdopen(fd, "w");
	if (!out) {
		why = strerror(errno);
		close(fd);
		return why;
	}
	print_symbols(out, guest);
	if (fflush(out) || ferror(out))
		why = strerror(errno);
	/* A part of them would name functions wrongly. */
	if (why && ftruncate(fd, 0))
		why = strerror(errno);
	fclose(out);
	return why;
}
