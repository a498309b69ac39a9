/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the actions of vmpt domain: their options, the connection to
 * libvirt, the XML of a domain, and domains that one command starts and waits for.
 */
#ifndef VMPT_CLI_DOMAIN_H
#define VMPT_CLI_DOMAIN_H

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <libxml/tree.h>
#include <pthread.h>

#include "cli/base/base.h"

/* The options of all actions; each table has those of its action. */
struct domain_options {
	const char *connect; /* NULL: embedded */
	const char *root;    /* embedded: NULL: the user's state folder */

	struct cli_strings set;	    /* [DOMAIN:]NAME=VALUE */
	bool set_used[CLI_STRINGS]; /* a file has its placeholder */

	bool console, force, perf_data, no_code, no_tasks;
	u64 seconds;
	const char *output, *plugin, *cpus, *host, *isa;
};

/* ---- connect.c ---- */

struct domain_link {
	virConnectPtr conn;
	bool embedded;
	char *root; /* embedded: libvirt's folder */
	char *uri;  /* as libvirt calls it */
	uid_t uid;  /* embedded: of QEMU, if this is root and qemu.conf names another user … */
	gid_t gid;  /* … else 0 */
	pthread_t events;
	bool events_run, events_end;
};

/*
 * Connect as the options say, with libvirt's events handled in their own thread.
 * Embedded, this forks: the caller continues in the child (guard.c).
 * 0, or an exit code after a message.
 */
int domain_connect(struct cli *cli, struct domain_link *link);
void domain_disconnect(struct domain_link *link);
/* Print libvirt's last error of this thread about @who, and what to do. CLI_FAILED. */
int domain_error(const struct cli *cli, const char *who, const char *what);
/* The same for a saved error. */
int domain_error_of(const struct cli *cli, const virError *err, const char *who, const char *what);
/* A document with the command and the connection. */
json_t *domain_document(struct cli *cli, const struct domain_link *link);

/* ---- guard.c ---- */

/*
 * Continue in a child. This process reaps its orphans (a QEMU that libvirt started) as soon as
 * they end, and stops them when the child is gone. Returns 0 only in the child, or an exit code
 * after a message in this process.
 */
int domain_guard(const struct cli *cli);

/*
 * End the QEMUs that a killed command left, of the embedded libvirt with folder @root, with a
 * warning for each. Before libvirt is opened; not while another command uses @root.
 */
void domain_end_left(const struct cli *cli, const char *root);

/* ---- xml.c ---- */

/* A domain's XML from file @path. NULL after a message. */
xmlDoc *domain_xml_read(const struct cli *cli, const char *path);
/* The same from libvirt's text. */
xmlDoc *domain_xml_parse(const struct cli *cli, const char *who, const char *text);
/* As text, which the caller frees. NULL after a message. */
char *domain_xml_text(const struct cli *cli, xmlDoc *doc);
/*
 * Put values in place of @NAME@ and @NAME=DEFAULT@ everywhere but in comments: those of --set,
 * and @name for @NAME@ itself. 0, or an exit code after a message that names what is not set.
 */
int domain_xml_fill(const struct cli *cli, xmlDoc *doc, const char *path, const char *name);
/* After all files: check that each --set was used. 0, or an exit code after a message. */
int domain_xml_unused(const struct cli *cli);
/* The text of the element at @path below <domain>, "devices/emulator"; the caller frees it. */
char *domain_xml_value(xmlDoc *doc, const char *path);

/* ---- plugin.c ---- */

/* The plugin's options NAME=VALUE, not quoted. */
struct domain_plugin {
	const char *file; /* NULL: that of the XML, else ours */
	const char *option[10];
	size_t options;
};

/*
 * Load the plugin with these options in place of those of the same names. 0, or an exit code
 * after a message.
 */
int domain_xml_plugin(const struct cli *cli, xmlDoc *doc, const char *who,
		      const struct domain_plugin *plugin);

/* ---- qemu.c ---- */

/*
 * The path of a QEMU that fits the plugin, installed or fetched earlier; valid to the end of the
 * program. NULL, usually without a message: there is none.
 */
const char *domain_qemu_path(const struct cli *cli);

/* ---- run.c ---- */

struct domain {
	char *name;
	char shown[CLI_WHO]; /* the name, safe to show */
	xmlDoc *doc;
	virDomainPtr stored; /* as libvirt knows it by name, or NULL */
	virDomainPtr ptr;    /* once started */
	off_t log_from;	     /* where in its log our run begins */
	bool ended;
	int how; /* enum virDomainEventStoppedDetailType */
};

struct domain_run {
	struct cli *cli;
	struct domain_link *link;
	struct domain *domain;
	size_t domains;
	bool edited;			/* start from the XML, also of stored ones */
	struct domain_console *console; /* leaving it ends the wait; or NULL */
	int callback;			/* libvirt's number of ours */
	bool lost;			/* the connection */
	void (*tick)(struct domain_run *run,
		     double seconds); /* called twice per second of the wait; or NULL */
	void *tick_arg;
	pthread_mutex_t lock; /* of what libvirt's thread writes: ended, how, lost */
};

/*
 * The domains of the command line: NAME, FILE.xml or NAME=FILE.xml. 0, or an exit code after a
 * message.
 */
int domain_run_load(struct domain_run *run, struct cli *cli, struct domain_link *link);
/* Create all. @flags: of virDomainCreateXML(), VIR_DOMAIN_START_PAUSED for one. */
int domain_run_create(struct domain_run *run, unsigned int flags);
/* The flags for paused domains that always end with the connection. */
unsigned int domain_run_mortal(const struct domain_run *run);
/* Let all run that were created paused. */
int domain_run_resume(struct domain_run *run);
/* Wait for the end of all, of @seconds if not 0, or for a signal. 0, or an exit code. */
int domain_run_wait(struct domain_run *run, u64 seconds);
/* How many of them have not ended. */
size_t domain_run_alive(struct domain_run *run);
/* Stop those that did not end. */
int domain_run_stop(struct domain_run *run);
void domain_run_free(struct domain_run *run);
/* How it ended, for people. */
const char *domain_end_text(const struct domain *domain);
/* Report each end that is an error. 0, or CLI_FAILED. */
int domain_run_ends(const struct domain_run *run);

/* ---- log.c ---- */

/* Before @d is created. */
void domain_log_start(const struct domain_link *link, struct domain *d);
/* Print where it is. */
void domain_log_tell(const struct domain_link *link, const struct domain *d);
/* Warn of what the plugin lost. Whether there was anything. */
bool domain_log_losses(const struct cli *cli, const struct domain_link *link,
		       const struct domain *d);

/* ---- wait.c ---- */

/*
 * From now on SIGINT, SIGTERM and SIGHUP set a flag and wake domain_wait(); another one more than a
 * second later ends the process. Called before domain_connect(), so that none is missed
 * while libvirt starts. 0, or an exit code after a message.
 */
int domain_catch_signals(const struct cli *cli);
/* The signal that came, or 0. */
int domain_signal(void);
/* Sleep until domain_wake() or a signal, at most @ms, < 0: forever. */
void domain_wait(int ms);
/* From any thread. */
void domain_wake(void);

/* ---- console.c ---- */

struct domain_console;

/* Connect the terminal to the serial console of @ptr. NULL after a message. */
struct domain_console *domain_console_open(struct cli *cli, struct domain_link *link,
					   virDomainPtr ptr);
enum domain_console_state {
	DOMAIN_CONSOLE_OPEN,
	DOMAIN_CONSOLE_LEFT, /* by the user, with ^] */
	DOMAIN_CONSOLE_OVER, /* its domain closed it */
};

/* A change of it wakes domain_wait(). */
enum domain_console_state domain_console_state(struct domain_console *console);
/* Restore the terminal. NULL is fine. */
void domain_console_close(struct domain_console *console);

/* ---- the actions ---- */

int domain_list(struct cli *cli);
int domain_start(struct cli *cli);
int domain_stop(struct cli *cli);
int domain_console_run(struct cli *cli);
int domain_trace(struct cli *cli);
int domain_qemu(struct cli *cli);

#endif
