// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The host's kernel and processes, from the records of a perf.data; see vmpt-host.h. */
#include "decoder/names/host.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "decoder/trace/trace.h"

/* The kernel's and perf's headers may be older than the file. */
#define MISC_MMAP_BUILD_ID (1u << 14) /* of an MMAP2 */
#define MISC_BUILD_ID_SIZE (1u << 15) /* of perf's record of a build id */
#define BUILD_ID_MAX	   20

enum {
	/* MMAP, MMAP2: u32 pid, tid */
	MMAP_ADDR = 16,
	MMAP_NAME = 40, /* u64 addr, len, pgoff */
	MMAP2_BUILD_ID = 40,
	MMAP2_PROT = 64,
	MMAP2_NAME = 72,
	/* KSYMBOL: u64 addr, u32 len, u16 type, flags, name */
	KSYMBOL_LEN = 16,
	KSYMBOL_TYPE = 20,
	KSYMBOL_FLAGS = 22,
	KSYMBOL_NAME = 24,
	/* BUILD_ID: s32 pid, u8 id[20], size, 3 bytes, name */
	ID_BYTES = 12,
	ID_SIZE = 32,
	ID_NAME = 36,
};

#define KERNEL_NAME "[kernel.kallsyms]"

/* A record that matters, to be taken by time. */
struct place {
	u64 time;
	size_t at; /* in .bytes */
	u32 size;
};

struct reading {
	struct vmpt_host *h;
	const struct vmpt_trace_info *info;
	struct place *place;
	size_t places;
	u8 *bytes; /* copies: records may be of a compressed part */
	size_t used, room;
	struct vmpt_hash process_of; /* by pid: the last one */
	u32 *first;		     /* by process: where the last process of that pid is */
};

static bool by_id(const struct host_file *f, const char *path, size_t n)
{
	return strlen(f->path) == n && !memcmp(f->path, path, n);
}

/* The file @path of @n bytes, which is added. 0 or -VMPT_E_NOMEM. */
static int find_file(struct vmpt_host *h, const char *path, size_t n, u32 *found)
{
	const u64 hash = vmpt_mix64(vmpt_fnv1a(VMPT_FNV1A, path, n));

	*found = vmpt_hash_find(&h->file_of, hash, i, by_id(&h->file[i], path, n));
	if (*found != VMPT_HASH_NONE)
		return 0;
	*found = (u32)h->files;
	if (vmpt_grow(&h->file, h->files))
		return -VMPT_E_NOMEM;
	h->file[h->files] = (struct host_file){ .path = strndup(path, n) };
	if (!h->file[h->files].path)
		return -VMPT_E_NOMEM;
	h->files++;
	return vmpt_hash_add(&h->file_of, hash, *found);
}

static void set_id(struct host_file *f, const u8 *id, u8 size)
{
	f->build_id_size = size < BUILD_ID_MAX ? size : BUILD_ID_MAX;
	memcpy(f->build_id, id, f->build_id_size);
}

/* A text that ends in the record, from @at on; its length, 0: none. */
static size_t text_at(const u8 *rec, u32 size, u32 at)
{
	const u8 *end = at < size ? memchr(rec + at, 0, size - at) : NULL;

	return end ? (size_t)(end - (rec + at)) : 0;
}

/* ---- processes ---- */

static int new_process(struct reading *r, int pid, u64 from, u32 *added)
{
	struct vmpt_host *h = r->h;
	const u64 hash = vmpt_mix64((u64)pid);
	u32 last = vmpt_hash_find(&r->process_of, hash, i,
				  (int)h->process[i].process.task.tgid == pid);

	if (vmpt_grow(&h->process, h->processes) || vmpt_grow(&r->first, h->processes))
		return -VMPT_E_NOMEM;
	*added = (u32)h->processes++;
	r->first[*added] = *added;
	h->process[*added] = (struct host_process){
		.process = { .task = { .tgid = (u32)pid, .pid = (u32)pid },
			     .from = from,
			     .to = ~0ULL },
		.base = HOST_NONE,
	};
	if (last == VMPT_HASH_NONE)
		return vmpt_hash_add(&r->process_of, hash, *added);
	if (h->process[r->first[last]].process.to == ~0ULL)
		h->process[r->first[last]].process.to = from;
	r->first[last] = *added;
	return 0;
}

/* The process @pid as it is now; it is added. 0 or -VMPT_E_NOMEM. */
static int now(struct reading *r, int pid, u32 *found)
{
	u32 i = vmpt_hash_find(&r->process_of, vmpt_mix64((u64)pid), k,
			       (int)r->h->process[k].process.task.tgid == pid);

	if (i == VMPT_HASH_NONE)
		return new_process(r, pid, 0, found);
	*found = r->first[i];
	return 0;
}

static void set_comm(struct host_process *p, const u8 *text, size_t n)
{
	const size_t room = sizeof(p->process.task.comm) - 1;

	n = n < room ? n : room;
	memcpy(p->process.task.comm, text, n);
	p->process.task.comm[n] = '\0';
}

/* u32 pid, tid, comm: of an exec the process has other memory from now on. */
static int take_comm(struct reading *r, const u8 *rec, u32 size, u64 tsc)
{
	const int pid = (int)vmpt_load32(rec + 8), tid = (int)vmpt_load32(rec + 12);
	struct host_process *p;
	u32 i;
	int ret = now(r, pid, &i);

	if (ret || pid != tid)
		return ret;
	p = &r->h->process[i];
	if (vmpt_load16(rec + 4) & PERF_RECORD_MISC_COMM_EXEC && (p->maps || p->inherited)) {
		const u32 parent = p->process.task.parent;

		ret = new_process(r, pid, tsc, &i);
		if (ret)
			return ret;
		p = &r->h->process[i];
		p->process.task.parent = parent;
	}
	set_comm(p, rec + 16, text_at(rec, size, 16));
	return 0;
}

/* u32 pid, ppid, tid, ptid: a new process has its parent's memory. */
static int take_fork(struct reading *r, const u8 *rec, u64 tsc)
{
	const int pid = (int)vmpt_load32(rec + 8), parent = (int)vmpt_load32(rec + 12);
	struct host_process *p, *from;
	u32 base, i;
	int ret;

	if (pid == parent)
		return 0;
	ret = now(r, parent, &base);
	if (!ret)
		ret = new_process(r, pid, tsc, &i);
	if (ret)
		return ret;
	p = &r->h->process[i];
	from = &r->h->process[base];
	p->process.task.parent = (u32)parent;
	memcpy(p->process.task.comm, from->process.task.comm, sizeof(p->process.task.comm));
	p->base = base;
	p->inherited = from->maps;
	/* Of one that has nothing of its own yet: that one's. */
	if (!from->maps && from->base != HOST_NONE) {
		p->base = from->base;
		p->inherited = from->inherited;
	}
	return 0;
}

static int take_exit(struct reading *r, const u8 *rec, u64 tsc)
{
	const int pid = (int)vmpt_load32(rec + 8), tid = (int)vmpt_load32(rec + 16);
	u32 i;
	int ret = pid == tid ? now(r, pid, &i) : 0;

	if (!ret && pid == tid && tsc && r->h->process[i].process.to == ~0ULL)
		r->h->process[i].process.to = tsc;
	return ret;
}

/* ---- maps ---- */

/* "[kernel.kallsyms]_text": from there on, and where it is; or a module. */
static int take_kernel(struct reading *r, const u8 *rec, u32 size, struct host_map *m)
{
	const char *name = (const char *)rec + MMAP_NAME;
	const size_t n = text_at(rec, size, MMAP_NAME);
	struct vmpt_host *h = r->h;
	int ret;

	if (!n)
		return 0;
	if (n >= strlen(KERNEL_NAME) && !memcmp(name, KERNEL_NAME, strlen(KERNEL_NAME))) {
		/* Older ones have _text as pgoff and the whole kernel as map. */
		h->text = m->offset ? m->offset : m->start;
		return 0;
	}
	ret = find_file(h, name, n, &m->file);
	if (ret || vmpt_grow(&h->kernel.map, h->kernel.maps))
		return -VMPT_E_NOMEM;
	m->offset = 0;
	h->kernel.map[h->kernel.maps++] = *m;
	return 0;
}

static int take_map(struct reading *r, const u8 *rec, u32 size, u32 type)
{
	const u32 misc = vmpt_load16(rec + 4), mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const u32 at = type == PERF_RECORD_MMAP2 ? MMAP2_NAME : MMAP_NAME;
	const int pid = (int)vmpt_load32(rec + 8);
	const size_t n = text_at(rec, size, at);
	struct host_map m = { .start = vmpt_load64(rec + MMAP_ADDR),
			      .offset = vmpt_load64(rec + MMAP_ADDR + 16) };
	struct host_process *p;
	u32 i;
	int ret;

	if (!n || mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER ||
	    __builtin_add_overflow(m.start, vmpt_load64(rec + MMAP_ADDR + 8), &m.end) ||
	    m.start == m.end)
		return 0;
	if (mode == PERF_RECORD_MISC_KERNEL || pid == -1)
		return type == PERF_RECORD_MMAP ? take_kernel(r, rec, size, &m) : 0;
	if (type == PERF_RECORD_MMAP ? misc & PERF_RECORD_MISC_MMAP_DATA
				     : !(vmpt_load32(rec + MMAP2_PROT) & PROT_EXEC))
		return 0;
	ret = find_file(r->h, (const char *)rec + at, n, &m.file);
	if (!ret)
		ret = now(r, pid, &i);
	if (ret)
		return ret;
	if (type == PERF_RECORD_MMAP2 && misc & MISC_MMAP_BUILD_ID)
		set_id(&r->h->file[m.file], rec + MMAP2_BUILD_ID + 4, rec[MMAP2_BUILD_ID]);
	p = &r->h->process[i];
	if (vmpt_grow(&p->map, p->maps))
		return -VMPT_E_NOMEM;
	p->map[p->maps++] = m;
	return 0;
}

/* ---- code that the kernel made ---- */

static int take_symbol(struct reading *r, const u8 *rec, u32 size, u64 tsc)
{
	const u64 start = vmpt_load64(rec + 8), end = start + vmpt_load32(rec + KSYMBOL_LEN);
	const size_t n = text_at(rec, size, KSYMBOL_NAME);
	struct vmpt_host *h = r->h;
	size_t i;

	if (end <= start || !n)
		return 0;
	if (vmpt_load16(rec + KSYMBOL_FLAGS) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) {
		/* Mostly of late: it is not searched far. */
		for (i = h->symbols; i && h->symbols - i < 4096; i--)
			if (h->symbol[i - 1].start == start && h->symbol[i - 1].to == ~0ULL) {
				h->symbol[i - 1].to = tsc ? tsc : ~0ULL;
				break;
			}
		return 0;
	}
	if (vmpt_grow(&h->symbol, h->symbols))
		return -VMPT_E_NOMEM;
	h->symbol[h->symbols] = (struct host_symbol){
		.start = start,
		.end = end,
		.from = tsc,
		.to = ~0ULL,
		.name = strndup((const char *)rec + KSYMBOL_NAME, n),
		.bpf = vmpt_load16(rec + KSYMBOL_TYPE) == PERF_RECORD_KSYMBOL_TYPE_BPF,
	};
	return h->symbol[h->symbols].name ? (h->symbols++, 0) : -VMPT_E_NOMEM;
}

/* ---- records ---- */

static int take_build_id(struct vmpt_host *h, const u8 *rec, u32 size)
{
	const size_t n = size > ID_NAME ? text_at(rec, size, ID_NAME) : 0;
	const u32 misc = vmpt_load16(rec + 4), mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const char *name = (const char *)rec + ID_NAME;
	const u8 id_size = n && misc & MISC_BUILD_ID_SIZE ? rec[ID_SIZE] : BUILD_ID_MAX;
	u32 file;
	int ret;

	if (!n || mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (n == strlen(KERNEL_NAME) && !memcmp(name, KERNEL_NAME, n)) {
		h->build_id_size = id_size < BUILD_ID_MAX ? id_size : BUILD_ID_MAX;
		memcpy(h->build_id, rec + ID_BYTES, h->build_id_size);
		return 0;
	}
	ret = find_file(h, name, n, &file);
	if (!ret && !h->file[file].build_id_size)
		set_id(&h->file[file], rec + ID_BYTES, id_size);
	return ret;
}

static const u32 least[] = {
	[PERF_RECORD_MMAP] = MMAP_NAME,	  [PERF_RECORD_COMM] = 16,
	[PERF_RECORD_EXIT] = 32,	  [PERF_RECORD_FORK] = 32,
	[PERF_RECORD_MMAP2] = MMAP2_NAME, [PERF_RECORD_KSYMBOL] = KSYMBOL_NAME,
};

/* Records are of several CPUs' buffers: they are sorted first. */
static int keep_record(void *opaque, const struct vmpt_perf_record *record)
{
	const u32 type = vmpt_load32(record->rec);
	struct reading *r = opaque;

	if (record->build_id)
		return take_build_id(r->h, record->rec, record->size);
	if (type >= VMPT_ARRAY_SIZE(least) || !least[type] || record->size < least[type])
		return 0;
	if (vmpt_grow(&r->place, r->places) ||
	    vmpt_reserve(&r->bytes, &r->room, r->used + record->size))
		return -VMPT_E_NOMEM;
	r->place[r->places++] = (struct place){ record->time, r->used, record->size };
	memcpy(r->bytes + r->used, record->rec, record->size);
	r->used += record->size;
	return 0;
}

static int by_time(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int take_record(struct reading *r, const struct place *p)
{
	const u64 tsc =
		p->time && r->info->has_time_conv ? vmpt_perf_time_to_tsc(r->info, p->time) : 0;
	const u8 *rec = r->bytes + p->at;
	const u32 type = vmpt_load32(rec);

	switch (type) {
	case PERF_RECORD_COMM:
		return take_comm(r, rec, p->size, tsc);
	case PERF_RECORD_FORK:
		return take_fork(r, rec, tsc);
	case PERF_RECORD_EXIT:
		return take_exit(r, rec, tsc);
	case PERF_RECORD_KSYMBOL:
		return take_symbol(r, rec, p->size, tsc);
	default:
		return take_map(r, rec, p->size, type);
	}
}

static int by_pid(const void *x, const void *y)
{
	const struct host_process *a = x, *b = y;

	if (a->process.task.tgid != b->process.task.tgid)
		return a->process.task.tgid < b->process.task.tgid ? -1 : 1;
	return a->process.from < b->process.from ? -1 : a->process.from > b->process.from;
}

static int by_address(const void *x, const void *y)
{
	const struct host_symbol *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* Processes are inherited from by their place: settle that before they are sorted. */
static int sort_all(struct vmpt_host *h)
{
	u32 *to = calloc(h->processes + 1, sizeof(*to));
	size_t i;

	if (!to)
		return -VMPT_E_NOMEM;
	/* .final is not used yet: it keeps the old place. */
	for (i = 0; i < h->processes; i++)
		h->process[i].finals = i;
	if (h->processes)
		qsort(h->process, h->processes, sizeof(*h->process), by_pid);
	for (i = 0; i < h->processes; i++)
		to[h->process[i].finals] = (u32)i;
	for (i = 0; i < h->processes; i++) {
		h->process[i].finals = 0;
		if (h->process[i].base != HOST_NONE)
			h->process[i].base = to[h->process[i].base];
	}
	free(to);
	if (h->symbols)
		qsort(h->symbol, h->symbols, sizeof(*h->symbol), by_address);
	return 0;
}

static int read_records(struct vmpt_host *h, struct vmpt_trace *trace)
{
	struct vmpt_trace_info info;
	struct reading r = { .h = h, .info = &trace->info };
	int ret = vmpt_perf_read_kernel(trace->maps[0].data, trace->maps[0].size, keep_record, &r,
					&info, NULL);
	size_t i;

	/* What is damaged is left out. */
	if (ret != -VMPT_E_NOMEM)
		ret = 0;
	if (r.places)
		qsort(r.place, r.places, sizeof(*r.place), by_time);
	for (i = 0; i < r.places && !ret; i++)
		ret = take_record(&r, &r.place[i]);
	free(r.place);
	free(r.bytes);
	free(r.first);
	vmpt_hash_free(&r.process_of);
	return ret ? ret : sort_all(h);
}

int vmpt_host_open_abi(struct vmpt_host **host, struct vmpt_trace *trace, u64 abi)
{
	struct vmpt_host *h;
	int ret = 0;

	if (abi != VMPT_HOST_ABI)
		return -VMPT_E_VERSION;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -VMPT_E_NOMEM;
	h->kernel.base = HOST_NONE;
	if (trace->info.format == VMPT_TRACE_PERF && trace->map_count)
		ret = read_records(h, trace);
	if (!ret)
		ret = vmpt_host_read_switches(h, trace);
	if (ret)
		vmpt_host_close(h);
	else
		*host = h;
	return ret;
}

void vmpt_host_close(struct vmpt_host *h)
{
	if (!h)
		return;
	while (h->processes) {
		struct host_process *p = &h->process[--h->processes];

		free(p->map);
		free(p->final);
	}
	while (h->files)
		free(h->file[--h->files].path);
	while (h->symbols)
		free(h->symbol[--h->symbols].name);
	free(h->kernel.map);
	free(h->kernel.final);
	free(h->process);
	free(h->file);
	free(h->symbol);
	free(h->run);
	free(h->thread);
	free(h->vote);
	vmpt_hash_free(&h->file_of);
	vmpt_hash_free(&h->vote_of);
	free(h->cr3);
	vmpt_hash_free(&h->cr3_of);
	free(h);
}

/* ---- what is known ---- */

void vmpt_host_kernel(const struct vmpt_host *h, struct vmpt_host_kernel *k)
{
	*k = (struct vmpt_host_kernel){
		.text = h->text,
		.build_id = h->build_id_size ? h->build_id : NULL,
		.build_id_size = h->build_id_size,
		.processes = (u32)h->processes,
		.symbols = (u32)h->symbols,
	};
}

const struct vmpt_host_process *vmpt_host_process(const struct vmpt_host *h, u32 n)
{
	return n < h->processes ? &h->process[n].process : NULL;
}

const struct vmpt_host_process *vmpt_host_process_at(const struct vmpt_host *h, int pid, u64 tsc)
{
	const struct host_process *p = h->process;
	size_t next = vmpt_search(
		i, 0, h->processes,
		p[i].process.task.tgid < (u32)pid ||
			(p[i].process.task.tgid == (u32)pid && p[i].process.from <= tsc));

	if (pid <= 0 || !next || p[next - 1].process.task.tgid != (u32)pid)
		return NULL;
	return &p[next - 1].process;
}

bool vmpt_host_symbol_at(const struct vmpt_host *h, u64 address, u64 tsc,
			 struct vmpt_guest_symbol *symbol)
{
	const struct host_symbol *s = h->symbol, *best = NULL;
	size_t i = vmpt_search(k, 0, h->symbols, s[k].start <= address), steps;

	/* Several have been at one place, one after the other. */
	for (steps = 0; i && steps < 64; i--, steps++) {
		if (s[i - 1].end <= address)
			continue;
		if (!best)
			best = &s[i - 1];
		if (tsc == ~0ULL || (s[i - 1].from <= tsc && tsc < s[i - 1].to)) {
			best = &s[i - 1];
			break;
		}
	}
	if (!best || (tsc != ~0ULL && tsc >= best->to))
		return false;
	*symbol = (struct vmpt_guest_symbol){ .name = best->name,
					      .module = best->bpf ? "bpf" : NULL,
					      .address = best->start,
					      .size = best->end - best->start,
					      .type = 't' };
	return true;
}
