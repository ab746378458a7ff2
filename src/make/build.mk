# The rules behind the Makefile: objects, programs, digests, tables.
SETTINGS := CC MPICC NVCC BLAS_CFLAGS BLAS_LIBS CMOCKA_CFLAGS CMOCKA_LIBS
given = $(if $(filter environment command,$(origin $1)),$($1))
$(foreach name,$(SETTINGS),$(eval GIVEN_$(name) := $$(call given,$(name))))
differ = $(subst x$1,,x$2)$(subst x$2,,x$1)
changed = $(if $(GIVEN_$(name)),\
	$(call differ,$(GIVEN_$(name)),$(ASKED_$(name))))
include build/config.mk
build/config.mk: src/make/configure.sh
	@SETTINGS='$(SETTINGS)' bash $<
ifneq ($(GPUS),$(sort $(wildcard /dev/nvidia[0-9]*)))
build/config.mk: FORCE
endif
ifneq (,$(if $(MAKE_RESTARTS),,$(strip $(foreach name,$(SETTINGS),$(changed)))))
build/config.mk: FORCE
endif
ifneq (,$(NOWEB_IS_THERE))
src/make/configure.sh $(addprefix src/make/,problems.awk digest.sh items.awk \
		digest.awk): \
	| build/tangled.mk ;
build/digests.mk: | build/tangled.mk
endif
OFF := 0 no off false
override SANITIZE := $(filter-out $(OFF),$(SANITIZE))
override DEBUG := $(filter-out $(OFF),$(DEBUG))
# files so far below a folder: $(call below,src,*.c)
below = $(wildcard $1/*/$2 $1/*/*/$2 $1/*/*/*/$2)
KERNELS := $(call below,src,*.cu)
# not empty if code for GPUs is compiled: where one can run it, or with CUDA=1
CUDA := $(filter cuda,$(DEVICE))
override CUDA := $(filter-out $(OFF),$(CUDA))
ifneq (yes,$(and $(HAVE_CUDA),$(KERNELS),$(if $(SANITIZE),,yes)))
override CUDA := # there is nothing to compile, or nothing to compile it with
endif
WITHOUT_GPU := $(if $(CUDA),$(filter cpu,$(DEVICE)))
V := $(if $(SANITIZE),-asan)$(if $(DEBUG),-debug)$(if $(WITHOUT_GPU),-cuda)
B := build$(subst -,/,$V)
BACKEND ?= $(if $(CUDA),$(DEVICE),cpu)
OPTIMIZE := -O3 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
ifdef SANITIZE
OPTIMIZE := -O1 -g -U_FORTIFY_SOURCE
SANITIZERS := -fno-omit-frame-pointer -Wno-maybe-uninitialized \
	-fsanitize=address,undefined -fno-sanitize-recover=all
endif
S := # sources are those of this folder
ifdef DEBUG
OPTIMIZE := -O0 -g -U_FORTIFY_SOURCE
S := build/L/
endif
OPTIMIZE += $(SANITIZERS)
# TEXT, a variable of each of these files, is what it holds
build/%.text: FORCE
	@$(file >$@.new,$(strip $(TEXT)))
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
without_cuda = $(foreach file,$1,$(if $(findstring /cuda/,$(file)),,$(file)))
here = $(if $(CUDA),$1,$(call without_cuda,$1))
EXPERIMENTS := $(wildcard src/experiments/*.c)
TEST_C := $(call below,tests,*.c)
TEST_ALL := $(call below,tests,test_*.c)
TEST_MAINS := $(if $(HAVE_CMOCKA),$(call here,$(TEST_ALL)))
TEST_HELPERS := $(filter-out $(TEST_ALL),$(call here,$(TEST_C)))
TEST_SCRIPTS := $(call below,tests,test_*.sh)
PROGRAMS := $(EXPERIMENTS:src/experiments/%.c=$(B)/%)
TEST_PROGRAMS := $(TEST_MAINS:%.c=$(B)/%)
NVIDIA := NCCL NVRTC CUPTI
NEEDS_NCCL := src/dist/cuda/nccl.c
NEEDS_NVRTC := src/jit/cuda/nvrtc.c
NEEDS_CUPTI := src/profile/cuda/recorder.c
LEFT_OUT := $(foreach name,$(NVIDIA),$(if $(HAVE_$(name)),,$(NEEDS_$(name))))
LIBRARY := $(call here,$(filter-out $(EXPERIMENTS) $(LEFT_OUT),\
	$(call below,src,*.c)))
WARNINGS := -std=c11 -Wall -Wextra -Werror
WARNINGS += -Wno-unused-parameter -Wno-missing-field-initializers
# clang would make an error of a loop that it cannot vectorise as asked
WARNINGS += $(if $(IS_CLANG),-Wno-pass-failed)
# what serves an assignment's solutions is not used until those are written
WARNINGS += $(if $(wildcard assignment.tsv),-Wno-unused-function \
	-Wno-unused-const-variable)
CFLAGS_ALL = $(WARNINGS) $(OPTIMIZE) -march=native -fopenmp -fPIC \
	-ffp-contract=off -fno-math-errno -fno-trapping-math \
	-I$(S)src -I$(or $(S),.) \
	$(BLAS_CFLAGS) $(CMOCKA_CFLAGS) $(CFLAGS)
string_of_c = "$(subst ",\",$(subst \,\\,$1))"
word_of_shell = $(call quoted,$(string_of_c))
CFLAGS_f64 := -DREAL_IS_DOUBLE -DC_COMPILER=$(call word_of_shell,$(COMPILER))
CFLAGS_f32 := -DC_COMPILER=$(call word_of_shell,$(COMPILER))
CFLAGS_f32 += $(if $(HAVE_MPI),-DHAVE_MPI $(MPI_CFLAGS) \
	-DMPIRUN=$(call word_of_shell,$(MPIRUN)))
LDLIBS := $(BLAS_LIBS) -Wl,--as-needed $(MPI_LIBS) -lm
ifdef CUDA
CFLAGS_f32 += -DHAVE_CUDA -DCUDA_ARCH_BUILT='"$(ARCH)"' \
	-I$(CUDA_HOME)/include $(CUPTI_FLAGS) \
	$(foreach name,$(NVIDIA),$(HAVE_$(name):%=-DHAVE_$(name)))
LDLIBS += -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 \
	-Wl,--as-needed $(foreach name,$(NVIDIA),$($(name)_LIBS)) \
	-lcublasLt -lcudart -lstdc++
endif
NVCCFLAGS = -std=c++17 -O3 -lineinfo --extended-lambda -I$(S)src \
	$(NVCC_SPLIT) -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-Werror,-fPIC
# $(call code_for,sm_90a): machine code for one architecture, nothing else
code_for = -gencode arch=$(1:sm_%=compute_%),code=$1
FLAGS := build/flags$V.text
$(FLAGS): TEXT = $(COMPILER) $(CFLAGS_ALL) $(CFLAGS_f32)
KERNEL_FLAGS := build/kernel-flags.text
$(KERNEL_FLAGS): TEXT = $(NVCC) $(NVCCFLAGS)
OBJECTS_f32 := $(LIBRARY:%.c=$(B)/f32/%.o)
OBJECTS_f64 := $(patsubst %.c,$(B)/f64/%.o,$(call without_cuda,$(LIBRARY)))
OLDER = $(if $(findstring /cuda/,$<),\
	-D_GNU_SOURCE= -include device/cuda/older.h)
compile = echo "  cc    $< ($1)"; mkdir -p $(@D); bash src/make/compile.sh $< \
	$(COMPILER) $(CFLAGS_ALL) $(CFLAGS_$1) $(OLDER) -MMD -MP -c -o $@ $<
$(B)/f32/%.o: $(S)%.c $(FLAGS)
	@$(call compile,f32)
$(B)/f64/%.o: $(S)%.c $(FLAGS)
	@$(call compile,f64)
-include $(shell find $(B)/f32 $(B)/f64 -name '*.d' 2>/dev/null)
K := build$(if $(DEBUG),/debug)
kernels_for = $(KERNELS:%.cu=$K/$1/%.cu.o)
KERNEL_ARCHS := sm_80 sm_90a $(filter-out sm_80 sm_90a,$(ARCH_NEWEST))
OBJECTS_f32 += $(if $(CUDA),$(call kernels_for,$(ARCH)))
define kernel_rule # $1: architecture
$K/$1/%.cu.o: $(S)%.cu $(KERNEL_FLAGS)
	@echo "  nvcc  $$< ($1)"; mkdir -p $$(@D); bash src/make/compile.sh $$< \
		$(NVCC) $(NVCCFLAGS) $$(FLAGS_OF_KERNEL) $(call code_for,$1) \
		-MMD -MP -c -o $$@ $$<
endef
$(foreach arch,$(sort $(ARCH) $(KERNEL_ARCHS)),$(eval \
	$(call kernel_rule,$(arch))))
-include $(shell find $K/sm_* -name '*.d' 2>/dev/null)
in_name = $(strip $(foreach word,$1,$(findstring $(word),$<)))
NO_SPILLS := $(if $(filter 13.0 13.5,$(NVCC_RELEASE)),\
	-Xptxas -warn-spills -Xptxas -Werror)
FLAGS_OF_KERNEL = $(if $(call in_name,warp_specialized wgmma split_fp16),\
	$(NO_SPILLS)) \
	$(if $(call in_name,opcodes),-fmad=false)
KERNEL_TESTS := $(addprefix build/cuda/tests/,profile/cuda/test_kernel_names \
	$(if $(HAVE_NVRTC),jit/cuda/test_nvrtc))
ifdef HAVE_CUDA
KERNEL_OBJECTS := $(foreach arch,$(KERNEL_ARCHS),$(call kernels_for,$(arch)))
LINKED_WITH_CUDA := $(if $(filter cpu,$(DEVICE)),build/cuda/peaks \
	$(if $(HAVE_CMOCKA),$(KERNEL_TESTS)),$(PROGRAMS))
define CHECK_KERNELS
@+$(MAKE) CUDA=1 SANITIZE= DEBUG= $(LINKED_WITH_CUDA)
@set -e; for test in $(filter build/cuda/tests/%,$(LINKED_WITH_CUDA)); do \
	$$test >build/said.log 2>&1 || { cat build/said.log; exit 1; }; done
@echo 'kernels: $(words $(KERNELS)) sources compile for each of' \
	'$(strip $(KERNEL_ARCHS)), and programs are linked'
endef
else
CHECK_KERNELS = @echo 'kernels: without a working nvcc no kernel is compiled'
endif
build/L/stamp: writeup.nw
	@bash src/make/tangle.sh --lines $< build/L && touch $@
build/L/src/% build/L/tests/%: build/L/stamp ;
.PRECIOUS: build/L/src/% build/L/tests/%
SHARED := $(if $(SANITIZE),,$(B)/libsystems.so)
shared_objects = $(filter-out $(foreach folder,bench cases estimate,\
	$(B)/$1/src/$(folder)/%),$(OBJECTS_$1))
define shared_rule # $1: library, $2: of its objects
$1: $(call shared_objects,$2) src/ops/exports.map
	@echo "  link  $$@"; mkdir -p $$(@D)
	@$(COMPILER) $(OPTIMIZE) -fopenmp -shared \
		-Wl,--version-script=src/ops/exports.map -o $$@ \
		$(call shared_objects,$2) $(LDLIBS)
endef
$(eval $(call shared_rule,$(B)/libsystems.so,f32))
SHARED64 := $(if $(SANITIZE),,$(B)/libsystems64.so)
$(eval $(call shared_rule,$(B)/libsystems64.so,f64))
ifdef SHARED
build/package/libsystems.pc: $(SHARED) $(SHARED64) FORCE # also of another B
	@bash src/make/package.sh $(@D) $(SHARED) $(SHARED64)
endif
SITE := $(SHARED:%/libsystems.so=%/site/stamp)
build/torch.text: TEXT = $(shell python3 src/python/backend.py 2>/dev/null)
$(SITE): build/torch.text src/make/site.sh src/make/package.sh $(SHARED) \
		$(SHARED64) $(wildcard src/python/*.* src/python/libsystems/*.*)
	@MAKEFLAGS=$(call quoted,$(MAKEOVERRIDES)) bash src/make/site.sh $(@D) $<
	@touch $@
F64_PROGRAMS += tests/ops/test_gradients
F64_PROGRAMS += tests/ops/test_formulas
F64_PROGRAMS += tests/model/test_model
F64_PROGRAMS += tests/dist/test_tensor_parallel
F64_PROGRAMS += tests/model/test_toy tests/ops/test_relu_layernorm
F64_PROGRAMS += rmsnorm_jvp tests/ops/test_rmsnorm_jvp
# F64_PROGRAMS += problem tests/folder/test_module
real_of = $(if $(filter $1,$(F64_PROGRAMS)),f64,f32)
parts = $(patsubst %.c,$(B)/$1/%.o,$2) $(B)/lib$1.a
define link_rule # $1: program, $2: its sources
$(B)/$1: $(call parts,$(call real_of,$1),$2)
endef
program_of = $(patsubst src/experiments/%,%,$(basename $1))
$(foreach source,$(EXPERIMENTS),$(eval \
	$(call link_rule,$(call program_of,$(source)),$(source))))
module_of = $(word 2,$(subst /, ,$1))
helpers_of = $(filter $(foreach module,base $(call module_of,$1),\
	tests/$(module)/%),$(TEST_HELPERS))
$(foreach source,$(TEST_MAINS),$(eval $(call link_rule,$(basename \
	$(source)),$(source) $(call helpers_of,$(source)))))
$(TEST_PROGRAMS): TEST_LIBS := $(CMOCKA_LIBS)
$(PROGRAMS) $(TEST_PROGRAMS):
	@echo "  link  $@"; mkdir -p $(@D)
	@$(COMPILER) $(OPTIMIZE) -fopenmp -o $@ $^ $(TEST_LIBS) $(LDLIBS)
build/objects-f32$V.text: TEXT = $(OBJECTS_f32)
build/objects-f64$V.text: TEXT = $(OBJECTS_f64)
$(B)/libf32.a: $(OBJECTS_f32) build/objects-f32$V.text
$(B)/libf64.a: $(OBJECTS_f64) build/objects-f64$V.text
$(B)/libf32.a $(B)/libf64.a:
	@rm -f $@; ar rcs $@ $(filter %.o,$^)
MAINS := $(EXPERIMENTS) $(TEST_C)
SOURCES := $(foreach kind,c h cu cuh,$(call below,src,*.$(kind)))
$(SOURCES): ;
ifdef BLAS_LIBS # configure.sh has run
include build/digests.mk
endif
build/sources.text: TEXT = $(SOURCES)
build/digests.mk: $(addprefix src/make/,digest.sh items.awk digest.awk) \
		$(SOURCES) build/sources.text
	@bash $<; touch $@
compile_commands.json: $(FLAGS) $(KERNEL_FLAGS) $(SOURCES) $(TEST_C)
	@printf '%s\n' $(LIBRARY) $(call here,$(MAINS)) $(if $(CUDA),$(KERNELS)) | \
		awk -v host=$(FLAGS) -v kernel=$(KERNEL_FLAGS) \
		-v for_gpu='$(call code_for,$(ARCH))' -f src/make/commands.awk >$@
TARGETS := # whatever the environment says
UNWRITTEN :=
include build/problems.mk
build/problems.mk: writeup.nw src/make/problems.awk src/make/unwritten.awk
	@awk -f src/make/problems.awk $< >$@.new
	@find src -name '*.c' -o -name '*.cu' | sort | xargs -r \
		awk -v device=$(DEVICE) -f src/make/unwritten.awk | \
		sed '/\tgpu$$/d; s/^/UNWRITTEN += /; s/\t.*//' >>$@.new
	@mv $@.new $@
TABLES := $(sort $(foreach target,$(TARGETS),$(TABLES_$(target))))
NOT_HERE := $(foreach target,$(UNWRITTEN),$(TABLES_$(target)))
ifeq ($(DEVICE)$(HAVE_COUNTERS),cuda) # a GPU, and no permission
NOT_HERE += kernel_counters
endif
ifeq ($(MACHINE),local)
NOT_HERE += several_nodes several_nodes-buckets
endif
ifeq (,$(strip $(COURSE))) # no copy of the course's repository
NOT_HERE += course_tests
endif
MADE_HERE := $(filter-out $(NOT_HERE),$(TABLES))
HERE := $(MADE_HERE:%=tables/$(MACHINE)/%.tsv)
RECORDED := $(filter-out tables/local/%,$(wildcard tables/*/*.tsv))
READS_cost_model := $(filter-out tables/$(MACHINE)/%,$(RECORDED))
program = $(firstword $(subst -, ,$1))
sweep = $(addprefix --sweep ,$(word 2,$(subst -, ,$1)))
define table_rule # $1: table, $2: its program
tables/$(MACHINE)/$1.tsv: build/digest/$2.$(BACKEND) $(READS_$2) \
		| build/$2 $(SETTLED)
	@$$(if $$(filter $(READS_$2),$$?),rm -f $$@)
	@echo "  run   build/$2 --out $$@ $(sweep)"; mkdir -p $$(@D)
	@$$(ALONE) $(ATTEMPT) build/$2 --out $$@ $(sweep) $(FEWER_$2)
	@$(MAY_WAIT) { grep -q '^# complete: yes' $$@ && touch $$@; } || \
		{ echo "$$@ is not complete" >&2; exit 1; }
endef
.PRECIOUS: $(HERE)
ifeq ($(MACHINE)-$(BACKEND),local-cpu)
FEWER_benchmarking_script := --steps 3
FEWER_gradient_checkpointing := --warmup 1 --steps 2
FEWER_kernel_speed := --footprint 64
FEWER_layer_norm := --repeats 3 --steps 2
FEWER_rmsnorm_benchmarking := --repeats 3
FEWER_torch_compile := --steps 2
endif
ifneq (,$(UNWRITTEN))
ATTEMPT := bash src/make/attempt.sh
MAY_WAIT = [ ! -e $$@ ] ||
endif
ALONE = $(call lock,measure)
ALL_TABLES := $(filter experiments writeup.pdf notes.pdf html,$(GOALS))
WANTED := $(or $(TABLES_$(GOALS)),$(if $(ALL_TABLES),$(MADE_HERE)))
ifneq (,$(filter $(TARGETS) $(TABLES),$(GOALS)))
SETTLED := $(foreach table,$(WANTED),build/$(call program,$(table)))
else
SETTLED := $(PROGRAMS)
endif
ifeq ($(B),build) # only programs of the normal build measure
$(foreach table,$(TABLES),$(eval \
	$(call table_rule,$(table),$(call program,$(table)))))
$(patsubst %,tables/$(MACHINE)/%.tsv,flash_benchmarking-errors \
	flash_benchmarking-calls pytorch_ddp_peers course_tests): | $(SITE)
define after # $1: table
tables/$(MACHINE)/$1.tsv: | $(BEFORE)
BEFORE := tables/$(MACHINE)/$1.tsv
endef
BEFORE :=
ONE_LETTER := $(filter-out -%,$(firstword $(MAKEFLAGS))) # options such as k
ifeq (,$(findstring k,$(ONE_LETTER)))
$(foreach table,$(WANTED),$(eval $(call after,$(table))))
endif
endif
.PHONY: $(TARGETS)
define tables_rule # $1: a problem that has tables
$1: $(TABLES_$1:%=tables/$(MACHINE)/%.tsv)
endef
define tests_rule # $1: a problem that has none
$1: $(call tests_of,$1) $(if $(call scripts_of,$1),$(PROGRAMS) $(SITE))
	@for test in $(call tests_of,$1); do $$$$test; done
	@for test in $(call scripts_of,$1); do \
		BUILD=$(B) bash $$$$test || [ $$$$? = 77 ]; done
endef
tests_of = $(filter $(TESTS_$1:%=$(B)/%),$(TEST_PROGRAMS))
scripts_of = $(filter $(TESTS_$1:%=%.sh),$(TEST_SCRIPTS))
$(foreach target,$(TARGETS),$(eval $(call \
	$(if $(TABLES_$(target)),tables,tests)_rule,$(target))))
SINGLE := $(filter-out $(TARGETS),$(TABLES))
.PHONY: $(SINGLE)
$(SINGLE): %: tables/$(MACHINE)/%.tsv
writeup.pdf: notes.pdf
writeup.pdf notes.pdf html/index.html: writeup.nw $(HERE) $(RECORDED) \
	$(wildcard src/weave/* src/plots/* src/values/*) build/recorded.text
build/recorded.text: TEXT = $(RECORDED)
html: html/index.html
export ASAN_OPTIONS ?= detect_leaks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
SKIPPED := $(patsubst %.c,%,$(filter-out $(TEST_MAINS),$(TEST_ALL)))
NO_TESTS := echo 'make: no cmocka, no tests (libcmocka-dev; make deps)' >&2
RUN_TESTS = $(if $(HAVE_CMOCKA),,$(NO_TESTS); exit 2;) \
	$(ALONE) SKIPPED='$(SKIPPED)' OMP_WAIT_POLICY=passive \
	bash src/make/test.sh $(B) $(TEST_PROGRAMS) $(filter-out $(if $(SANITIZE),\
	tests/make/% tests/weave/%),$(TEST_SCRIPTS))
build/test-results.tsv: $(PROGRAMS) $(TEST_PROGRAMS) $(SITE) \
		$(foreach kind,sh py,$(call below,tests,*.$(kind))) \
		$(call below,src,*.py) $(wildcard src/make/* src/weave/* src/values/*)
	-@$(RUN_TESTS)
