// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The path of an open file, from its dentry up to the root, over mounts. */
#include <stdio.h>

#include "decoder/names/guest.h"

#define PARTS_MAX 256 /* names of a path, and mounts */
#define NAME_MAX  256

/* Put @name and a slash before the path that begins at *@at. False: there is no room. */
static bool put_before(char *path, size_t *at, const char *name)
{
	size_t n = strlen(name);

	if (n + 1 > *at)
		return false;
	while (n)
		path[--*at] = name[--n];
	path[--*at] = '/';
	return true;
}

static bool name_of(struct vmpt_guest *g, u64 dentry, char name[NAME_MAX])
{
	u64 at;

	return vmpt_guest_field64(g, dentry, DENTRY_NAME, &at) &&
	       vmpt_guest_string(g, at, name, NAME_MAX);
}

/* A file of no folder, like memfd's and those of anonymous inodes: by its name. */
static bool is_alone(struct vmpt_guest *g, u64 dentry, u64 mnt)
{
	u64 parent, root;

	return vmpt_guest_field64(g, dentry, DENTRY_PARENT, &parent) && parent == dentry &&
	       vmpt_guest_field64(g, mnt, MNT_ROOT, &root) && root != dentry;
}

/* From the root of a mount to where it is mounted. False: it is mounted nowhere. */
static bool cross(struct vmpt_guest *g, u64 *dentry, u64 *mnt)
{
	u64 mount = *mnt - g->field[MOUNT_MNT], parent;

	if (!vmpt_guest_field64(g, mount, MOUNT_PARENT, &parent) || !parent || parent == mount ||
	    !vmpt_guest_field64(g, mount, MOUNT_POINT, dentry))
		return false;
	*mnt = parent + g->field[MOUNT_MNT];
	return true;
}

static bool climb(struct vmpt_guest *g, u64 dentry, u64 mnt, char *path, size_t *at)
{
	char name[NAME_MAX];
	unsigned int i;

	for (i = 0; i < PARTS_MAX; i++) {
		u64 root, parent;

		if (!vmpt_guest_field64(g, mnt, MNT_ROOT, &root) ||
		    !vmpt_guest_field64(g, dentry, DENTRY_PARENT, &parent))
			return false;
		if (dentry == root || parent == dentry) {
			if (!guest_has(g, MOUNT_MNT) || !cross(g, &dentry, &mnt))
				return true;
			continue;
		}
		if (!name_of(g, dentry, name) || !put_before(path, at, name))
			return false;
		dentry = parent;
	}
	return false;
}

bool vmpt_guest_path(struct vmpt_guest *g, u64 file, char *to, size_t room)
{
	char path[VMPT_PAGE], name[NAME_MAX];
	u64 dentry, mnt, hash;
	size_t at = sizeof(path) - 1;
	const char *deleted = "";

	path[at] = '\0';
	if (!vmpt_guest_field64(g, file, FILE_DENTRY, &dentry) ||
	    !vmpt_guest_field64(g, file, FILE_MOUNT, &mnt))
		return false;
	if (is_alone(g, dentry, mnt)) {
		if (!name_of(g, dentry, name))
			return false;
		snprintf(to, room, *name == '[' ? "anon_inode:%s" : "/%s (deleted)", name);
		return true;
	}
	if (!climb(g, dentry, mnt, path, &at))
		return false;
	if (vmpt_guest_field64(g, dentry, DENTRY_HASH, &hash) && !hash)
		deleted = " (deleted)";
	snprintf(to, room, "%s%s", path[at] ? path + at : "/", deleted);
	return true;
}
