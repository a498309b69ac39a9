// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Threads that pass a token around, "threads [THREADS [ROUNDS]]": with several vCPUs they run on
 * all of them and wake each other.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_THREADS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int threads = 2, rounds = 100, token;
static uint64_t sum;

static void *body(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		while (token % threads != me)
			pthread_cond_wait(&passed, &lock);
		sum += (uint64_t)token++;
		pthread_cond_broadcast(&passed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[MAX_THREADS];

	if (argc > 1)
		threads = atoi(argv[1]);
	if (argc > 2)
		rounds = atoi(argv[2]);
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, body, (void *)(intptr_t)i))
			return 2;
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("threads: %d threads %d rounds sum %llu\n", threads, rounds,
	       (unsigned long long)sum);
	return 0;
}
