// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record: perf's command line, and running perf. A signal is passed on as SIGINT, on which
 * perf writes what it has and ends, so nothing recorded is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/record/record.h"

bool rec_find_program(const char *program, char path[REC_PATH])
{
	const char *at = getenv("PATH");
	size_t len;
	int n;

	for (; at && *at; at += len + (at[len] == ':')) {
		len = strcspn(at, ":");
		n = snprintf(path, REC_PATH, "%.*s/%s", (int)len, at, program);
		if (n > 0 && n < REC_PATH && !access(path, X_OK))
			return true;
	}
	return false;
}

/* ---- the command line ---- */

__attribute__((format(printf, 2, 3))) static char *make(struct rec_perf *p, const char *fmt, ...)
{
	size_t used = 0, i;
	va_list args;
	int n;

	for (i = 0; i < sizeof(p->text) && p->text[i]; i += strlen(p->text + i) + 1)
		;
	used = i;
	if (used + 1 >= sizeof(p->text))
		return NULL;
	va_start(args, fmt);
	n = vsnprintf(p->text + used, sizeof(p->text) - used - 1, fmt, args);
	va_end(args);
	return n > 0 && (size_t)n < sizeof(p->text) - used - 1 ? p->text + used : NULL;
}

/* False: there are too many. */
static bool add(struct rec_perf *p, const char *word)
{
	if (!word || p->args >= REC_ARGS)
		return false;
	p->arg[p->args++] = (char *)word;
	return true;
}

/* The intel_pt event, without what the processor does not support. */
static char *pt_event(const struct recorder *r, struct rec_perf *p)
{
	const struct rec_options *o = r->o;
	char mtc[48] = "", psb[48] = "";

	if (r->has_mtc && o->has_mtc_period)
		snprintf(mtc, sizeof(mtc), ",mtc=1,mtc_period=%llu",
			 (unsigned long long)o->mtc_period);
	else if (r->has_mtc)
		snprintf(mtc, sizeof(mtc), ",mtc=1");
	if (o->has_psb_period)
		snprintf(psb, sizeof(psb), ",psb_period=%llu", (unsigned long long)o->psb_period);
	return make(p, "intel_pt/tsc=1%s%s%s%s/", mtc, r->has_cyc && !o->no_cyc ? ",cyc=1" : "",
		    o->noretcomp ? ",noretcomp=1" : "", psb);
}

int rec_perf_args(struct recorder *r, struct rec_perf *p)
{
	const struct rec_options *o = r->o;
	bool fits;
	int i;

	memset(p, 0, sizeof(*p));
	i = snprintf(p->trace, sizeof(p->trace), "%s/" CLI_FOLDER_PERF, o->out);
	fits = i > 0 && i < REC_PATH && add(p, "perf") && add(p, "record") && add(p, "-a") &&
	       add(p, "-o") && add(p, p->trace) && add(p, "-m") &&
	       add(p, make(p, "2M,%lluK", (unsigned long long)(o->aux_size >> 10))) &&
	       add(p, "--switch-events") && add(p, "-e") && add(p, pt_event(r, p));
	if (fits && r->has_tracepoints)
		fits = add(p, "-e") && add(p, "kvm:kvm_entry") && add(p, "-e") &&
		       add(p, "kvm:kvm_exit");
	if (fits && o->kcore)
		fits = add(p, "--kcore");
	if (fits && r->cli->files)
		fits = add(p, "--");
	for (i = 0; fits && i < r->cli->files; i++)
		fits = add(p, r->cli->file[i]);
	if (!fits)
		return cli_usage(r->cli, "the command has too many words: put it into a script");
	return CLI_OK;
}

/* ---- other programs ---- */

/* Start @arg, with its output to @out if that is not -1; its process id, or -1 after a message. */
static pid_t start(const struct recorder *r, char *const *arg, const sigset_t *mask, int out)
{
	pid_t pid = fork();

	if (pid < 0)
		cli_error(r->cli, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	/* perf must not record for ever if this process is killed. */
	prctl(PR_SET_PDEATHSIG, SIGINT);
	sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	execvp(arg[0], arg);
	cli_error(r->cli, "cannot run %s: %s", arg[0], strerror(errno));
	_exit(127);
}

/* Up to its end, or @size - 1 bytes. */
static void take_output(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t more = 1;

	while (n + 1 < size && more) {
		more = read(fd, text + n, size - 1 - n);
		if (more < 0 && errno != EINTR)
			break;
		n += more > 0 ? (size_t)more : 0;
	}
	text[n] = '\0';
	close(fd);
}

static void block_signals(sigset_t *set, sigset_t *old)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	size_t i;

	sigemptyset(set);
	for (i = 0; i < VMPT_ARRAY_SIZE(signals); i++)
		sigaddset(set, signals[i]);
	sigprocmask(SIG_BLOCK, set, old);
	/* A shell starts background jobs with it ignored; perf handles both. */
	signal(SIGINT, SIG_DFL);
}

int rec_run(struct recorder *r, char *const *arg, char *text, size_t size)
{
	int status = -1, sig, fd[2] = { -1, -1 };
	sigset_t set, old;
	pid_t pid, ended;

	if (text && pipe2(fd, O_CLOEXEC))
		return -1;
	block_signals(&set, &old);
	pid = start(r, arg, &old, fd[1]);
	if (text) {
		close(fd[1]);
		take_output(fd[0], text, size);
	}
	while (pid > 0) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid || (ended < 0 && errno != EINTR))
			break;
		sig = sigwaitinfo(&set, NULL);
		if (sig > 0 && sig != SIGCHLD) {
			r->stopped = true;
			kill(pid, SIGINT);
		}
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return status;
}

/* Wait for perf, and scan the VMs meanwhile. Its wait status; @stopped: a signal ended it. */
static int watch(struct recorder *r, pid_t pid, const sigset_t *set, bool *stopped)
{
	const struct timespec every = { (time_t)(r->o->every / 1000),
					(long)(r->o->every % 1000) * 1000000 };
	int status, sig;
	pid_t ended;

	for (;;) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid)
			return status;
		if (ended < 0 && errno != EINTR)
			return -1;
		sig = sigtimedwait(set, NULL, &every);
		if (sig > 0 && sig != SIGCHLD) {
			*stopped = true;
			kill(pid, SIGINT);
		} else if (sig < 0 && errno == EAGAIN) {
			rec_look(r);
		}
		cli_recorder_tick(&r->recorder);
	}
}

int rec_perf_run(struct recorder *r, struct rec_perf *p)
{
	bool stopped = false;
	sigset_t set, old;
	int status;
	pid_t pid;

	block_signals(&set, &old);
	rec_look(r);
	pid = start(r, p->arg, &old, -1);
	status = pid < 0 ? -1 : watch(r, pid, &set, &stopped);
	rec_look_last(r);
	sigprocmask(SIG_SETMASK, &old, NULL);
	r->end = json_object();
	cli_json_set(r->cli, r->end, "perf_exit",
		     WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null());
	cli_json_set(r->cli, r->end, "stopped", json_boolean(stopped));
	if (status < 0)
		return CLI_FAILED;
	/* perf kills itself with the signal that ended it, after writing everything. */
	if (stopped && (WIFSIGNALED(status) || WEXITSTATUS(status) != 127))
		return CLI_OK;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		return CLI_OK;
	if (WIFSIGNALED(status))
		cli_error(r->cli, "perf was ended by signal %d (%s)", WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		cli_error(r->cli, "perf, or its command, ended with %d", WEXITSTATUS(status));
	return status ? CLI_FAILED : CLI_OK;
}
