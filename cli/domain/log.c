// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages of QEMU and its plugin: libvirt appends them to a file per domain.
 * Only what was added since this command started the domain is read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/domain/domain.h"

/* Its path with the known libvirt drivers; NULL: no memory. */
static char *log_path(const struct domain_link *link, const char *name)
{
	char *path = NULL;
	int n;

	if (link->root)
		n = asprintf(&path, "%s/log/qemu/%s.log", link->root, name);
	else
		n = asprintf(&path, "/var/log/libvirt/qemu/%s.log", name);
	return n < 0 ? NULL : path;
}

void domain_log_start(const struct domain_link *link, struct domain *d)
{
	char *path = log_path(link, d->name);
	struct stat st;

	d->log_from = path && !stat(path, &st) ? st.st_size : 0;
	free(path);
}

void domain_log_tell(const struct domain_link *link, const struct domain *d)
{
	char *path = log_path(link, d->name), shown[4096];

	if (path && cli_safe_text(path, shown, sizeof(shown), sizeof(shown)))
		fprintf(stderr, "  QEMU's messages: %s\n", shown);
	free(path);
}

bool domain_log_losses(const struct cli *cli, const struct domain_link *link,
		       const struct domain *d)
{
	char *path = log_path(link, d->name), *line = NULL;
	FILE *log = path ? fopen(path, "re") : NULL;
	bool lost = false;
	size_t room = 0;

	/* Ignore one that is unreadable, or of an unknown driver. */
	if (log && !fseeko(log, d->log_from, SEEK_SET))
		while (getline(&line, &room, log) > 0) {
			if (strncmp(line, "vmpt: ", 6) || !strstr(line, "; lost "))
				continue;
			lost = true;
			cli_warn(cli, "%s: %.*s", d->shown, (int)strcspn(line + 6, "\n"), line + 6);
		}
	if (log)
		fclose(log);
	free(line);
	free(path);
	return lost;
}
