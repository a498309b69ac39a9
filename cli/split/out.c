// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stream files of vmpt split, raw or each a perf.data; only a few are open at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/split/split.h"
#include "util/array.h"

static FILE *open_file(struct cli *cli, const char *name, int flags)
{
	struct split *s = cli->data;
	int fd = openat(s->new_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, cli->mode);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || (flags && fchmod(fd, cli->mode))) {
		split_io_failed(cli, name);
		if (f)
			fclose(f);
		else if (fd >= 0)
			close(fd);
		return NULL;
	}
	return f;
}

FILE *split_create(struct cli *cli, const char *name)
{
	return split_check_name(cli, name) ? NULL : open_file(cli, name, O_CREAT | O_EXCL);
}

static int close_out(struct cli *cli, struct split_out *out)
{
	struct split *s = cli->data;
	FILE *f = out->file;

	out->file = NULL;
	s->open--;
	return fclose(f) ? split_io_failed(cli, out->name) : 0;
}

/* Open a file again, at its end. */
static int reopen(struct cli *cli, struct split_out *out)
{
	struct split *s = cli->data;

	out->file = open_file(cli, out->name, 0);
	if (!out->file)
		return 1;
	s->open++;
	return fseeko(out->file, 0, SEEK_END) ? split_io_failed(cli, out->name) : 0;
}

static int make_room(struct cli *cli)
{
	struct split *s = cli->data;
	struct split_out *oldest = NULL;
	size_t i;

	if (s->open < SPLIT_OPEN_MAX)
		return 0;
	for (i = s->first; i < s->outs; i++)
		if (s->out[i].file && (!oldest || s->out[i].used < oldest->used))
			oldest = &s->out[i];
	return oldest ? close_out(cli, oldest) : 0;
}

static int start_perf(struct cli *cli, struct split_out *out)
{
	const struct vmpt_stream *stream = cli->stream[out->stream];
	const struct split *s = cli->data;
	const char *vm;
	s64 vcpu;

	/* By its last name: a stream is of one VMCS. */
	if (!s->clocks.clocks || out->owner.kind != VMPT_OWNER_VM ||
	    !cli_clocks_who(&s->clocks, out->owner.vmcs, VMPT_TIME_NONE - 1, &vm, &vcpu))
		vm = NULL;
	out->perf = (struct perf_out){
		.info = &s->info,
		/* The code named is a guest's. */
		.code = out->owner.kind == VMPT_OWNER_HOST ? NULL : &s->code,
		.vm = vm,
		.cpu = stream->cpu,
		.tid = stream->tid,
	};
	snprintf(out->perf.comm, sizeof(out->perf.comm), "%.*s", (int)strcspn(out->name, "."),
		 out->name);
	return perf_out_start(&out->perf, out->file) ? split_io_failed(cli, out->name) : 0;
}

static int finish_perf(struct cli *cli, struct split_out *out)
{
	if (!out->file && (make_room(cli) || reopen(cli, out)))
		return 1;
	return perf_out_finish(&out->perf, out->file) ? split_io_failed(cli, out->name) : 0;
}

int split_add(struct cli *cli, const struct vmpt_owner *owner)
{
	struct split *s = cli->data;
	unsigned int nth = 1;
	struct split_out *out;
	size_t i;

	if (vmpt_grow(&s->out, s->outs)) {
		cli_no_memory(cli);
		return 1;
	}
	if (make_room(cli))
		return 1;
	out = &s->out[s->outs];
	*out = (struct split_out){ .owner = *owner, .stream = s->stream };
	for (i = s->first; i < s->outs; i++)
		nth += vmpt_owner_same(owner, &s->out[i].owner);
	split_name(cli, owner, cli->stream[s->stream], nth, out->name);
	out->file = split_create(cli, out->name);
	if (!out->file)
		return 1;
	s->open++;
	s->outs++;
	return s->perf ? start_perf(cli, out) : 0;
}

int split_write(struct cli *cli, struct split_out *out, const u8 *bytes, size_t n)
{
	struct split *s = cli->data;
	bool ok;

	if (!out->file && (make_room(cli) || reopen(cli, out)))
		return 1;
	out->used = ++s->clock;
	out->bytes += n;
	if (s->perf)
		ok = !perf_out_write(&out->perf, out->file, bytes, n);
	else
		ok = fwrite(bytes, 1, n, out->file) == n;
	return ok ? 0 : split_io_failed(cli, out->name);
}

int split_finish_all(struct cli *cli)
{
	struct split *s = cli->data;
	size_t i;

	for (i = s->first; s->perf && i < s->outs; i++)
		if (finish_perf(cli, &s->out[i]))
			return 1;
	return split_close_all(cli);
}

int split_close_all(struct cli *cli)
{
	struct split *s = cli->data;
	int err = 0;
	size_t i;

	for (i = s->first; i < s->outs; i++)
		if (s->out[i].file && close_out(cli, &s->out[i]))
			err = 1;
	return err;
}
