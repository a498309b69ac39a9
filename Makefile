# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# A thin front for people: meson builds, scripts/ does the work. "make help" lists the
# targets. Variables: JOBS=N (programs at once), SOAK_SECONDS=N, SOAK_SCRIPTS=..., BENCH_ARGS=...,
# BENCH_VMM_ARGS=..., BENCH_PLUGIN_ARGS=..., DEPS=no (do not look for missing packages),
# DESTDIR and PREFIX for install.

BUILD := build
JOBS ?= $(shell nproc)
SOAK_SECONDS ?= 1200
DEPS ?= yes
export JOBS SOAK_SECONDS SOAK_SCRIPTS

ifeq ($(DEPS),yes)
need = @scripts/deps $(1)
else
need = @for tool in $(if $(filter build,$(1)),meson ninja); do command -v $$tool >/dev/null || { \
	echo "make: $$tool is missing, and DEPS=no installs nothing: scripts/deps $(1)" >&2; exit 1; }; done
endif

# The goals share one build folder.
.NOTPARALLEL:

.PHONY: all
all: ## build everything into build/
	$(call need,build test-build)
	@[ -e $(BUILD)/build.ninja ] || meson setup $(BUILD)
	@ninja -j $(JOBS) -C $(BUILD)

.PHONY: demo
demo: ## two Linux guests traced as one system, and a guest that traces itself
	$(call need,build test-build qemu guests)
	@[ -e $(BUILD)/build.ninja ] || meson setup $(BUILD)
	@ninja -j $(JOBS) -C $(BUILD) cli/vmpt cli/vmpt-domain qemu-plugin/vmpt-plugin.so \
		tests/guests/kernel-image
	@scripts/demo

.PHONY: demo-generated
demo-generated: all ## the trace of a host and two VMs from a script, without QEMU
	@scripts/demo-generated

.PHONY: test
test: ## all tests: gcc, sanitizers, threads, each fuzz target for a second; clang's warnings
	$(call need,build test-build test qemu guests)
	@scripts/run-tests test

.PHONY: bochs
bochs: ## the PC with VMX and PT in software, and what tests run on it
	$(call need,bochs qemu guests)
	@bochs/build
	@tests/bochs/build-kernel
	@tests/bochs/build

.PHONY: kvm-series
kvm-series: ## put pt_core, made from arch/ and vmm-lib/, into the patches of kvm-patches/
	$(call need,lint)
	@for series in kvm-patches/6.12 kvm-patches/7.x; do \
		kvm-patches/pt_core/update $$series || exit; \
	done

.PHONY: test-kvm
test-kvm: ## what needs that PC: KVM, real kernels and perf on it; builds what is missing
	$(call need,build test-build bochs qemu guests)
	@scripts/run-tests kvm

.PHONY: test-all-configs
test-all-configs: ## all tests in every configuration
	$(call need,build test-build test qemu guests)
	@scripts/run-tests all

.PHONY: site
site: ## the documents, man pages and libraries' interfaces as pages for a browser
	$(call need,build site)
	@[ -e $(BUILD)/build.ninja ] || meson setup $(BUILD)
	@ninja -j $(JOBS) -C $(BUILD) site

.PHONY: coverage
coverage: ## what the tests run of arch/, vmm-lib/, model/; writes docs/coverage.md's table
	$(call need,build test-build test)
	@scripts/coverage

.PHONY: soak
soak: ## scripts that take minutes, then random tests and fuzzing for SOAK_SECONDS
	$(call need,build test-build test qemu guests)
	@scripts/run-tests soak

.PHONY: bench
bench: all ## speed and memory, beside libipt's; what vmm-lib and the QEMU plugin cost
	$(call need,qemu guests)
	@[ -x $(BUILD)/bench/vmpt-bench-vmm ] || { echo "bench: $(BUILD)/bench is not built:" \
		"meson configure $(BUILD) -Dbench=true" >&2; exit 1; }
	@if [ -x $(BUILD)/bench/vmpt-bench ]; then $(BUILD)/bench/vmpt-bench $(BENCH_ARGS); else \
		echo "bench: no comparison with libipt: $(BUILD) was set up without it (libipt-dev)"; fi
	@[ ! -x $(BUILD)/bench/vmpt-bench-flow ] || $(BUILD)/bench/vmpt-bench-flow
	@$(BUILD)/bench/vmpt-bench-vmm --json $(BUILD)/bench/bench-vmm.json $(BENCH_VMM_ARGS)
	@bench/shared --json $(BUILD)/bench/bench-shared.json $(BUILD)/bench/vmpt-bench-linked-static \
		$(BUILD)/bench/vmpt-bench-linked-shared
	@bench/qemu-plugin --json $(BUILD)/bench/bench-qemu-plugin.json $(BENCH_PLUGIN_ARGS) \
		$(BUILD) || [ $$? = 77 ]

.PHONY: lint
lint: ## formatting, static analysis, licences, floors; warnings are errors
	$(call need,build test-build lint)
	@scripts/lint

.PHONY: format
format: ## lay out all code as .clang-format says
	$(call need,lint)
	@command -v clang-format-14 >/dev/null || { \
		echo "make format: no clang-format-14: another version has another layout" >&2; exit 1; }
	@git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 -i

.PHONY: deps
deps: ## install the Debian packages that all of these need, find or fetch a QEMU that fits
	scripts/deps build test-build test lint site qemu guests bochs
	scripts/get-qemu

.PHONY: install
install: ## install the command and the libraries below PREFIX (/usr/local); no test is built
	$(call need,build)
	@[ -e $(BUILD)-install/build.ninja ] || meson setup -Dtests=false -Dbench=false $(BUILD)-install
	@meson configure $(BUILD)-install --prefix $(or $(PREFIX),/usr/local)
	@ninja -j $(JOBS) -C $(BUILD)-install
	@meson install -C $(BUILD)-install --no-rebuild

.PHONY: packages
packages: ## Debian packages of the last commit, into build-packages/
	@scripts/build-packages

.PHONY: clean
clean: ## remove the build folders
	@rm -rf build-packages
	@for dir in $(BUILD) $(BUILD)-*; do \
		if [ -d "$$dir/meson-private" ]; then rm -rf "$$dir"; fi; \
	done

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r goal what; do \
		printf '  make %-18s %s\n' "$$goal" "$$what"; done
