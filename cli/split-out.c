// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The stream files of vmpt split; few are open at once, however many there are. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/split.h"

static int io_failed(struct cli *cli, const char *name)
{
	const struct split *s = cli->own;
	int e = errno;

	cli_error(cli, "%s/%s: %s", s->dir, name, strerror(e));
	if (e == EEXIST)
		fprintf(stderr, "  take another directory, or overwrite it with --force\n");
	return 1;
}

int split_open_dir(struct cli *cli)
{
	struct split *s = cli->own;

	if (mkdir(s->dir, 0777) && errno != EEXIST) {
		cli_error(cli, "cannot make %s: %s", s->dir, strerror(errno));
		return 1;
	}
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0) {
		cli_error(cli, "cannot open %s: %s", s->dir, strerror(errno));
		return 1;
	}
	if (!s->force && !faccessat(s->dir_fd, "index.json", F_OK, 0)) {
		errno = EEXIST;
		return io_failed(cli, "index.json");
	}
	return 0;
}

static FILE *open_file(struct cli *cli, const char *name, int flags)
{
	struct split *s = cli->own;
	int fd = openat(s->dir_fd, name, O_WRONLY | O_CLOEXEC | flags, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f) {
		io_failed(cli, name);
		if (fd >= 0)
			close(fd);
	}
	return f;
}

FILE *split_create(struct cli *cli, const char *name)
{
	const struct split *s = cli->own;

	return open_file(cli, name, O_CREAT | (s->force ? O_TRUNC : O_EXCL));
}

static int close_out(struct cli *cli, struct split_out *out)
{
	struct split *s = cli->own;
	FILE *f = out->file;

	out->file = NULL;
	s->open--;
	return fclose(f) ? io_failed(cli, out->name) : 0;
}

static int make_room(struct cli *cli)
{
	struct split *s = cli->own;
	struct split_out *oldest = NULL;
	size_t i;

	if (s->open < SPLIT_OPEN_MAX)
		return 0;
	for (i = s->first; i < s->outs; i++)
		if (s->out[i].file && (!oldest || s->out[i].used < oldest->used))
			oldest = &s->out[i];
	return oldest ? close_out(cli, oldest) : 0;
}

/* "vmcs-3b56ee000.cpu2.pt": the CPU is read from the name again. */
static void name_out(struct cli *cli, struct split_out *out)
{
	const struct vmpt_stream *stream = cli->stream[out->stream];
	char who[32], where[32] = "";

	if (out->owner.kind == VMPT_OWNER_VM)
		snprintf(who, sizeof(who), "vmcs-%llx", (unsigned long long)out->owner.vmcs);
	else
		snprintf(who, sizeof(who), "%s",
			 out->owner.kind == VMPT_OWNER_HOST ? "host" : "vm-unknown");
	if (stream->tid >= 0)
		snprintf(where, sizeof(where), ".tid%d", stream->tid);
	else if (stream->cpu >= 0)
		snprintf(where, sizeof(where), ".cpu%d", stream->cpu);
	snprintf(out->name, sizeof(out->name), "%s%s.pt", who, where);
}

int split_add(struct cli *cli, const struct vmpt_owner *owner)
{
	struct split *s = cli->own;
	struct split_out *out;

	if (s->outs == s->room) {
		size_t room = s->room ? 2 * s->room : 16;

		out = realloc(s->out, room * sizeof(*out));
		if (!out) {
			cli_no_memory(cli);
			return 1;
		}
		s->out = out;
		s->room = room;
	}
	if (make_room(cli))
		return 1;
	out = &s->out[s->outs];
	*out = (struct split_out){ .owner = *owner, .stream = s->stream };
	name_out(cli, out);
	out->file = split_create(cli, out->name);
	if (!out->file)
		return 1;
	s->open++;
	s->outs++;
	return 0;
}

int split_write(struct cli *cli, struct split_out *out, const u8 *bytes, size_t n)
{
	struct split *s = cli->own;

	if (!out->file) {
		if (make_room(cli))
			return 1;
		out->file = open_file(cli, out->name, O_APPEND);
		if (!out->file)
			return 1;
		s->open++;
	}
	out->used = ++s->clock;
	out->bytes += n;
	return fwrite(bytes, 1, n, out->file) == n ? 0 : io_failed(cli, out->name);
}

int split_close_all(struct cli *cli)
{
	struct split *s = cli->own;
	int err = 0;
	size_t i;

	for (i = s->first; i < s->outs; i++)
		if (s->out[i].file && close_out(cli, &s->out[i]))
			err = 1;
	return err;
}
