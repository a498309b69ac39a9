// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One truth file: its words, and the blocks that it has. A modified block is a new
 * block: it is found by its address first, then by its content.
 */
#include "truth.h"

#include <cstring>

#define BUFFER_WORDS (1u << 16)
#define PAGE	     0xfffULL

truth_file::truth_file(const std::string &path, const std::string &name_)
    : name(name_), file(fopen(path.c_str(), "we")), buffer(BUFFER_WORDS)
{
	u32 magic[2];

	failed = !file;
	memcpy(magic, TRUTH_MAGIC, sizeof(magic));
	put(magic[0]);
	put(magic[1]);
	blocks.reserve(1 << 14);
}

truth_file::~truth_file()
{
	flush();
	if (file)
		fclose(file);
	for (auto &entry : blocks) {
		struct truth_block *block = entry.second, *chain;

		for (; block; block = chain) {
			chain = block->chain;
			delete[] block->code;
			delete block;
		}
	}
}

void truth_file::write()
{
	if (!failed && fwrite(buffer.data(), 4, used, file) != used)
		failed = true;
	used = 0;
}

bool truth_file::flush()
{
	bool was = failed;

	write();
	if (!failed && fflush(file))
		failed = true;
	return !failed || was;
}

void truth_file::run(const struct truth_block *block, u32 retired)
{
	insns += retired;
	if (retired == block->count) {
		put(block->id);
	} else if (retired) {
		put(TRUTH_PART);
		put(block->id);
		put(retired);
	}
}

void truth_file::event(u64 from, u64 to)
{
	put(TRUTH_EVENT);
	put64(from);
	put64(to);
}

void truth_file::begin(u64 ip)
{
	put(TRUTH_BEGIN);
	put64(ip);
}

void truth_file::end(u64 ip)
{
	put(TRUTH_END);
	put64(ip);
}

void truth_file::state(const struct truth_state *now, u64 ip)
{
	if (has_state && last.flags == now->flags && last.ctl == now->ctl && last.cr3 == now->cr3 &&
	    last.eptp == now->eptp)
		return;
	last = *now;
	has_state = true;
	put(TRUTH_STATE);
	put(now->flags);
	put64(ip);
	put64(now->ctl);
	put64(now->cr3);
	put64(now->eptp);
}

void truth_file::modified(u64 ip)
{
	modified_pages.insert({ last.cr3, ip & ~PAGE });
}

struct truth_block *truth_file::find(u64 ip, const struct truth_code *code,
				     struct truth_block *before)
{
	struct truth_block *block = before ? before->next : nullptr;
	bool changed = false;

	if (block && block->ip == ip && truth_same(block->code, code->lo, code->hi, code->len))
		return block;
	auto found = blocks.find(ip);
	if (found == blocks.end())
		return nullptr;
	for (block = found->second; block; block = block->chain) {
		if (truth_same(block->code, code->lo, code->hi, code->len))
			break;
		if (block->cr3 == last.cr3 && block->eptp == last.eptp)
			changed = true;
	}
	if (changed)
		modified(ip);
	if (before && block)
		before->next = block;
	return block;
}

struct truth_block *truth_file::define(u64 ip, const struct truth_code *code, u32 count)
{
	struct truth_code *copy = new struct truth_code[count];
	struct truth_block *block = new struct truth_block();
	struct truth_block *&head = blocks[ip];

	memcpy(copy, code, count * sizeof(*code));
	block->ip = ip;
	block->cr3 = last.cr3;
	block->eptp = last.eptp;
	block->id = ++ids;
	block->count = count;
	block->code = copy;
	/* The newest first: it is the current one. */
	block->chain = head;
	head = block;
	write_definition(block);
	return block;
}

void truth_file::write_definition(const struct truth_block *block)
{
	std::vector<u8> bytes;
	u32 i, word, size = 0;

	for (i = 0; i < block->count; i++) {
		bytes.push_back(static_cast<u8>(block->code[i].len));
		size += block->code[i].len;
	}
	for (i = 0; i < block->count; i++) {
		u8 code[16];

		memcpy(code, &block->code[i].lo, 8);
		memcpy(code + 8, &block->code[i].hi, 8);
		bytes.insert(bytes.end(), code, code + block->code[i].len);
	}
	bytes.resize((bytes.size() + 3) / 4 * 4);
	put(TRUTH_DEFINE);
	put(block->id);
	put64(block->ip);
	put(block->count);
	put(size);
	for (i = 0; i < bytes.size(); i += 4) {
		memcpy(&word, &bytes[i], 4);
		put(word);
	}
}
