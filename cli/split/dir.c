// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The directory of vmpt split: its existing files, and which of them may be
 * overwritten or removed. An input never is, under any name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/split/split.h"

int split_io_failed(struct cli *cli, const char *name)
{
	const struct split *s = cli->own;
	int e = errno;

	/* What is written lies in a map: the kernel does not raise SIGBUS for it. */
	cli_error(cli, "%s/%s: %s", s->dir, name,
		  e == EFAULT ? "the trace became shorter while it was read" : strerror(e));
	if (e == EEXIST)
		fprintf(stderr, "  use another directory, or overwrite it with --force\n");
	return 1;
}

int split_is_input(struct cli *cli, const char *name)
{
	const struct split *s = cli->own;

	cli_error(cli, "%s/%s is an input: it would be overwritten", s->dir, name);
	fprintf(stderr, "  use another directory\n");
	return 1;
}

/* ---- names ---- */

/* ".cpu2", ".tid77", or "" where neither is known. */
static void name_where(const struct vmpt_stream *stream, char where[32])
{
	where[0] = '\0';
	if (stream->tid >= 0)
		snprintf(where, 32, ".tid%d", stream->tid);
	else if (stream->cpu >= 0)
		snprintf(where, 32, ".cpu%d", stream->cpu);
}

/* The endings of names. */
static const char *const suffix[] = { ".pt", ".perf.data", ".rtit" };

static bool is_suffix(const char *end)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(suffix); i++)
		if (!strcmp(end, suffix[i]))
			return true;
	return false;
}

static const char *suffix_of(const struct cli *cli)
{
	return suffix[cli_is_rtit(cli) ? 2 : ((const struct split *)cli->own)->perf];
}

void split_name(const struct cli *cli, const struct vmpt_owner *owner,
		const struct vmpt_stream *stream, unsigned int nth, char name[SPLIT_NAME])
{
	const struct cli_vcpu *vcpu = cli_record_vcpu(cli, owner);
	char who[SPLIT_NAME - 48], where[32];
	size_t n;

	if (vcpu)
		snprintf(who, sizeof(who), "%s", vcpu->file);
	else if (owner->kind == VMPT_OWNER_VM)
		snprintf(who, sizeof(who), "vmcs-%llx", (unsigned long long)owner->vmcs);
	else
		snprintf(who, sizeof(who), "%s",
			 owner->kind == VMPT_OWNER_HOST ? "host" : "vm-unknown");
	n = strlen(who);
	if (nth > 1)
		snprintf(who + n, sizeof(who) - n, "-%u", nth);
	name_where(stream, where);
	snprintf(name, SPLIT_NAME, "%s%s%s", who, where, suffix_of(cli));
}

/*
 * The end of "vm-NAME-vcpuN" in a name of RTIT: its last "-vcpuN", followed by a '.' and
 * no other '-'. NULL: there is none.
 */
static const char *end_of_vcpu(const char *name)
{
	const char *at = strrchr(name, '-');
	size_t digits;

	if (strncmp(name, "vm-", 3) || !at || at < name + 4 || strncmp(at, "-vcpu", 5))
		return NULL;
	digits = strspn(at + 5, "0123456789");
	return digits && at[5 + digits] == '.' ? at + 5 + digits : NULL;
}

/*
 * The part of a name of split_name() that shows the stream's source:
 * ".cpu2.pt", ".tid77.pt", ".pt" or those of a perf.data or RTIT. NULL: not such a name.
 */
static const char *where_of_name(const char *name)
{
	const char *where = end_of_vcpu(name), *end;
	size_t digits;

	if (where) {
		;
	} else if (!strncmp(name, "host", 4)) {
		where = name + 4;
	} else if (!strncmp(name, "vm-unknown", 10)) {
		where = name + 10;
	} else if (!strncmp(name, "vmcs-", 5)) {
		digits = strspn(name + 5, "0123456789abcdef");
		if (digits && digits <= 16)
			where = name + 5 + digits;
		if (where && *where == '-' && strspn(where + 1, "0123456789"))
			where += 1 + strspn(where + 1, "0123456789");
	}
	if (!where)
		return NULL;
	end = where;
	if (!strncmp(end, ".cpu", 4) || !strncmp(end, ".tid", 4)) {
		digits = strspn(end + 4, "0123456789");
		if (!digits)
			return NULL;
		end += 4 + digits;
	}
	return is_suffix(end) ? where : NULL;
}

/* Whether this split may write a file of that name: the owners are not known yet. */
static bool may_be_written(const struct cli *cli, const char *name)
{
	const char *where = where_of_name(name);
	size_t i;

	if (!strcmp(name, "index.json"))
		return true;
	if (((const struct split *)cli->own)->per_vm && split_vm_is_name(name))
		return true;
	for (i = 0; where && i < cli->streams; i++) {
		char one[32];

		name_where(cli->stream[i], one);
		if (!strncmp(where, one, strlen(one)) &&
		    !strcmp(where + strlen(one), suffix_of(cli)))
			return true;
	}
	return false;
}

/* ---- the contents of the directory ---- */

/* Call @one for each file, until it returns other than 0. */
static int each_file(struct cli *cli, int (*one)(struct cli *cli, const char *name, void *opaque),
		     void *opaque)
{
	const struct split *s = cli->own;
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		cli_error(cli, "cannot read %s: %s", s->dir, strerror(errno));
		if (fd >= 0)
			close(fd);
		return 1;
	}
	while (!ret && (entry = readdir(dir)) != NULL)
		ret = one(cli, entry->d_name, opaque);
	closedir(dir);
	return ret;
}

static bool names_input(const struct cli *cli, const char *name)
{
	const struct split *s = cli->own;
	struct stat st;

	return !fstatat(s->dir_fd, name, &st, 0) && cli_is_input(cli, &st);
}

static int refuse_input(struct cli *cli, const char *name, void *opaque)
{
	(void)opaque;
	return may_be_written(cli, name) && names_input(cli, name) ? split_is_input(cli, name) : 0;
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
	s->again = !faccessat(s->dir_fd, "index.json", F_OK, 0);
	if (s->again && !s->force) {
		errno = EEXIST;
		return split_io_failed(cli, "index.json");
	}
	return s->force ? each_file(cli, refuse_input, NULL) : 0;
}

/* ---- streams of an earlier split ---- */

struct written {
	const char **name; /* sorted */
	size_t count;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int remove_if_old(struct cli *cli, const char *name, void *opaque)
{
	const struct written *w = opaque;
	struct split *s = cli->own;
	struct stat st;

	if ((!where_of_name(name) && !split_vm_is_name(name)) || names_input(cli, name) ||
	    (w->count && bsearch(&name, w->name, w->count, sizeof(*w->name), compare_names)))
		return 0;
	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	if (unlinkat(s->dir_fd, name, 0))
		return split_io_failed(cli, name);
	s->removed++;
	return 0;
}

int split_remove_old(struct cli *cli)
{
	const struct split *s = cli->own;
	struct written w = { .count = s->outs };
	size_t i, vms = 0;
	int err;

	/* Without an index these are not streams of vmpt split, whatever their names. */
	if (!s->again)
		return 0;
	while (split_vm_name(s, vms))
		vms++;
	w.name = calloc(s->outs + vms + 1, sizeof(*w.name));
	if (!w.name) {
		cli_no_memory(cli);
		return 1;
	}
	for (i = 0; i < s->outs; i++)
		w.name[i] = s->out[i].name;
	for (i = 0; i < vms; i++)
		w.name[w.count++] = split_vm_name(s, i);
	qsort(w.name, w.count, sizeof(*w.name), compare_names);
	err = each_file(cli, remove_if_old, &w);
	free(w.name);
	return err;
}
