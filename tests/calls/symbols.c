// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls/symbols.h"
#include "util/array.h"

#define UPPER_HALF (1ULL << 63)

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static u8 role_of(const char *name)
{
	if (!strcmp(name, "__switch_to_asm"))
		return VMPT_ROLE_SWITCH;
	/* Retpolines, and what kernels jump to in place of a RET. */
	if (!strncmp(name, "__x86_indirect_", 15) || strstr(name, "_return_thunk"))
		return VMPT_ROLE_THUNK;
	return VMPT_ROLE_PLAIN;
}

static bool add(struct symbols *s, u64 at, const char *name)
{
	if (vmpt_grow(&s->list, s->count))
		return false;
	s->list[s->count++] = (struct symbol){
		.at = at, .start = at, .name = strdup(name), .role = role_of(name)
	};
	return true;
}

/* A .cold part belongs to the nearest function of that name: static ones may share it. */
static void join_cold(struct symbols *s)
{
	for (size_t i = 0; i < s->count; i++) {
		char *cold = strstr(s->list[i].name, ".cold");
		size_t n;

		if (!cold)
			continue;
		n = (size_t)(cold - s->list[i].name);
		for (size_t j = i; j-- > 0;)
			if (strlen(s->list[j].name) == n &&
			    !strncmp(s->list[j].name, s->list[i].name, n)) {
				s->list[i].start = s->list[j].at;
				break;
			}
	}
}

bool symbols_open(struct symbols *s, const char *path)
{
	unsigned long long at;
	char line[512], name[256], type;
	FILE *file = fopen(path, "r");

	*s = (struct symbols){ 0 };
	if (!file) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %c %255s", &at, &type, name) != 3 || at < UPPER_HALF)
			continue;
		if (strchr("tTwW", type) && !add(s, at, name))
			break;
	}
	fclose(file);
	if (s->count)
		qsort(s->list, s->count, sizeof(*s->list), by_address);
	join_cold(s);
	return true;
}

void symbols_close(struct symbols *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->list[i].name);
	free(s->list);
}

const struct symbol *symbols_find(const struct symbols *s, u64 ip)
{
	size_t low = 0, high = s->count;

	if (ip < UPPER_HALF)
		return NULL;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->list[mid].at <= ip)
			low = mid + 1;
		else
			high = mid;
	}
	/* Of several at one address the first. */
	while (low > 1 && s->list[low - 2].at == s->list[low - 1].at)
		low--;
	/* After the last one is what is no part of the kernel's text. */
	return low && low < s->count ? &s->list[low - 1] : NULL;
}

const char *symbols_name(const struct symbols *s, u64 ip)
{
	const struct symbol *symbol = symbols_find(s, ip);
	static char text[4][32];
	static unsigned int n;
	char *at = text[n++ % 4];

	if (symbol && symbol->at == ip)
		return symbol->name;
	snprintf(at, sizeof(text[0]), "%llx", (unsigned long long)ip);
	return at;
}
