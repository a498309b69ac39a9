// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The public decoder and splitter: open chooses PT or RTIT by the stream; all other calls go
 * through the table chosen then.
 */
#include "decoder/isa.h"

static const struct vmpt_decoder_ops *const decoders[] = {
	[VMPT_ISA_PT] = &vmpt_pt_decoder_ops,
	[VMPT_ISA_RTIT] = &vmpt_rtit_decoder_ops,
};

static const struct vmpt_splitter_ops *const splitters[] = {
	[VMPT_ISA_PT] = &vmpt_pt_splitter_ops,
	[VMPT_ISA_RTIT] = &vmpt_rtit_splitter_ops,
};

static const struct vmpt_options defaults;

int vmpt_decoder_open(struct vmpt_decoder **dec, const struct vmpt_stream *stream,
		      const struct vmpt_options *options)
{
	const struct vmpt_decoder_ops *ops = decoders[stream->isa];
	int err = ops->open(dec, stream, options ? options : &defaults);

	if (!err)
		(*dec)->ops = ops;
	return err;
}

int vmpt_batch_next(struct vmpt_decoder *dec, struct vmpt_batch *batch)
{
	return dec->ops->next(dec, batch);
}

void vmpt_decoder_close(struct vmpt_decoder *dec)
{
	if (dec)
		dec->ops->close(dec);
}

void vmpt_decoder_time_only(struct vmpt_decoder *dec)
{
	if (dec->ops->time_only)
		dec->ops->time_only(dec);
}

int vmpt_splitter_open(struct vmpt_splitter **split, const struct vmpt_stream *stream,
		       const struct vmpt_options *options)
{
	const struct vmpt_splitter_ops *ops = splitters[stream->isa];
	int err = ops->open(split, stream, options ? options : &defaults);

	if (!err)
		(*split)->ops = ops;
	return err;
}

int vmpt_split_next(struct vmpt_splitter *split, struct vmpt_slice *slice)
{
	return split->ops->next(split, slice);
}

void vmpt_splitter_close(struct vmpt_splitter *split)
{
	if (split)
		split->ops->close(split);
}
