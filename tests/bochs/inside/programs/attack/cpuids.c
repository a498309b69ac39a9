// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CPUIDs of a hostile VMM: see cpuids.h.
 */
#include "cpuids.h"

/* Looks a leaf up as KVM does: the first one that matches or has no subleaves. */
static const struct kvm_cpuid_entry2 *find(const struct cpuid *cpuid, u32 function, u32 index)
{
	u32 i;

	for (i = 0; i < cpuid->head.nent; i++) {
		const struct kvm_cpuid_entry2 *e = &cpuid->entries[i];

		if (e->function == function &&
		    (e->index == index || !(e->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX)))
			return e;
	}
	return NULL;
}

static struct kvm_cpuid_entry2 *leaf(struct cpuid *cpuid, u32 function, u32 index)
{
	struct kvm_cpuid_entry2 *e = cpuid_find(cpuid, function, index);

	if (e || cpuid->head.nent == KVM_MAX_CPUID)
		return e ? e : &cpuid->entries[0];
	e = &cpuid->entries[cpuid->head.nent++];
	*e = (struct kvm_cpuid_entry2){
		.function = function,
		.index = index,
		.flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX,
	};
	return e;
}

static void spoil_word(u32 *word, struct random *rng)
{
	u32 bits = (u32)random_next(rng);

	switch (random_below(rng, 6)) {
	case 0:
		*word = bits;
		break;
	case 1:
		*word = random_one_in(rng, 2) ? ~0u : 0;
		break;
	case 2:
		*word ^= 1u << random_below(rng, 32);
		break;
	case 3:
		*word |= 1u << random_below(rng, 32);
		break;
	default:
		*word &= bits;
	}
}

static void spoil_leaf(struct kvm_cpuid_entry2 *e, struct random *rng)
{
	u32 *const words[] = { &e->eax, &e->ebx, &e->ecx, &e->edx };

	spoil_word(words[random_below(rng, 4)], rng);
}

static void remove_leaf(struct cpuid *cpuid, struct kvm_cpuid_entry2 *e)
{
	*e = cpuid->entries[--cpuid->head.nent];
}

static void spoil_once(struct cpuid *cpuid, struct random *rng)
{
	struct kvm_cpuid_entry2 *e;

	switch (random_below(rng, 14)) {
	case 0 ... 3:
		spoil_leaf(leaf(cpuid, 0x14, 0), rng);
		break;
	case 4 ... 5:
		spoil_leaf(leaf(cpuid, 0x14, 1), rng);
		break;
	case 6:
		spoil_leaf(leaf(cpuid, 0x14, 2 + random_below(rng, 6)), rng);
		break;
	case 7:
		leaf(cpuid, 7, 0)->ebx ^= 1u << 25;
		break;
	case 8:
		/* Keep what a vCPU needs for long mode: that is not under test. */
		e = leaf(cpuid, 0x80000008, 0);
		e->eax = random_one_in(rng, 2) ? (e->eax & ~0xffu) | random_below(rng, 256)
					       : (e->eax & ~0xff00u) | random_below(rng, 256) << 8;
		break;
	case 9:
		spoil_leaf(leaf(cpuid, 0x15, 0), rng);
		break;
	case 10:
		leaf(cpuid, 0, 0)->eax = random_below(rng, 0x24);
		break;
	case 11:
		remove_leaf(cpuid, leaf(cpuid, 0x14, random_below(rng, 2)));
		break;
	case 12:
		leaf(cpuid, 0x14, random_below(rng, 2))->flags = (u32)random_next(rng) & 7;
		break;
	default:
		/* A second copy of a leaf with other content. */
		if (cpuid->head.nent < KVM_MAX_CPUID) {
			e = &cpuid->entries[cpuid->head.nent];
			*e = *leaf(cpuid, 0x14, random_below(rng, 2));
			cpuid->head.nent++;
			spoil_leaf(e, rng);
		}
	}
}

void cpuid_spoil(struct cpuid *cpuid, struct random *rng)
{
	u32 n = 1 + random_below(rng, 6);

	while (n--)
		spoil_once(cpuid, rng);
}

bool cpuid_has_pt(const struct cpuid *cpuid)
{
	const struct kvm_cpuid_entry2 *e = find(cpuid, 7, 0);

	return e && e->ebx >> 25 & 1;
}

bool cpuid_is_part(const struct cpuid *cpuid, const struct cpuid *offered, const char **what)
{
	static const struct kvm_cpuid_entry2 none;
	const struct kvm_cpuid_entry2 *a = find(cpuid, 0x14, 0), *b = find(offered, 0x14, 0);
	const struct kvm_cpuid_entry2 *c = find(cpuid, 0x14, 1), *d = find(offered, 0x14, 1);

	if (!a || !a->eax)
		c = NULL;
	a = a ? a : &none;
	b = b ? b : &none;
	c = c ? c : &none;
	d = d ? d : &none;
	if (a->ebx & ~b->ebx)
		*what = "14H EBX";
	else if (a->ecx & ~b->ecx)
		*what = "14H ECX";
	else if ((c->eax & 7) > (d->eax & 7))
		*what = "14H.1 EAX: address ranges";
	else if ((c->eax & ~d->eax) >> 16)
		*what = "14H.1 EAX: MTC periods";
	else if (c->ebx & ~d->ebx)
		*what = "14H.1 EBX";
	else
		return true;
	return false;
}
