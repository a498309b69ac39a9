// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether a trace has VMs at all: the first packet that only a host with VMs makes, or a guest
 * (docs/vm-tracking.md, "Traces without VMs").
 */
#include "decoder/pt/tracker.h"

/* A CPU that runs VMs says so in each PSB+, and those are closer together. */
#define HEAD_BYTES (1ULL << 20)

/* EVD, Table 33-51: what a VM exit left in the VMCS; a page fault's address says nothing. */
static bool evd_is_vmx(const u8 *p)
{
	unsigned int type = p[2] & 0x3f;

	return type == VMPT_EVD_VMXQ || type == VMPT_EVD_VMXR;
}

/* Whether the packet at @p says that there are VMs. */
static bool says_vms(unsigned int kind, const u8 *p)
{
	switch (kind) {
	case VMPT_PT_PIP:
		return vmpt_pip_nr(p);
	case VMPT_PT_VMCS:
		return true;
	case VMPT_PT_CFE:
		return vmpt_cfe_gives_nr(p);
	case VMPT_PT_EVD:
		return evd_is_vmx(p);
	default:
		return false;
	}
}

static bool scan_piece(const struct vmpt_piece *piece, const u8 *data, struct vmpt_vms_found *found)
{
	unsigned int kind;
	u64 at;
	size_t i;

	for (i = 0; i < piece->token_count; i++) {
		kind = vmpt_token_kind(piece->tokens[i]);
		at = vmpt_token_offset(piece->tokens[i]);
		if (kind == VMPT_TOKEN_LOSS) {
			i++;
		} else if (says_vms(kind, data + at)) {
			found->vms = VMPT_VMS_SEEN;
			found->offset = at;
			found->kind = (u8)kind;
			return true;
		} else if (kind == VMPT_PT_PIP) {
			found->vms = VMPT_VMS_NONE;
		} else if (!found->vms) {
			found->vms = VMPT_VMS_UNSAID;
		}
	}
	return false;
}

/* Where progress is reported, and the bytes of the streams before this one. */
struct progress {
	const struct vmpt_options *to;
	u64 before;
};

/* The first @size bytes of @stream. */
static int scan(const struct vmpt_stream *stream, u64 size, const struct vmpt_options *options,
		const struct progress *progress, struct vmpt_vms_found *found)
{
	struct vmpt_stream part = *stream;
	struct vmpt_source *src;
	struct vmpt_piece piece;
	int ret;

	part.size = size;
	while (part.gap_count && part.gaps[part.gap_count - 1].offset >= size)
		part.gap_count--;
	ret = vmpt_source_open(&src, &part, options, false);
	if (ret)
		return ret;
	while ((ret = vmpt_source_next(src, &piece)) > 0 && !scan_piece(&piece, part.data, found))
		if (progress->to)
			progress->to->progress(progress->to->progress_opaque,
					       progress->before + piece.end);
	vmpt_source_close(src);
	return ret < 0 ? ret : 0;
}

int vmpt_vms_find(const struct vmpt_stream *const *streams, size_t count,
		  const struct vmpt_options *options, struct vmpt_vms_found *found)
{
	struct progress progress = { 0 };
	struct vmpt_options o = { 0 };
	unsigned int whole;
	int err;

	if (options) {
		o.lanes = options->lanes;
		o.chunk = options->chunk;
		o.headless = options->headless;
		o.scalar = options->scalar;
	}
	*found = (struct vmpt_vms_found){ 0 };
	for (whole = 0; whole < 2; whole++) {
		/* A head is not worth starting threads. */
		o.threads = whole && options ? options->threads : 1;
		progress.to = whole && options && options->progress ? options : NULL;
		for (found->stream = 0; found->stream < count; found->stream++) {
			const struct vmpt_stream *s = streams[found->stream];
			bool is_short = s->size <= HEAD_BYTES;

			if (s->isa == VMPT_ISA_PT && !(whole && is_short)) {
				err = scan(s, whole || is_short ? s->size : HEAD_BYTES, &o,
					   &progress, found);
				if (err || found->vms == VMPT_VMS_SEEN)
					return err;
			}
			progress.before += whole ? s->size : 0;
		}
	}
	return 0;
}
