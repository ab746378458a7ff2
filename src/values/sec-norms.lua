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
-- the first weight that differs in the test of equal bits, and by how much
course_equal = function(machine)
	return on(machine).course_tests{edition="2026",
		test="test_fsdp_correctness[fp32]"}.status
end
course_first = function(machine)
	return course_equal(machine):match("Parameter (%S+)") or "none"
end
course_apart = function(machine)
	return tonumber(course_equal(machine):match("Max diff: (%S+)") or 0)
end
