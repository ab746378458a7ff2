# The rules behind the Makefile: objects, programs, digests, tables.
include build/config.mk
build/config.mk: src/configure.sh
	@bash src/configure.sh
ifneq ($(GPUS),$(sort $(wildcard /dev/nvidia[0-9]*)))
build/config.mk: FORCE
endif
ifneq (,$(wildcard $(NOWEB)/markup))
src/configure.sh $(addprefix src/weave/,problems.awk digest.sh items.awk \
		digest.awk): \
	| build/tangled.mk ;
build/digests.mk: | build/tangled.mk
endif
B := build$(if $(SANITIZE),/asan)$(if $(DEBUG),/debug)
S := $(if $(DEBUG),build/L/)
FORTIFY := $(if $(DEBUG)$(SANITIZE),0,2)
OPTIMIZE := $(if $(DEBUG),-O0 -g,$(if $(SANITIZE),-O1 -g,-O3)) \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY)
ifdef SANITIZE
OPTIMIZE += -fno-omit-frame-pointer -Wno-maybe-uninitialized \
	-fsanitize=address,undefined -fno-sanitize-recover=all
endif
KERNELS := $(wildcard $(foreach dir,* */* */*/*,src/$(dir).cu))
CUDA := $(if $(SANITIZE),,$(if $(KERNELS),$(NVCC)))
BACKEND ?= $(if $(CUDA),$(DEVICE),cpu)
# $(call remember,NAME,TEXT) is the file build/memo/NAME, which holds TEXT
remember = build/memo/$1$(call memorize,build/memo/$1,$(strip $2))
# make 4.3 forgets to drop the newline at the end of a long file
memorize = $(if $(call same,$(strip $(file <$1)),$2),,$(call rewrite,$1,$2))
same = $(and $(findstring x$1x,x$2x),$(findstring x$2x,x$1x))
rewrite = $(shell mkdir -p $(dir $1))$(file >$1,$2)
variant = $1$(subst /,-,$(B:build%=%))
below = $(wildcard $1/*/$2 $1/*/*/$2 $1/*/*/*/$2)
cpu = $(foreach file,$1,$(if $(findstring /cuda/,$(file)),,$(file)))
here = $(if $(CUDA),$1,$(call cpu,$1))
HEADED := $(patsubst %.h,%.c,$(wildcard src/experiments/*.h))
EXPERIMENTS := $(filter-out $(HEADED),$(wildcard src/experiments/*.c))
LIBRARY := $(call here,$(filter-out $(EXPERIMENTS) \
	$(if $(HAVE_CUPTI),,src/profile/cuda/recorder.c) \
	$(if $(HAVE_NVRTC),,src/jit/cuda/nvrtc.c) \
	$(if $(HAVE_NCCL),,src/dist/cuda/nccl.c),$(call below,src,*.c)))
TEST_C := $(call below,tests,*.c)
TEST_ALL := $(call below,tests,test_*.c)
TEST_MAINS := $(if $(HAVE_CMOCKA),$(call here,$(TEST_ALL)))
TEST_HELPERS := $(filter-out $(TEST_ALL),$(call here,$(TEST_C)))
TEST_SCRIPTS := $(call below,tests,test_*.sh)
PROGRAMS := $(EXPERIMENTS:src/experiments/%.c=$(B)/%)
TEST_PROGRAMS := $(TEST_MAINS:%.c=$(B)/%)
WARNINGS := -std=c11 -Wall -Wextra -Werror
WARNINGS += -Wno-unused-parameter -Wno-missing-field-initializers
# clang would make an error of a loop that it cannot vectorise as asked
WARNINGS += $(if $(findstring clang,$(CC)),-Wno-pass-failed)
# helpers of an assignment's solutions are not called until those are written
WARNINGS += $(if $(wildcard assignment.tsv),-Wno-unused-function)
CFLAGS_ALL = $(WARNINGS) $(OPTIMIZE) -march=native -fopenmp -fPIC \
	-fno-math-errno -fno-trapping-math -I$(S)src -I$(or $(S),.) \
	$(BLAS_CFLAGS) $(CMOCKA_CFLAGS) $(CFLAGS)
CFLAGS_f32 := $(if $(CUDA),-DHAVE_CUDA -DCUDA_ARCH_BUILT='"$(ARCH)"' \
	-I$(CUDA_HOME)/include $(if $(HAVE_NCCL),-DHAVE_NCCL) \
	$(if $(HAVE_NVRTC),-DHAVE_NVRTC) \
	$(if $(HAVE_CUPTI),-DHAVE_CUPTI $(CUPTI_FLAGS))) \
	$(if $(HAVE_MPI),-DHAVE_MPI $(MPI_CFLAGS))
CFLAGS_f64 := -DREAL_IS_DOUBLE
NVCCFLAGS = -std=c++17 -O3 -lineinfo --extended-lambda -I$(S)src \
	-split-compile=0 -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Werror,-fPIC
# $(call code_for,sm_90a): machine code for one architecture, nothing else
code_for = -gencode arch=$(1:sm_%=compute_%),code=$1
FLAGS := $(call remember,$(call variant,flags),$(CC) $(CFLAGS_ALL) \
	$(CFLAGS_f32) $(CUDA) $(NVCCFLAGS) $(call code_for,$(ARCH)))
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 \
	-Wl,--as-needed $(if $(HAVE_NCCL),-lnccl) $(CUPTI_LIBS) \
	$(if $(HAVE_NVRTC),-lnvrtc) \
	-lcublasLt -lcudart -lstdc++
LDLIBS := $(BLAS_LIBS) -Wl,--as-needed $(MPI_LIBS) -lm \
	$(if $(CUDA),$(CUDA_LIBS))
KERNEL_ARCHS := sm_80 sm_90a $(filter-out sm_80 sm_90a,$(ARCH_NEWEST))
OBJECTS_f32 := $(LIBRARY:%.c=$(B)/f32/%.o) \
	$(if $(CUDA),$(KERNELS:%.cu=$(B)/$(ARCH)/%.cu.o))
OBJECTS_f64 := $(patsubst %.c,$(B)/f64/%.o,$(call cpu,$(LIBRARY)))
cc = echo "  cc    $< ($1)"; mkdir -p $(@D); bash src/weave/compile.sh $< \
	$(CC) $(CFLAGS_ALL) $(CFLAGS_$1) -MMD -MP -c -o $@ $<
nvcc = echo "  nvcc  $< ($1)"; mkdir -p $(@D); bash src/weave/compile.sh $< \
	$(NVCC) $(NVCCFLAGS) $(call strict,$<) $(call code_for,$1) \
	-MMD -MP -c -o $@ $<
$(B)/f32/%.o: $(S)%.c $(FLAGS)
	@$(call cc,f32)
$(B)/f64/%.o: $(S)%.c $(FLAGS)
	@$(call cc,f64)
$(foreach arch,$(sort $(ARCH) $(KERNEL_ARCHS)),$(eval \
	$(B)/$(arch)/%.cu.o: $(S)%.cu $(FLAGS); @$$(call nvcc,$(arch))))
KERNEL_OBJECTS := $(if $(NVCC),$(foreach arch,$(KERNEL_ARCHS),\
	$(KERNELS:%.cu=$(B)/$(arch)/%.cu.o)))
KERNEL_REPORT = $(if $(NVCC),$(words $(KERNELS)) sources of kernels compile \
	for each of $(KERNEL_ARCHS),without a working nvcc no kernel is compiled)
strict = $(if $(strip $(foreach name,warp_specialized wgmma split_fp16,\
	$(findstring $(name),$1))),\
	-Xptxas -warn-spills -Xptxas -Werror) \
	$(if $(findstring opcodes,$1),-fmad=false)
build/L/stamp: writeup.nw
	@bash src/weave/tangle.sh --lines $< build/L && touch $@
build/L/src/% build/L/tests/%: build/L/stamp ;
.PRECIOUS: build/L/src/% build/L/tests/%
SHARED := $(if $(SANITIZE),,$(B)/libsystems.so)
OBJECTS_shared := $(filter-out $(B)/f32/src/bench/% \
	$(B)/f32/src/experiments/%,$(OBJECTS_f32))
$(B)/libsystems.so: $(OBJECTS_shared) src/ops/exports.map
	@echo "  link  $@"; mkdir -p $(@D)
	@$(CC) $(OPTIMIZE) -fopenmp -shared -Wl,--version-script=src/ops/exports.map \
		-o $@ $(OBJECTS_shared) $(LDLIBS)
F64_PROGRAMS += tests/ops/test_gradients
F64_PROGRAMS += tests/ops/test_formulas
F64_PROGRAMS += tests/model/test_model
F64_PROGRAMS += tests/dist/test_tensor_parallel
F64_PROGRAMS += tests/model/test_toy tests/ops/test_toy
F64_PROGRAMS += rmsnorm_jvp tests/ops/test_rmsnorm_jvp
# F64_PROGRAMS += problem tests/folder/test_module
real_of = $(if $(filter $1,$(F64_PROGRAMS)),f64,f32)
parts = $(patsubst %.c,$(B)/$1/%.o,$2) $(B)/lib$1.a
define link_rule # $1: program, $2: its sources
$(B)/$1: $(call parts,$(call real_of,$1),$2)
endef
$(foreach source,$(EXPERIMENTS),$(eval $(call link_rule,$(notdir \
	$(basename $(source))),$(source))))
module_of = $(word 2,$(subst /, ,$1))
helpers_of = $(filter $(foreach module,base $(call module_of,$1),\
	tests/$(module)/%),$(TEST_HELPERS))
$(foreach source,$(TEST_MAINS),$(eval $(call link_rule,$(basename \
	$(source)),$(source) $(call helpers_of,$(source)))))
$(TEST_PROGRAMS): TEST_LIBS := $(CMOCKA_LIBS)
$(PROGRAMS) $(TEST_PROGRAMS):
	@echo "  link  $@"; mkdir -p $(@D)
	@$(CC) $(OPTIMIZE) -fopenmp -o $@ $^ $(TEST_LIBS) $(LDLIBS)
listed = $(call remember,$(call variant,lib$1),objects: $(OBJECTS_$1))
$(B)/libf32.a: $(OBJECTS_f32) $(call listed,f32)
$(B)/libf64.a: $(OBJECTS_f64) $(call listed,f64)
$(B)/libf32.a $(B)/libf64.a:
	@rm -f $@; ar rcs $@ $(filter %.o,$^)
MAINS := $(EXPERIMENTS) $(TEST_C)
-include $(wildcard $(patsubst %.o,%.d,$(OBJECTS_f32) $(OBJECTS_f64) \
	$(KERNEL_OBJECTS) $(MAINS:%.c=$(B)/f32/%.o) $(MAINS:%.c=$(B)/f64/%.o)))
SOURCES := $(foreach kind,c h cu cuh,$(call below,src,*.$(kind)))
$(SOURCES): ;
ifdef BLAS_LIBS # configure.sh has run
include build/digests.mk
endif
build/digests.mk: $(addprefix src/weave/,digest.sh items.awk digest.awk) \
		$(SOURCES) \
		$(call remember,sources,sources: $(SOURCES))
	@bash $<; touch $@
comma := ,
define newline :=


endef
json = $(subst ",\",$(subst \,\\,$(strip $1)))
entry = {"directory": "$(CURDIR)", "file": "$1", "command": "$(call json,$2 \
	-c $1)"}
entries = $(foreach source,$1,$(call entry,$(source),$2))
compile_commands.json: $(FLAGS) $(SOURCES) $(TEST_C)
	$(file >$@,[$(subst } {,}$(comma)$(newline){,$(strip \
		$(call entries,$(LIBRARY) $(call here,$(MAINS)),\
			$(CC) $(CFLAGS_ALL) $(CFLAGS_f32)) $(if $(CUDA),\
		$(call entries,$(KERNELS),\
			$(NVCC) $(NVCCFLAGS) $(call code_for,$(ARCH))))))])
	@echo '$@: $(words $(LIBRARY) $(call here,$(MAINS)) \
		$(if $(CUDA),$(KERNELS))) sources'
TARGETS := # whatever the environment says
UNWRITTEN :=
include build/problems.mk
build/problems.mk: writeup.nw src/weave/problems.awk src/weave/unwritten.awk
	@mkdir -p build
	@awk -f src/weave/problems.awk $< >$@.new
	@find src -name '*.c' -o -name '*.cu' | sort | xargs -r \
		awk -v device=$(DEVICE) -f src/weave/unwritten.awk | \
		sed '/\tgpu$$/d; s/^/UNWRITTEN += /; s/\t.*//' >>$@.new
	@mv $@.new $@
TABLES := $(sort $(foreach target,$(TARGETS),$(TABLES_$(target))))
UNCOUNTED := $(if $(HAVE_COUNTERS),,$(if $(filter cuda,$(DEVICE)),\
	kernel_counters))
WRITTEN := $(filter-out $(UNCOUNTED) $(foreach target,$(UNWRITTEN),\
	$(TABLES_$(target))),$(TABLES))
HERE := $(WRITTEN:%=tables/$(MACHINE)/%.tsv)
RECORDED := $(filter-out tables/local/%,$(wildcard tables/*/*.tsv))
READS_cost_model := $(filter-out tables/$(MACHINE)/%,$(RECORDED))
program = $(firstword $(subst -, ,$1))
sweep = $(addprefix --sweep ,$(word 2,$(subst -, ,$1)))
define table_rule # $1: table, $2: its program
tables/$(MACHINE)/$1.tsv: build/digest/$2.$(BACKEND) $(READS_$2) \
		| build/$2 $(SETTLED)
	@$$(if $$(filter $(READS_$2),$$?),rm -f $$@)
	@echo "  run   build/$2 --out $$@ $(sweep)"; mkdir -p $$(@D)
	@$(ALONE) $(ATTEMPT) build/$2 --out $$@ $(sweep)
	@$(if $(UNWRITTEN),[ ! -e $$@ ] ||) grep -q '^# complete: yes' $$@ || \
		{ echo "$$@ is not complete" >&2; exit 1; }
	@$(if $(UNWRITTEN),[ ! -e $$@ ] ||) touch $$@
endef
ATTEMPT := $(if $(UNWRITTEN),bash src/weave/attempt.sh)
.PRECIOUS: $(HERE)
ALONE := flock -F build/measure.lock
WANTED := $(or $(TABLES_$(GOALS)),\
	$(if $(filter experiments writeup.pdf html,$(GOALS)),$(WRITTEN)))
SETTLED := $(if $(filter $(TARGETS) $(TABLES),$(GOALS)),\
	$(foreach table,$(WANTED),build/$(call program,$(table))),\
	$(PROGRAMS))
ifeq ($(B),build) # never measured with SANITIZE or DEBUG
$(foreach table,$(TABLES),$(eval \
	$(call table_rule,$(table),$(call program,$(table)))))
$(patsubst %,tables/$(MACHINE)/flash_benchmarking-%.tsv,errors calls): \
	| $(SHARED)
define after # $1: table
tables/$(MACHINE)/$1.tsv: | $(BEFORE)
BEFORE := tables/$(MACHINE)/$1.tsv
endef
BEFORE :=
$(if $(findstring k,$(filter-out -%,$(firstword $(MAKEFLAGS)))),,\
	$(foreach table,$(WANTED),$(eval $(call after,$(table)))))
endif
tests_of = $(filter $(TESTS_$1:%=$(B)/%),$(TEST_PROGRAMS))
scripts_of = $(filter $(TESTS_$1:%=%.sh),$(TEST_SCRIPTS))
define problem_rule # $1: problem
.PHONY: $1
$1: $(TABLES_$1:%=tables/$(MACHINE)/%.tsv) \
		$(if $(TABLES_$1),,$(call tests_of,$1) \
		$(if $(call scripts_of,$1),$(PROGRAMS) $(SHARED)))
	$(if $(TABLES_$1),,@set -e; for test in $(call tests_of,$1); do \
		$$$$test; done; for test in $(call scripts_of,$1); do \
		BUILD=$(B) bash $$$$test || [ $$$$? = 77 ]; done)
endef
$(foreach target,$(TARGETS),$(eval $(call problem_rule,$(target))))
SINGLE := $(filter-out $(TARGETS),$(TABLES))
.PHONY: $(SINGLE)
$(SINGLE): %: tables/$(MACHINE)/%.tsv
writeup.pdf html/index.html: writeup.nw $(HERE) $(RECORDED) \
	$(wildcard src/weave/* src/plots/*) \
	$(call remember,recorded,recorded: $(RECORDED))
html: html/index.html
export ASAN_OPTIONS ?= detect_leaks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
SKIPPED := $(patsubst %.c,%,$(filter-out $(TEST_MAINS),$(TEST_ALL)))
NO_TESTS := echo 'make: no cmocka, no tests (libcmocka-dev; make deps)' >&2
RUN_TESTS = $(if $(HAVE_CMOCKA),,$(NO_TESTS); exit 2;) \
	SKIPPED='$(SKIPPED)' OMP_WAIT_POLICY=passive \
	$(ALONE) bash src/weave/test.sh $(B) $(TEST_PROGRAMS) $(TEST_SCRIPTS)
build/test-results.tsv: $(PROGRAMS) $(TEST_PROGRAMS) $(SHARED) \
		$(foreach kind,sh py,$(call below,tests,*.$(kind))) \
		$(call below,src,*.py) $(wildcard src/weave/*)
	-@$(RUN_TESTS)
