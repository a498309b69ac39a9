// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Writes tests/fuzz/corpus/reader-perf: small perf.data files of all forms.
 * usage: make-perf-corpus DIR
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/perf-writer.h"

/* A ring buffer's content: PSB, TSC, PSBEND, TNTs, again and again */
static void make_ring(u8 *ring, size_t size)
{
	static const u8 psb[] = { 2, 0x82, 2, 0x82, 2, 0x82, 2,	   0x82, 2, 0x82,
				  2, 0x82, 2, 0x82, 2, 0x82, 0x19, 0,	 1, 2,
				  3, 4,	   5, 6,    2, 0x23, 0xa4, 0xb6 };
	size_t i;

	for (i = 0; i < size; i++)
		ring[i] = i % 64 < sizeof(psb) ? psb[i % 64] : (u8)(0x80 | i / 64 << 1);
	for (i = 17; i < size; i += 64)
		ring[i] = (u8)(i / 64);
}

/* Every kind of event. */
static void write_events(struct perf_writer *w, bool pipe, bool packed)
{
	static const struct writer_at at = { 7, 8, 1, 2000 };
	static const struct writer_exit exit = { 3, 48, 1, 0x1000, 2, 3 };
	u8 ring[512];

	make_ring(ring, sizeof(ring));
	writer_start_kvm(w, pipe);
	writer_info(w, false, WRITER_PRIVS);
	if (packed)
		writer_pack(w);
	writer_comm(w, true, "CPU 0/KVM", 7, 8, &at);
	writer_switch(w, false, false, &at);
	writer_kvm_entry(w, 3, 0x1000, &at);
	writer_kvm_exit(w, &exit, &at);
	writer_switch(w, true, true, &at);
	writer_lost(w, 5);
	writer_task(w, PERF_RECORD_FORK, 7, 9, &at);
	writer_task(w, PERF_RECORD_EXIT, 7, 9, &at);
	if (packed)
		writer_flush(w, 100, !pipe);
	writer_auxtrace(w, 0, 1, 0, ring, 64);
	writer_finish(w);
}

static void write_trace(struct perf_writer *w, bool pipe, bool snapshot, int kind)
{
	u8 ring[512];

	make_ring(ring, sizeof(ring));
	writer_start(w, pipe);
	writer_info(w, snapshot, kind == 3 ? 10 : WRITER_PRIVS);
	writer_auxtrace(w, 0, 1, 0, ring, 130);
	if (kind == 2)
		writer_pack(w);
	writer_aux(w, 0, 1, 0, 130, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL);
	writer_aux(w, 1, 1, 0, 40, PERF_AUX_FLAG_COLLISION);
	writer_lost(w, 2);
	if (kind == 2)
		writer_flush(w, 30, !pipe);
	writer_auxtrace(w, 1, 1, 0, ring, 64);
	if (kind == 1)
		writer_auxtrace(w, -1, 7, 0, ring, 64);
	writer_auxtrace(w, 0, 1, snapshot ? 0 : 130, ring + (snapshot ? 64 : 130), 200);
	writer_auxtrace(w, 0, 1, 900, ring + 128, 256);
	writer_finish(w);
}

int main(int argc, char **argv)
{
	struct perf_writer w;
	char path[4096];
	int i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 2;
	}
	for (i = 0; i < 20; i++) {
		FILE *f;

		if (i < 16)
			write_trace(&w, i & 1, i & 2, i / 4);
		else
			write_events(&w, i & 1, i & 2);
		snprintf(path, sizeof(path), "%s/%s%s-%d", argv[1], i & 1 ? "pipe" : "file",
			 i >= 16 ? "-events"
			 : i & 2 ? "-snapshot"
				 : "",
			 i >= 16 ? i / 2 & 1 : i / 4);
		f = fopen(path, "wb");
		if (!f || fwrite(w.buf, 1, w.size, f) != w.size || fclose(f)) {
			perror(path);
			return 1;
		}
		writer_free(&w);
	}
	return 0;
}
