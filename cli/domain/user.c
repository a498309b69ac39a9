// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * As root, libvirt's QEMU driver looks up the user that it was built to run guests as,
 * libvirt-qemu in Debian, before it reads in qemu.conf that root is wanted, and does not
 * start if there is none. Only the package of its daemon creates that user. Embedded, there
 * is no daemon: libvirt's lookup is intercepted here, and finds root instead.
 */
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define WANTED "libvirt-qemu"

typedef int passwd_by_name(const char *, struct passwd *, char *, size_t, struct passwd **);
typedef int group_by_name(const char *, struct group *, char *, size_t, struct group **);

int getpwnam_r(const char *name, struct passwd *pwd, char *buf, size_t len, struct passwd **result)
{
	passwd_by_name *next = (passwd_by_name *)dlsym(RTLD_NEXT, "getpwnam_r");
	int err = next(name, pwd, buf, len, result);

	if (!*result && !strcmp(name, WANTED) && !geteuid())
		err = getpwuid_r(0, pwd, buf, len, result);
	return err;
}

int getgrnam_r(const char *name, struct group *grp, char *buf, size_t len, struct group **result)
{
	group_by_name *next = (group_by_name *)dlsym(RTLD_NEXT, "getgrnam_r");
	int err = next(name, grp, buf, len, result);

	if (!*result && !strcmp(name, WANTED) && !geteuid())
		err = getgrgid_r(0, grp, buf, len, result);
	return err;
}
