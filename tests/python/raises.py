"""raises: for tests, an error that work() has to raise, with this text"""


def raises(error, text, work):
	try:
		work()
	except error as found:
		assert text in str(found), found
	else:
		raise AssertionError("it was taken: " + text)
