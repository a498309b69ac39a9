/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Truth files (model/truth-format.h) for one processor and one owner, the host or the guest of
 * one VMCS: blocks of instructions, found again by address and content.
 */
#ifndef VMPT_BOCHS_TRUTH_H
#define VMPT_BOCHS_TRUTH_H

#include <cstdio>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/types.h"
#include "model/truth-format.h"

/* An instruction's bytes, 0 after its end. */
struct truth_code {
	u64 lo, hi;
	u32 len;
};

static inline bool truth_same(const struct truth_code *a, u64 lo, u64 hi, u32 len)
{
	return a->lo == lo && a->hi == hi && a->len == len;
}

struct truth_state {
	u32 flags;
	u64 ctl, cr3, eptp;
};

struct truth_block {
	struct truth_block *chain; /* others at this address */
	struct truth_block *next;  /* the one that last followed it */
	u64 ip, cr3, eptp;	   /* cr3, eptp: where it was first seen */
	u32 id, count;
	const struct truth_code *code;
};

class truth_file
{
      public:
	truth_file(const std::string &path, const std::string &name);
	~truth_file();
	truth_file(const truth_file &) = delete;
	truth_file &operator=(const truth_file &) = delete;

	void run(const struct truth_block *block, u32 retired);
	void event(u64 from, u64 to);
	void begin(u64 ip);
	void end(u64 ip);
	/* Write the state, unless it is unchanged. */
	void state(const struct truth_state *state, u64 ip);
	const struct truth_state *last_state() const
	{
		return &last;
	}

	/* A block at @ip that begins with @code; NULL: none. */
	struct truth_block *find(u64 ip, const struct truth_code *code, struct truth_block *before);
	/* Make a block of these instructions; returns an existing one if there is one. */
	struct truth_block *define(u64 ip, const struct truth_code *code, u32 count);
	/* Code at @ip changed. */
	void modified(u64 ip);
	/* Write buffered data; false: a write has failed. */
	bool flush();

	const std::string name;
	/* CR3 and page of code that changed while it was recorded */
	std::set<std::pair<u64, u64>> modified_pages;
	u64 insns = 0;

      private:
	void put(u32 word)
	{
		if (used == buffer.size())
			write();
		buffer[used++] = word;
	}
	void put64(u64 v)
	{
		put(static_cast<u32>(v));
		put(static_cast<u32>(v >> 32));
	}
	void write();
	void write_definition(const struct truth_block *block);

	FILE *file;
	bool failed = false;
	std::vector<u32> buffer;
	size_t used = 0;
	u32 ids = 0;
	bool has_state = false;
	struct truth_state last = {};
	std::unordered_map<u64, struct truth_block *> blocks;
};

#endif
