// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All streams' spans as one sequence by time. Each stream's lane fills a bounded queue; idle
 * threads work on the lane with the emptiest queue, and the caller takes the earliest head. Memory
 * is constant: a ring and a queue per stream.
 */
#include <pthread.h>
#include <stdlib.h>

#include "decoder/timeline/timeline.h"
#include "util/merge.h"

#define QUEUE	    1024
#define CHUNK	    64 /* spans made before the queue is checked again */
#define THREADS_MAX 12

enum { LANE_IDLE, LANE_BUSY, LANE_DONE };

struct queue {
	struct timeline_lane lane;
	struct vmpt_span span[QUEUE];
	u64 first, next; /* span numbers: next to take, next to put */
	u8 state;
	int error;
	struct vmpt_span head; /* owned by the caller: taken out of the queue */
	bool has_head;
};

struct vmpt_timeline {
	struct vmpt_timeline_options options;
	struct queue *queue;
	size_t count;
	u32 *events;		 /* indices of KVM exits, by stream */
	struct vmpt_merge merge; /* of the streams that have a head, by its start */
	bool started;
	u64 bytes; /* reported so far */
	unsigned int given;

	pthread_mutex_t lock;
	pthread_cond_t work, made; /* for workers; for the caller */
	pthread_t thread[THREADS_MAX];
	unsigned int threads;
	bool stop;
};

/* ---- lanes at work ---- */

/*
 * Make some spans of @q, which no other thread works on. Called with the lock held; it is released
 * meanwhile.
 */
static void produce(struct vmpt_timeline *t, struct queue *q)
{
	u64 first = q->first, next = q->next, end = first + QUEUE;
	int ret = 1;

	q->state = LANE_BUSY;
	pthread_mutex_unlock(&t->lock);
	if (end > next + CHUNK)
		end = next + CHUNK;
	while (next < end && (ret = vmpt_lane_next(&q->lane, &q->span[next % QUEUE])) > 0)
		next++;
	pthread_mutex_lock(&t->lock);
	q->next = next;
	q->error = ret < 0 ? ret : 0;
	q->state = ret > 0 ? LANE_IDLE : LANE_DONE;
	pthread_cond_broadcast(&t->made);
	pthread_cond_signal(&t->work);
}

/* The lane to work on next: the emptiest with room for a chunk. */
static struct queue *find_work(struct vmpt_timeline *t)
{
	struct queue *best = NULL;
	size_t i;

	for (i = 0; i < t->count; i++) {
		struct queue *q = &t->queue[i];

		if (q->state != LANE_IDLE || q->next - q->first > QUEUE - CHUNK)
			continue;
		if (!best || q->next - q->first < best->next - best->first)
			best = q;
	}
	return best;
}

static void *work(void *arg)
{
	struct vmpt_timeline *t = arg;
	struct queue *q;

	pthread_mutex_lock(&t->lock);
	while (!t->stop) {
		q = find_work(t);
		if (q)
			produce(t, q);
		else
			pthread_cond_wait(&t->work, &t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Take the next span of @q into its head. 1, 0 at its end, or an error. */
static int take(struct vmpt_timeline *t, struct queue *q)
{
	struct queue *other;
	int ret = 0;

	pthread_mutex_lock(&t->lock);
	while (q->first == q->next && q->state != LANE_DONE) {
		/* While another thread works on it, work on another lane instead of sleeping. */
		other = q->state == LANE_IDLE ? q : find_work(t);
		if (other)
			produce(t, other);
		else
			pthread_cond_wait(&t->made, &t->lock);
	}
	if (q->first < q->next) {
		q->head = q->span[q->first++ % QUEUE];
		if (t->threads && q->next - q->first == QUEUE - CHUNK)
			pthread_cond_signal(&t->work);
		ret = 1;
	} else {
		ret = q->error;
	}
	pthread_mutex_unlock(&t->lock);
	q->has_head = ret > 0;
	return ret;
}

/* ---- merging ---- */

/* Spans without a time come first: they are at a stream's beginning. */
static u64 key(const struct queue *q)
{
	return q->head.start.tsc == VMPT_TIME_NONE ? 0 : q->head.start.tsc;
}

static int start(struct vmpt_timeline *t)
{
	size_t i;
	int ret;

	t->started = true;
	for (i = 0; i < t->count; i++) {
		ret = take(t, &t->queue[i]);
		if (ret > 0)
			ret = vmpt_merge_add(&t->merge, key(&t->queue[i]), i);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int vmpt_timeline_next(struct vmpt_timeline *t, struct vmpt_span *span)
{
	struct queue *q;
	int ret;

	if (!t->started) {
		ret = start(t);
		if (ret)
			return ret;
	}
	if (!t->merge.count)
		return 0;
	q = &t->queue[t->merge.head[0].list];
	*span = q->head;
	t->bytes += span->size;
	if (t->options.decode.progress && !(++t->given % 256))
		t->options.decode.progress(t->options.decode.progress_opaque, t->bytes);
	ret = take(t, q);
	if (ret < 0)
		return ret;
	if (ret)
		vmpt_merge_next(&t->merge, key(q));
	else
		vmpt_merge_end(&t->merge);
	return 1;
}

/* ---- opening and closing ---- */

/* A KVM exit, or an event that says more about the one before it. */
static bool is_exit_of(const struct vmpt_event *e, const struct vmpt_stream *stream)
{
	bool wanted = e->kind == VMPT_EVENT_KVM_MSR || e->kind == VMPT_EVENT_KVM_GPA ||
		      (e->kind == VMPT_EVENT_KVM_EXIT && e->reason != VMPT_EVENT_NO_REASON);

	return wanted && e->tsc && stream->cpu >= 0 && e->cpu == stream->cpu;
}

/* Sort the KVM exits by stream: indices, one CPU's after the other. */
static int sort_events(struct vmpt_timeline *t)
{
	const struct vmpt_timeline_options *o = &t->options;
	size_t i, k, n = 0;

	if (o->event_count > 0xffffffff)
		return -VMPT_E_INVAL;
	for (k = 0; k < t->count; k++)
		for (i = 0; i < o->event_count; i++)
			n += is_exit_of(&o->events[i], t->queue[k].lane.stream);
	t->events = calloc(n + 1, sizeof(*t->events));
	if (!t->events)
		return -VMPT_E_NOMEM;
	for (k = 0, n = 0; k < t->count; k++) {
		struct timeline_lane *lane = &t->queue[k].lane;

		lane->events.event = o->events;
		lane->events.index = t->events + n;
		for (i = 0; i < o->event_count; i++)
			if (is_exit_of(&o->events[i], lane->stream))
				t->events[n++] = (u32)i;
		lane->events.count = (size_t)(t->events + n - lane->events.index);
	}
	return 0;
}

static int open_lanes(struct vmpt_timeline *t, const struct vmpt_clocks *clocks,
		      const struct vmpt_stream *const *streams)
{
	unsigned int own = t->count == 1 ? t->options.decode.threads : 1;
	size_t i;
	int ret = 0;

	for (i = 0; i < t->count && !ret; i++)
		ret = vmpt_lane_open(&t->queue[i].lane, clocks, streams[i], i, &t->options, own);
	return ret ? ret : sort_events(t);
}

static void start_threads(struct vmpt_timeline *t)
{
	unsigned int want = t->options.decode.threads;

	if (want > THREADS_MAX)
		want = THREADS_MAX;
	if (want > t->count)
		want = (unsigned int)t->count;
	/* The caller is one of the threads. */
	while (t->threads + 1 < want && !pthread_create(&t->thread[t->threads], NULL, work, t))
		t->threads++;
}

int vmpt_timeline_open_abi(struct vmpt_timeline **timeline, const struct vmpt_clocks *clocks,
			   const struct vmpt_stream *const *streams, size_t count,
			   const struct vmpt_timeline_options *options, u64 abi)
{
	static const struct vmpt_timeline_options defaults;
	struct vmpt_timeline *t;
	size_t i;
	int ret;

	if (abi != VMPT_TIMELINE_ABI)
		return -VMPT_E_VERSION;
	if (!count)
		return -VMPT_E_INVAL;
	for (i = 0; i < count; i++)
		if (streams[i]->isa != VMPT_ISA_PT)
			return -VMPT_E_UNSUPPORTED;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -VMPT_E_NOMEM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	pthread_cond_init(&t->made, NULL);
	t->options = options ? *options : defaults;
	t->count = count;
	t->queue = calloc(count, sizeof(*t->queue));
	ret = t->queue ? open_lanes(t, clocks, streams) : -VMPT_E_NOMEM;
	if (ret) {
		vmpt_timeline_close(t);
		return ret;
	}
	start_threads(t);
	*timeline = t;
	return 0;
}

void vmpt_timeline_close(struct vmpt_timeline *t)
{
	size_t i;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_broadcast(&t->work);
	pthread_mutex_unlock(&t->lock);
	while (t->threads)
		pthread_join(t->thread[--t->threads], NULL);
	for (i = 0; t->queue && i < t->count; i++)
		vmpt_lane_close(&t->queue[i].lane);
	pthread_cond_destroy(&t->made);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t->queue);
	vmpt_merge_free(&t->merge);
	free(t->events);
	free(t);
}
