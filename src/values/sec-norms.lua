-- course tests: how many of a file ("test_fsdp") ended so (ok, failed, skipped);
-- test: only those whose name begins so
course_ended = function(how, edition, file, test)
	return count(course_tests{edition=edition, file=file .. ".py"},
		"status:match('^%a+') == how and tostring(test):sub(1, #start) == start",
		{how=how, start=test or ""})
end
course_all = function(...) return course_ended("ok", ...) > 0
	and course_ended("failed", ...) == 0 end
-- "4 of 4"
course_passed = function(...) return ("%d of %d"):format(course_ended("ok", ...),
	course_ended("ok", ...) + course_ended("failed", ...)) end
course_one = course_tests{edition="2026", test="test_fsdp_correctness[fp16]"}
-- by how much a weight differs in the test of equal bits; 0: it passed
course_off = tonumber(course_tests{edition="2026",
	test="test_fsdp_correctness[fp32]"}.status:match("Max diff: (%S+)")) or 0
