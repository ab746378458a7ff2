-- course_tests.lua: laws of its table
tables("course_tests", "edition file test")
law("each of the course's tests has one row", "rows('edition file test') == 1")
law("an edition of the course's tests is one version",
	"fixed('version', 'edition')")
law("all of the course's tests ran on one build", "fixed('build', '')")
law("a test of the course passed, or says why not", "status == 'ok' or",
	"status:find('^failed: %S') ~= nil or status:find('^skipped: %S') ~= nil")
law("a test of the course that passed took time",
	"status ~= 'ok' or seconds >= 0")
