/* rows that a peer measures, from answers of a stand-in */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/peer.h"
#include "tests/base/folder.h"
#include "tests/base/program.h"

// write a stand-in for Python
static const char stand_in[] = "#!/bin/sh\n"
	"case $2 in\n"
	"well) echo compiling; echo step_ms=1.5 name=nano loss=2.25 status=ok;;\n"
	"nan) echo step_ms=1.5 loss=nan status=ok;;\n"
	"inf) echo status=ok loss=-inf step_ms=inf;;\n"
	"oom) echo loss=nan status=oom;;\n"
	"two) echo loss=nan status=ok; echo norm=1 status=ok;;\n"
	"late) echo loss=1 status=ok; sleep 9;;\n"
	"early) echo loss=1 status=ok; exit 3;;\n"
	"*) exit 3;;\n"
	"esac\n";

// expect the rows of an answer
#define OURS "1\tsize=xl\t"

static void expect(const char *asked, const char *wanted)
{
	char *rows;
	size_t n;
	Row row = row_new("1");
	row_set(&row, "size", "xl");
	row.to = open_memstream(&rows, &n);
	peer_measure(&row, 1, "none.py", "%s", asked);
	fclose(row.to);
	assert_string_equal(rows, wanted);
	row_free(&row);
	free(rows);
}

// test answers and divergence
static void answers_are_rows(void **state)
{
	expect("well", OURS "step_ms=1.5\tname=nano\tloss=2.25\tstatus=ok\n");
	expect("late", OURS "loss=1\tstatus=ok\n"
		OURS "status=skipped: took more than 1 s\n");
	expect("early", OURS "loss=1\tstatus=ok\n"
		OURS "status=skipped: PyTorch ended early (exit 3)\n");
	expect("silent", OURS "status=skipped: PyTorch could not run (exit 3)\n");
}

static void divergence_has_its_status(void **state)
{
	expect("nan", OURS "step_ms=1.5\tloss=nan\tstatus=diverged: loss is nan\n");
	expect("inf", OURS "loss=-inf\tstep_ms=inf\t"
		"status=diverged: loss is -inf\n");
	expect("oom", OURS "loss=nan\tstatus=oom\n");
	expect("two", OURS "loss=nan\tstatus=diverged: loss is nan\n"
		OURS "norm=1\tstatus=ok\n");
}

// put the stand-in in front of the path
static int make_stand_in(void **state)
{
	char path[64], *all;
	if (make_folder(state))
		return 1;
	snprintf(path, sizeof path, "%s/python3", folder);
	FILE *f = fopen(path, "w");
	if (!f || fputs(stand_in, f) < 0 || fclose(f) || chmod(path, 0700))
		return 1;
	if (asprintf(&all, "%s:%s", folder, getenv("PATH")) < 0)
		return 1;
	setenv("PATH", all, 1);
	free(all);
	return 0;
}

TESTS_BETWEEN(make_stand_in, remove_folder,
	cmocka_unit_test(answers_are_rows),
	cmocka_unit_test(divergence_has_its_status))
