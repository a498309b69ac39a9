// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The directory of vmpt split. A split is made in a folder within it, NEW, and moved into place
 * when it is complete, its index last. Only what the index of an earlier split lists is replaced or
 * removed, and never an input. Whatever moment a split is killed at, the next one finds the earlier
 * split whole, or NEW: without an index it is discarded, with one its move is completed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/split/split.h"
#include "util/array.h"

#define NEW	  ".vmpt-split"
#define INDEX	  "index.json"
#define OLD_INDEX "old-index.json" /* in NEW, while files are moved */

/* Bytes at the end of an index in which the list of its files is: more than a million of them. */
#define LIST_MAX (64 << 20)

int split_io_failed(struct cli *cli, const char *name)
{
	const struct split *s = cli->data;
	int e = errno;

	/* What is written lies in a map: the kernel does not raise SIGBUS for it. */
	cli_error(cli, "%s/%s: %s", s->dir, name,
		  e == EFAULT ? "the trace became shorter while it was read" : strerror(e));
	if (e == EEXIST)
		fprintf(stderr, "  use another directory, or overwrite it with --force\n");
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

static const char *suffix_of(const struct cli *cli)
{
	return suffix[cli_is_rtit(cli) ? 2 : ((const struct split *)cli->data)->perf];
}

void split_name(const struct cli *cli, const struct vmpt_owner *owner,
		const struct vmpt_stream *stream, unsigned int nth, char name[SPLIT_NAME])
{
	const struct cli_vcpu *vcpu = cli_side_record_vcpu(cli, owner);
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

/* ---- what an index lists ---- */

static int compare_names(const void *a, const void *b)
{
	const struct split_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* A file that a split may have written: in the directory itself, and named like a stream. */
static bool is_plain(const char *name)
{
	size_t len = strlen(name), i, n;

	if (!strcmp(name, SLICES_FILE))
		return true;
	if (*name == '.' || strchr(name, '/'))
		return false;
	for (i = 0; i < VMPT_ARRAY_SIZE(suffix); i++) {
		n = strlen(suffix[i]);
		if (len > n && !strcmp(name + len - n, suffix[i]))
			return true;
	}
	return false;
}

/* Add the "file" and "size" of each object; an index without "outputs" has no sizes. */
static int add_files(struct split_files *list, const json_t *array)
{
	const char *name;
	const json_t *o;
	size_t i;

	json_array_foreach(array, i, o)
	{
		name = json_string_value(json_object_get(o, "file"));
		if (!name || !is_plain(name))
			continue;
		if (vmpt_grow(&list->file, list->count))
			return -1;
		list->file[list->count] = (struct split_file){
			.name = strdup(name),
			.size = json_integer_value(json_object_get(o, "size")),
			.sized = json_is_integer(json_object_get(o, "size")),
		};
		if (!list->file[list->count++].name)
			return -1;
	}
	return 0;
}

/* The last LIST_MAX bytes of a file, NUL-terminated; the caller frees them. NULL by errno. */
static char *read_tail(int fd, const char *name)
{
	int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t size, n = 0;
	char *text = NULL;
	struct stat st;
	ssize_t got = 1;

	if (file >= 0 && !fstat(file, &st) && S_ISREG(st.st_mode)) {
		size = (size_t)(st.st_size < LIST_MAX ? st.st_size : LIST_MAX);
		text = malloc(size + 1);
		while (text && n < size && got > 0) {
			got = pread(file, text + n, size - n, st.st_size - (off_t)(size - n));
			n += got > 0 ? (size_t)got : 0;
		}
		if (text)
			text[n] = '\0';
	} else if (file >= 0) {
		errno = EINVAL;
	}
	if (file >= 0)
		close(file);
	return text;
}

/*
 * Read the files that the index @name of folder @fd lists: its last members, one a line (index.c).
 * -ENOENT: there is no such file; -EINVAL: it is no index of vmpt split.
 */
static int read_list(int fd, const char *name, struct split_files *list)
{
	/* Without sizes before there were "outputs". */
	static const char *const member[] = { "\n\"outputs\": ", "\n\"streams\": ", "\n\"vms\": " };
	char *text = read_tail(fd, name);
	bool is_index = false;
	const char *at;
	json_t *array;
	int ret = 0;
	size_t i;

	*list = (struct split_files){ 0 };
	if (!text)
		return -errno;
	for (i = 0; !ret && i < VMPT_ARRAY_SIZE(member); i++) {
		at = strstr(text, "\n\"left_out_bytes\": ");
		at = at ? strstr(at, member[i]) : NULL;
		if (!at)
			continue;
		at += strlen(member[i]);
		array = json_loadb(at, strcspn(at, "\n"), JSON_DISABLE_EOF_CHECK, NULL);
		is_index |= json_is_array(array);
		if (add_files(list, array))
			ret = -ENOMEM;
		json_decref(array);
		if (!i && is_index)
			break;
	}
	if (!ret && !is_index)
		ret = -EINVAL;
	free(text);
	if (ret)
		split_files_free(list);
	else if (list->count)
		qsort(list->file, list->count, sizeof(*list->file), compare_names);
	return ret;
}

void split_files_free(struct split_files *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		free(list->file[i].name);
	free(list->file);
	*list = (struct split_files){ 0 };
}

static const struct split_file *find_file(const struct split_files *list, const char *name)
{
	const struct split_file key = { .name = (char *)name };

	return list->count ? bsearch(&key, list->file, list->count, sizeof(key), compare_names)
			   : NULL;
}

/* ---- the contents of the directory ---- */

static bool names_input(const struct cli *cli, const char *name)
{
	const struct split *s = cli->data;
	struct stat st;

	return !fstatat(s->dir_fd, name, &st, 0) && cli_is_input(cli, &st);
}

/* Whether the file is still the one that the earlier split wrote. */
static bool is_unchanged(const struct split *s, const struct split_file *file,
			 const struct stat *st)
{
	return file && S_ISREG(st->st_mode) && (!file->sized || st->st_size == file->size) &&
	       st->st_dev == s->dev;
}

static int refuse_input(const struct cli *cli, const char *name)
{
	const struct split *s = cli->data;

	cli_error(cli, "%s/%s is an input: it would be overwritten", s->dir, name);
	fprintf(stderr, "  use another directory\n");
	return 1;
}

static int refuse_foreign(const struct cli *cli, const char *name)
{
	const struct split *s = cli->data;

	cli_error(cli, "%s/%s: exists, and no earlier split wrote it, or it was changed since",
		  s->dir, name);
	fprintf(stderr, "  use another directory, or move it away\n");
	return 1;
}

int split_check_name(struct cli *cli, const char *name)
{
	const struct split *s = cli->data;
	struct stat st;

	if (names_input(cli, name))
		return refuse_input(cli, name);
	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : split_io_failed(cli, name);
	if (!strcmp(name, INDEX) ? s->again : is_unchanged(s, find_file(&s->old, name), &st))
		return 0;
	return refuse_foreign(cli, name);
}

static int dir_failed(const struct cli *cli, const char *what)
{
	const struct split *s = cli->data;

	cli_error(cli, "cannot %s %s: %s", what, s->dir, strerror(errno));
	return 1;
}

/* Remove NEW and what a split may have left in it. */
static int discard_new(struct cli *cli)
{
	struct split *s = cli->data;
	int fd = openat(s->dir_fd, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;
	int ret = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fd < 0 && errno == ENOENT ? 0 : split_io_failed(cli, NEW);
	}
	while (!ret && (entry = readdir(dir)) != NULL)
		if (!fstatat(fd, entry->d_name, &st, 0) && S_ISREG(st.st_mode) &&
		    cli_is_input(cli, &st))
			ret = refuse_input(cli, NEW);
	rewinddir(dir);
	while (!ret && (entry = readdir(dir)) != NULL)
		if (is_plain(entry->d_name) || !strcmp(entry->d_name, INDEX) ||
		    !strcmp(entry->d_name, INDEX ".part"))
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	if (ret)
		return ret;
	return unlinkat(s->dir_fd, NEW, AT_REMOVEDIR) ? split_io_failed(cli, NEW) : 0;
}

/* The rest of a move that was killed. */
static int complete_old_move(struct cli *cli)
{
	struct split *s = cli->data;
	struct split_files done;
	int ret = 1;

	s->new_fd = openat(s->dir_fd, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->new_fd < 0)
		return errno == ENOENT ? 0 : split_io_failed(cli, NEW);
	if (!read_list(s->new_fd, INDEX, &done)) {
		ret = split_move(cli, &done);
		if (!ret)
			cli_warn(cli, "%s: completed an earlier split, which was interrupted",
				 s->dir);
		split_files_free(&done);
	} else {
		ret = faccessat(s->new_fd, OLD_INDEX, F_OK, AT_SYMLINK_NOFOLLOW)
			      ? discard_new(cli)
			      : split_io_failed(cli, NEW "/" INDEX);
	}
	close(s->new_fd);
	s->new_fd = -1;
	return ret;
}

static int read_old(struct cli *cli)
{
	struct split *s = cli->data;
	int ret = read_list(s->dir_fd, INDEX, &s->old);

	s->again = !ret;
	if (ret == -ENOENT)
		return 0;
	if (!s->force) {
		errno = EEXIST;
		return split_io_failed(cli, INDEX);
	}
	if (!ret || names_input(cli, INDEX))
		return split_check_name(cli, INDEX);
	if (ret == -EINVAL || ret == -ELOOP)
		return refuse_foreign(cli, INDEX);
	errno = -ret;
	return split_io_failed(cli, INDEX);
}

int split_open_dir(struct cli *cli)
{
	struct split *s = cli->data;
	struct stat st;

	s->made = !mkdir(s->dir, cli->mode | (cli->mode & 0444) >> 2);
	if (!s->made && errno != EEXIST)
		return dir_failed(cli, "create");
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0 || fstat(s->dir_fd, &st))
		return dir_failed(cli, "open");
	s->dev = st.st_dev;
	if (flock(s->dir_fd, LOCK_EX | LOCK_NB)) {
		cli_error(cli, "%s: another vmpt split writes to it", s->dir);
		return 1;
	}
	if (complete_old_move(cli) || read_old(cli))
		return 1;
	if (mkdirat(s->dir_fd, NEW, 0700))
		return split_io_failed(cli, NEW);
	s->new_fd = openat(s->dir_fd, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->new_fd < 0 ? split_io_failed(cli, NEW) : 0;
}

/* ---- moving a complete split into place ---- */

/* Not those that were moved before an interruption. */
static int remove_old(struct cli *cli, const struct split_files *old,
		      const struct split_files *made)
{
	struct split *s = cli->data;
	const struct split_file *file;
	struct stat st;
	size_t i;

	for (i = 0; i < old->count; i++) {
		bool again;

		file = &old->file[i];
		again = find_file(made, file->name);
		if ((again && faccessat(s->new_fd, file->name, F_OK, AT_SYMLINK_NOFOLLOW)) ||
		    names_input(cli, file->name) ||
		    fstatat(s->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !is_unchanged(s, file, &st))
			continue;
		if (unlinkat(s->dir_fd, file->name, 0))
			return split_io_failed(cli, file->name);
		s->removed += !again && strcmp(file->name, SLICES_FILE);
	}
	return 0;
}

/* Move a file of NEW, unless that was done before an interruption. */
static int move_file(struct cli *cli, const char *name)
{
	const struct split *s = cli->data;
	struct stat st;

	if (!renameat2(s->new_fd, name, s->dir_fd, name, RENAME_NOREPLACE) || errno == ENOENT)
		return 0;
	/* Not all file systems know RENAME_NOREPLACE. */
	if (errno == EINVAL && fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    !renameat(s->new_fd, name, s->dir_fd, name))
		return 0;
	return names_input(cli, name) ? refuse_input(cli, name) : refuse_foreign(cli, name);
}

/* Each step may be the last of a process: the next split starts again with the first. */
int split_move(struct cli *cli, const struct split_files *made)
{
	struct split *s = cli->data;
	struct split_files old = { 0 };
	size_t i;
	int err = 0;

	if (renameat(s->dir_fd, INDEX, s->new_fd, OLD_INDEX) && errno != ENOENT)
		return split_io_failed(cli, INDEX);
	if (read_list(s->new_fd, OLD_INDEX, &old) == -ENOMEM)
		return cli_no_memory(cli);
	err = remove_old(cli, &old, made);
	split_files_free(&old);
	for (i = 0; i < made->count && !err; i++)
		err = move_file(cli, made->file[i].name);
	if (!err && unlinkat(s->new_fd, OLD_INDEX, 0) && errno != ENOENT)
		err = split_io_failed(cli, OLD_INDEX);
	if (!err)
		err = move_file(cli, INDEX);
	if (!err && unlinkat(s->dir_fd, NEW, AT_REMOVEDIR))
		err = split_io_failed(cli, NEW);
	return err;
}

int split_commit(struct cli *cli)
{
	struct split *s = cli->data;
	struct split_files made;
	size_t i;
	int err = 0;

	if (renameat(s->new_fd, INDEX ".part", s->new_fd, INDEX) ||
	    read_list(s->new_fd, INDEX, &made))
		return split_io_failed(cli, INDEX);
	/* Once more: files may have come meanwhile. */
	for (i = 0; i < made.count && !err; i++)
		err = split_check_name(cli, made.file[i].name);
	if (!err)
		err = split_check_name(cli, INDEX);
	if (!err)
		err = split_move(cli, &made);
	split_files_free(&made);
	return err;
}

void split_close_dir(struct cli *cli)
{
	struct split *s = cli->data;

	if (s->new_fd >= 0) {
		/* What is moved half way is for the next split. */
		if (faccessat(s->new_fd, OLD_INDEX, F_OK, AT_SYMLINK_NOFOLLOW))
			discard_new(cli);
		close(s->new_fd);
	}
	/* Fails if anything is in it. */
	if (s->made)
		rmdir(s->dir);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	split_files_free(&s->old);
}
