// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host port: how software in the PC talks to the host. Two I/O ports, OUT only:
 *
 *	560H  dword  command
 *	564H  byte, word or dword, REP OUTS too: data, little-endian
 *
 *	command	data before it		effect
 *	1	name, NUL		a file NAME begins in the run's folder; data is its content
 *	2	content			the file ends
 *	3	name, NUL		NAME gets an image of the PC's memory (image.cc)
 *	4, 5				truth on, off (truth.cc); dword 1 before 4: only while
 *					TraceEn is 1
 *	6	dword			a mark in the run's log, with the counts of msr-count.cc
 *	7	dword			power off; the low byte is the run's status
 *	8	dword			1 NMI, 2 SMI, 3 INIT at the next instruction boundary; bits
 *					15:8: the processor
 *	9	anything		none but a reset: discards what another sender left
 *	10	6 dwords		interrupts at one instruction after the other (walk.cc):
 *					what begins a window, the first instruction, stride
 *					(0: none), flags and in bits 15:8 the processor, low
 *					and high dword of the status
 *	11	name, NUL		record the time of each byte of the trace in files
 *					NAME.times.CPU from here on (times.cc)
 *	12				and stop that
 *
 * Names have letters, digits and "-_.", no dot first, and at most 127 of them: files stay in the
 * run's folder. An error is a line "error: …" in run.log. Data for a file that cannot be made is
 * dropped. A file ends at any command, even one that cannot be made: its sender may have
 * been killed. The data before such a command went into the file, so the command has none.
 * A power off without its dword ends the run without a status, which is not success. The PC
 * executes no instruction after the power off, and Bochs exits with the run's status.
 */
#include "pc.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#define PORT_COMMAND 0x560
#define PORT_DATA    0x564
#define NAME_MAX_    127u
#define STATUS_NONE  120 /* Bochs's exit status if there is none, as vmpt-bochs's */

enum command {
	FILE_BEGIN = 1,
	FILE_END,
	DUMP_MEMORY,
	TRUTH_ON,
	TRUTH_OFF,
	MARK,
	POWER_OFF,
	PULSE,
	ANEW,
	WALK,
	TIMES_ON,
	TIMES_OFF,
};

static struct {
	FILE *file;	  /* the open file */
	bool dropped;	  /* it could not be opened */
	std::string name; /* its name */
	u64 size;	  /* its size so far */
	bool failed;	  /* a write failed */
	std::string data; /* since the last command, at most a name */
} port;

/* ---- files ---- */

static bool is_name(const std::string &name)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	/* The library writes these itself. */
	return !name.empty() && name.size() <= NAME_MAX_ && name[0] != '.' && name != "run.log" &&
	       name != "status" && name.find(".truth.") == std::string::npos &&
	       name.find(".times.") == std::string::npos &&
	       name.find_first_not_of(good) == std::string::npos;
}

/* The name on the data port; "": none, the log has the reason. */
static std::string take_name(const char *what)
{
	size_t end = port.data.find('\0');
	std::string name = end == std::string::npos ? port.data : port.data.substr(0, end);

	if (end == std::string::npos || end + 1 != port.data.size() || !is_name(name)) {
		pc_log("error: %s: no good name before it", what);
		return "";
	}
	return name;
}

static void end_file(void)
{
	if (!port.file)
		return;
	if (fclose(port.file) || port.failed)
		pc_log("error: %s: cannot be written: %s", port.name.c_str(), strerror(errno));
	else
		pc_log("file %s bytes %llu", port.name.c_str(), (unsigned long long)port.size);
	port.file = nullptr;
}

static void begin_file(void)
{
	std::string name = take_name("file");

	port.dropped = true;
	if (name.empty())
		return;
	port.name = name;
	port.size = 0;
	port.failed = false;
	port.file = fopen((std::string(pc_folder()) + "/" + name).c_str(), "we");
	port.dropped = !port.file;
	if (!port.file)
		pc_log("error: %s: cannot be made: %s", name.c_str(), strerror(errno));
}

static void data(unsigned int len, u32 value)
{
	if (port.file) {
		port.size += len;
		if (fwrite(&value, 1, len, port.file) != len)
			port.failed = true;
	} else if (!port.dropped && port.data.size() <= NAME_MAX_ + 1) {
		port.data.append(reinterpret_cast<const char *>(&value), len);
	}
}

/* ---- commands ---- */

/* The dword on the data port. Anything else is an error of @what. */
static bool number(const char *what, u32 *value)
{
	if (port.data.size() != sizeof(*value)) {
		pc_log("error: %s: no dword before it", what);
		return false;
	}
	memcpy(value, port.data.data(), sizeof(*value));
	return true;
}

static void truth(bool on)
{
	u32 how = 0;
	bool traced_only = on && !port.data.empty() && number("truth", &how) && (how & 1);

	pc_log("truth %s", !on ? "off" : traced_only ? "on, while traced" : "on");
	for (unsigned int cpu = 0; cpu < VMPT_BOCHS_CPUS; cpu++) {
		if (!pc_of(cpu))
			continue;
		if (on)
			pc_truth_start(pc_of(cpu), traced_only);
		else
			pc_truth_stop(pc_of(cpu));
	}
}

static void times(bool on)
{
	std::string name = on ? take_name("times") : "";

	if (on && name.empty())
		return;
	pc_log("times %s", on ? name.c_str() : "off");
	for (struct pc_cpu *pc : pc_cpus) {
		if (!pc)
			continue;
		if (on)
			pc_times_start(pc, name.c_str());
		else
			pc_times_stop(pc);
	}
}

static void mark(void)
{
	u32 value;

	if (!number("mark", &value))
		return;
	pc_log("mark %u", value);
	for (struct pc_cpu *pc : pc_cpus)
		if (pc)
			pc_msr_count_report(pc);
}

static void pulse(void)
{
	struct pc_cpu *pc;
	u32 what;

	if (!number("pulse", &what))
		return;
	pc = (what >> 8) < VMPT_BOCHS_CPUS ? pc_of(what >> 8) : nullptr;
	if (!pc) {
		pc_log("error: pulse: no processor %u", what >> 8);
		return;
	}
	switch (what & 0xff) {
	case 1:
		pc->cpu->deliver_NMI();
		break;
	case 2:
		pc->cpu->deliver_SMI();
		break;
	case 3:
		pc->cpu->deliver_INIT();
		break;
	default:
		pc_log("error: pulse: %u is none", what & 0xff);
	}
}

static void walk(void)
{
	u32 words[PC_WALK_WORDS];
	struct pc_cpu *pc;

	if (port.data.size() != sizeof(words)) {
		pc_log("error: walk: not %u dwords before it", PC_WALK_WORDS);
		return;
	}
	memcpy(words, port.data.data(), sizeof(words));
	pc = pc_of(words[3] >> 8 & (VMPT_BOCHS_CPUS - 1));
	if (pc)
		pc_walk_set(pc, words);
	else
		pc_log("error: walk: no such processor");
}

static void power_off(void)
{
	u32 value;
	u8 status = STATUS_NONE;

	if (number("power off", &value)) {
		status = (u8)value;
		pc_log("status %u", status);
		pc_status(std::to_string(status).c_str());
	} else {
		pc_status("none");
	}
	vmpt_environment_exit();
	/* The serial line's file, too. */
	fflush(nullptr);
	bx_exit(status);
}

/* End a file that another command interrupted. */
static void leave_file(u32 what)
{
	if (port.file) {
		pc_log("error: %s: command %u comes in it", port.name.c_str(), what);
		end_file();
	}
	port.dropped = false;
}

static void command(u32 what)
{
	std::string name;

	if (what != FILE_END)
		leave_file(what);
	switch (what) {
	case FILE_BEGIN:
		begin_file();
		break;
	case FILE_END:
		if (!port.file && !port.dropped)
			pc_log("error: a file ends that did not begin");
		end_file();
		port.dropped = false;
		break;
	case DUMP_MEMORY:
		name = take_name("memory image");
		if (!name.empty())
			pc_image(name.c_str());
		break;
	case TRUTH_ON:
	case TRUTH_OFF:
		truth(what == TRUTH_ON);
		break;
	case MARK:
		mark();
		break;
	case POWER_OFF:
		power_off();
		break;
	case PULSE:
		pulse();
		break;
	case ANEW:
		break;
	case WALK:
		walk();
		break;
	case TIMES_ON:
	case TIMES_OFF:
		times(what == TIMES_ON);
		break;
	default:
		pc_log("error: command %u is none", what);
	}
	port.data.clear();
}

void vmpt_outp(Bit16u port_number, unsigned int len, Bit32u value)
{
	if (port_number == PORT_DATA)
		data(len, value);
	else if (port_number == PORT_COMMAND && len == 4)
		command(value);
}

void pc_port_end(void)
{
	if (port.file)
		pc_log("error: %s: the run ends in it", port.name.c_str());
	end_file();
}
