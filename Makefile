# The driver of writeup.nw: `make help` lists what can be made.  The rules for objects, programs and
# tables are in src/make/build.mk, tangled from the chapter "How this document is built".
# Settings: MACHINE=slug (where measurements go)  SANITIZE=1  DEBUG=1  CC=clang
#           CUDA=1 (code for GPUs on a machine without one)  ARCH=sm_90a
#           NOWEB=/usr/lib/noweb
# A make goes through this file up to three times: for several goals, one after another; then for
# one goal, which takes a lock; then under the lock, where the work is done.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += -rR --no-print-directory
NOWEB       ?= /usr/lib/noweb
override MACHINE := $(or $(strip $(MACHINE)),local)
GOALS       := $(or $(MAKECMDGOALS),all)
CORES       := $(shell nproc)
quoted = '$(subst ','\'',$1)'# one word of a shell
ifeq (,$(shell [[ $(call quoted,$(MACHINE)) =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$$ ]] && echo good))
$(error MACHINE=$(MACHINE): expected a name of letters, digits, dots, - and _)
endif
NOWEB_IS_THERE := $(shell [ ! -e $(call quoted,$(NOWEB)/markup) ] || echo yes)
ifneq (,$(shell [ -z "$${TMPDIR-}" ] || [ -d "$$TMPDIR" -a -w "$$TMPDIR" ] || echo bad))
$(info make: there is no TMPDIR ($(TMPDIR)) to write in; /tmp is used)
export TMPDIR := /tmp
endif
FOLDER      := $(shell stat -c %d:%i .)
# What a shell, grep or tar of the user's does otherwise for these variables, a rule does not expect.
unexport BASH_ENV CDPATH ENV GREP_OPTIONS POSIXLY_CORRECT TAR_OPTIONS
ifeq (0,$(MAKELEVEL)$(filter -j%,$(MAKEFLAGS))) # -j on the command line counts more
MAKEFLAGS   += -j$(CORES)
endif
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: deps tangle all kernels experiments package wheel site html dist test fuzz check grade clean help \
	skeleton skeleton-check FORCE

# $(call lock,NAME,FIRST): one shell at a time comes past this; one that has to wait does FIRST before.
# Where a file system has no locks, flock fails with a status other than 1.
lock = mkdir -p build; exec 9>build/$1.lock; \
	why=$$(flock -n 9 2>&1) || { [ $$? = 1 ] && $2 flock 9; } || \
	[ "$${MAKE_LOCKED-}" ] || \
	echo "make: warning: no locks here ($$why); run one make at a time" >&2;

deps:         ## install the packages of Debian or Ubuntu that are missing | apt, root or sudo | 2 min
	@bash src/make/deps.sh
clean:        ## remove build/ and html/; measurements stay | - | 1 s
	@$(call lock,make) rm -rf build html

# First: goals are made one after another, deps and clean before the others.  Each starts afresh and
# sees what has changed.
ifneq (,$(filter deps clean,$(GOALS))$(word 2,$(GOALS)))
.NOTPARALLEL:
.PHONY: $(GOALS)
$(sort $(filter-out deps clean,$(GOALS))): $(filter deps clean,$(GOALS))
	@+$(MAKE) $@

# Second: one make at a time, as two would compile the same objects at once, or beside a measurement.
# A make that another one starts under its lock has MAKE_LOCKED, the folder, in its environment.
else ifneq ($(FOLDER),$(if $(filter-out check help,$(GOALS)),$(MAKE_LOCKED),$(FOLDER)))
.PHONY: $(GOALS) alone
$(GOALS): alone ; @+:
alone:
	@+$(call lock,make,echo 'make: waiting for another make in this folder' >&2 &&) \
	MAKE_LOCKED=$(FOLDER) $(MAKE) $(GOALS)

# Third: the work.  A time ahead of the clock would have it done without end, or never: sources are
# of now, and what is made of them is old.
else
ahead = $(shell find -H $(wildcard $1) -type f -newermt '5 seconds' -print -exec touch -d $2 {} + 2>&1)
AHEAD := $(call ahead,Makefile writeup.nw src tests tables,now)
AHEAD += $(call ahead,build html notes.pdf writeup.pdf,@0)
$(if $(filter touch:,$(AHEAD)),$(error the clock is behind the times of files: $(AHEAD)))
$(if $(strip $(AHEAD)),$(info make: the clock was behind the times of $(words $(AHEAD)) files, \
	$(firstword $(AHEAD)) among them; they are set anew))
ifneq (,$(filter-out check help tangle dist,$(GOALS)))
-include src/make/build.mk
endif
ifneq (,$(filter-out check help,$(GOALS)))
ifneq (,$(NOWEB_IS_THERE))
# The document contains the script that takes it apart.  It runs when the document has changed or a
# file that it made is missing, empty or newer than the last run, and make starts over with the new
# rules.  As the file that is included last, its list is what make brings up to date first.
SPOILED := $(shell find src tests -type f ! -name '*.pyc' \( -size 0 -o -newer build/tangled.mk \) \
	-print -quit 2>/dev/null)
include build/tangled.mk
MISSING := $(filter-out $(wildcard $(TANGLED)),$(TANGLED))
build/tangled.mk: writeup.nw $(if $(MISSING)$(SPOILED),FORCE)
	@mkdir -p build
	@$(call quoted,$(NOWEB)/markup) -t $< | $(call quoted,$(NOWEB)/nt) -t8 -Rsrc/make/tangle.sh \
		>build/tangle.sh && bash build/tangle.sh $<
else
$(if $(MAKE_RESTARTS),,$(info noweb is not installed: src/ and tests/ are used as they were committed))
endif
endif

tangle:       ## write src/ and tests/ from writeup.nw; all that builds does so first | noweb | 1 s
	@:
all: $(PROGRAMS) $(TEST_PROGRAMS) $(SHARED) ## compile every program and test | C compiler, OpenBLAS, cmocka | 1 min
compile_commands.json: ## how each source is compiled, for editors and clangd | C compiler | 1 s
kernels: $(KERNEL_OBJECTS) ## compile all code for GPUs, for three of them; needs none | nvcc | 6 min
	$(CHECK_KERNELS)
package: build/package/libsystems.pc ## libraries, headers, a file for pkg-config in build/package | as all | 1 min
wheel: package ## the package for PyTorch in build/wheel; pip install ./python does without | pip, PyTorch | 2 min
	@python3 -m pip wheel ./python --no-deps --quiet --wheel-dir build/wheel
	@ls build/wheel/*.whl
site: $(SITE) ## the package for PyTorch beside the programs, where those and tests find it | pip, PyTorch | 2 min
experiments: $(HERE) ## run what is not up to date; one problem: make NAME | as all | 4 min
writeup.pdf:  ## run the experiments, draw the figures, weave the document | pandoc, XeTeX, gnuplot | 5 min
	@SOURCE_DIGEST=$$(bash src/make/source-digest.sh) bash src/weave/weave.sh writeup.nw $@
notes.pdf:    ## the notes alone, front matter and Part I; writeup.pdf makes it, too | as writeup.pdf | 4 min
	@SOURCE_DIGEST=$$(bash src/make/source-digest.sh) bash src/weave/weave.sh --notes writeup.nw $@
html:         ## the same as pages for a browser, from html/index.html on | as writeup.pdf | 5 min
html/index.html:
	@SOURCE_DIGEST=$$(bash src/make/source-digest.sh) bash src/weave/weave.sh --html writeup.nw html
dist:         ## pack what a node without git needs into build/writeup.tar.gz | tar | 1 s
	@mkdir -p build; tar -czf build/writeup.tar.gz --sort=name --owner=0 --group=0 \
		--exclude=tables/local --transform='s,^,writeup/,S' \
		Makefile $(wildcard README.md LICENSE tables python) src tests writeup.nw
	@echo "build/writeup.tar.gz: there, tar xf writeup.tar.gz && cd writeup && make experiments"
test: $(PROGRAMS) $(TEST_PROGRAMS) $(SITE) ## run every test; SANITIZE=1: under ASan and UBSan | as all | 5 min
	@$(RUN_TESTS)
fuzz: tangle  ## let libFuzzer search for a file that breaks a reader; SECONDS=60 | clang | 1 min
	@bash tests/base/fuzz.sh $(or $(SECONDS),60)
check:        ## is everything that is committed made from this writeup.nw? | noweb, pandoc, poppler | 1 min
	@bash src/make/check.sh
grade: build/test-results.tsv ## score each problem: its tests, tables and claims | as writeup.pdf | 1 min
	@$(MAKE) -k experiments || :; woven=yes; $(MAKE) writeup.pdf || woven=no; \
	bash src/make/grade.sh $$woven
skeleton: tangle ## this document without its solutions; DIR=folder KEEP='problem ...' | noweb | 2 s
	@bash src/make/skeleton.sh $(call quoted,$(DIR)) $(call quoted,$(KEEP))
skeleton-check: tangle ## put solutions back one problem after the other; TRY='problem ...' | as test | 20 min
	@+MAKE='$(MAKE)' bash src/make/skeleton-check.sh $(TRY)
help:         ## this list | - | 1 s
	@awk -f src/make/help.awk Makefile; awk -v list=1 -f src/make/problems.awk writeup.nw
endif
