// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A Linux guest in an image of its memory: all parts in their order; see vmpt-guest.h. */
#include "decoder/names/guest.h"
#include "decoder/trace/trace.h"

#define BANNER_MAX 512

static int read_banner(struct vmpt_guest *g)
{
	char banner[BANNER_MAX];
	u64 at;

	if (!vmpt_guest_address(g, "linux_banner", &at) ||
	    !vmpt_guest_string(g, at, banner, sizeof(banner)))
		return 0;
	banner[strcspn(banner, "\n")] = '\0';
	g->kernel.banner = vmpt_guest_keep_string(&g->text, banner);
	return g->kernel.banner ? 0 : -VMPT_E_NOMEM;
}

/* Where the array of all struct page is: KASLR moves it. What the kernel maps itself: by its ops.
 */
static void find_data(struct vmpt_guest *g)
{
	u64 at;

	if (!vmpt_guest_address(g, "special_mapping_vmops", &g->special_ops))
		g->special_ops = 0;
	if (!vmpt_guest_address(g, "vmemmap_base", &at) || !vmpt_guest_u64(g, at, &g->page_map))
		g->page_map = 0;
}

static int read_lists(struct vmpt_guest *g)
{
	int ret = vmpt_guest_read_types(g);

	if (ret < 0)
		return ret;
	if (!ret)
		g->kernel.lacks |= VMPT_GUEST_TYPES_MISSING;
	ret = vmpt_guest_read_tasks(g);
	if (!ret)
		ret = vmpt_guest_read_modules(g);
	return ret;
}

static int read_guest(struct vmpt_guest *g, struct vmpt_diag *diag)
{
	int ret;

	vmpt_guest_forget(g);
	ret = vmpt_guest_find(g, diag);
	if (ret)
		return ret;
	if (g->symbols) {
		ret = read_banner(g);
		if (!ret)
			ret = read_lists(g);
		find_data(g);
		vmpt_guest_sort_symbols(g);
		g->kernel.symbols = (u32)g->symbols;
	}
	return ret ? vmpt_diag_fail(diag, (enum vmpt_error) - ret, 0, "%s", vmpt_strerror(ret)) : 0;
}

int vmpt_guest_open_abi(struct vmpt_guest **guest, struct vmpt_image *image, struct vmpt_diag *diag,
			u64 abi)
{
	struct vmpt_guest *g;
	int ret;

	if (abi != VMPT_GUEST_ABI)
		return -VMPT_E_VERSION;
	if (diag)
		*diag = (struct vmpt_diag){ 0 };
	g = calloc(1, sizeof(*g));
	if (!g)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	g->image = image;
	ret = read_guest(g, diag);
	if (ret)
		vmpt_guest_close(g);
	else
		*guest = g;
	return ret;
}

void vmpt_guest_close(struct vmpt_guest *g)
{
	if (!g)
		return;
	vmpt_guest_drop_tasks(g);
	free(g->symbol);
	free(g->names);
	free(g->range);
	free(g->module);
	vmpt_guest_text_free(&g->text);
	free(g);
}

int vmpt_guest_update(struct vmpt_guest *g)
{
	vmpt_guest_forget(g);
	vmpt_guest_drop_tasks(g);
	g->kernel.lacks &= ~(u32)VMPT_GUEST_TASKS_CUT;
	g->kernel.tasks = 0;
	return g->symbols ? vmpt_guest_read_tasks(g) : 0;
}

void vmpt_guest_kernel(const struct vmpt_guest *g, struct vmpt_guest_kernel *kernel)
{
	*kernel = g->kernel;
}
