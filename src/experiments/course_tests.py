"""course_tests: a file of the course's tests, run by pytest on our functions

course_tests.py [--device D] [--limit S] SITE TESTS FILE    SITE: the folder that
	holds the package; TESTS: the course's folder of tests; prints a line for each
	test of the file: column=value, tabs between
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# tell what pytest does
def tell(**what):
	with open(os.environ["COURSE_REPORT"], "a") as report:
		print(json.dumps(what), file=report)


def pytest_collection_finish(session):
	torch = sys.modules.get("torch")
	tell(tests=[item.nodeid.partition("::")[2] for item in session.items],
		device="cuda" if torch and torch.cuda.is_available() else "cpu",
		torch=torch.__version__ if torch else "-")


def pytest_runtest_logreport(report):
	status = "ok" if report.passed else f"{report.outcome}: {reason_of(report)}"
	tell(test=report.nodeid.partition("::")[2], phase=report.when,
		seconds=report.duration, status=status)

# say in one line why a test ended
def one_line(text, last):
	lines = [line.strip() for line in text.split("\n") if line.strip()]
	return " ".join(lines[-1 if last else 0].split())[:160] if lines else "-"


def reason_of(report):
	why = report.longrepr
	if isinstance(why, tuple):                   # skipped: file, line, reason
		return one_line(why[2].removeprefix("Skipped: "), False)
	crash = getattr(why, "reprcrash", None)
	text = crash.message if crash else str(why)
	return one_line(text, not crash or "Traceback" in text)


def reason_in_log(log):
	"""why no test was collected"""
	errors = [line.removeprefix("E ") for line in log.split("\n")
		if "Error" in line or "No module named" in line]
	return one_line("\n".join(errors) or log, True)

# make a copy with our adapters
def make_copy(tests, copy):
	shutil.copytree(tests, copy / "tests")
	shutil.copy(HERE / "course_adapters.py", copy / "tests/adapters.py")
	for folder in tests.parent.parent, tests.parent:
		for name in "pyproject.toml", "pytest.ini":
			if (folder / name).exists():
				shutil.copy(folder / name, copy)
	for folder in tests.parent, tests.parent.parent:
		if (folder / "cs336-basics").is_dir():
			shutil.copytree(folder / "cs336-basics", copy / "cs336-basics")
			break

# run pytest in the copy
def wait(process, limit):
	"""its exit status; raises TimeoutExpired"""
	parent, end = os.getppid(), time.monotonic() + limit
	while True:
		try:
			return process.wait(1)
		except subprocess.TimeoutExpired:
			if os.getppid() != parent:
				sys.exit("course_tests: the program that asked is gone")
			if time.monotonic() > end:
				raise


def run_pytest(site, copy, file, device, limit):
	"""what was told, pytest's output, and how it ended"""
	path = [str(site), str(HERE), str(copy / "cs336-basics"),
		os.environ.get("PYTHONPATH", "")]
	environment = os.environ | {"COURSE_REPORT": str(copy / "report"),
		"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
	if device == "cpu":
		environment["CUDA_VISIBLE_DEVICES"] = ""
	(copy / "report").touch()
	with open(copy / "log", "w") as log:
		pytest = subprocess.Popen([sys.executable, "-m", "pytest", "--tb=short",
			"-p", "course_tests", "-p", "no:cacheprovider", f"tests/{file}"],
			cwd=copy, env=environment, stdin=subprocess.DEVNULL, stdout=log,
			stderr=log, start_new_session=True)
		try:
			end = f"pytest ended with {wait(pytest, limit)}"
		except subprocess.TimeoutExpired:
			end = f"took more than {limit} s"
		finally:
			end_group(pytest)
	told = [json.loads(line) for line in open(copy / "report")]
	return told, (copy / "log").read_text(errors="replace"), end


def end_group(process):
	try:
		os.killpg(process.pid, signal.SIGKILL)
	except ProcessLookupError:
		pass
	process.wait()

# turn what was told into rows
def rows_of(told, log, end):
	begin = told[0] if told else {"tests": [], "device": "-", "torch": "-"}
	common = {"device": begin["device"], "torch": begin["torch"]}
	if not begin["tests"]:
		why = reason_in_log(log)
		kind = "skipped" if "No module named" in why else "failed"
		yield {"test": "-", "seconds": "-", **common, "status": f"{kind}: {why}"}
	lost = f"failed: {end}"
	for test in begin["tests"]:
		phases = [t for t in told[1:] if t["test"] == test]
		bad = [t["status"] for t in phases if t["status"] != "ok"]
		seconds = "-"
		if not phases or phases[-1]["phase"] != "teardown":
			bad, lost = [lost], "skipped: an earlier test ended pytest"
		else:
			seconds = f"{sum(t['seconds'] for t in phases):.3f}"
		yield {"test": test, "seconds": seconds, **common,
			"status": bad[0] if bad else "ok"}

# name the build
def build(site):
	"""12 digits of a hash of the package: its modules and libraries"""
	total = hashlib.sha256()
	for file in sorted((site / "libsystems").iterdir()):
		if file.suffix in (".py", ".so"):
			total.update(file.read_bytes())
	return total.hexdigest()[:12]

# read the script's command line
def main():
	parser = argparse.ArgumentParser(prog="course_tests", description=__doc__)
	parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
	parser.add_argument("--limit", type=int, default=600)
	parser.add_argument("site", type=Path)
	parser.add_argument("tests", type=Path)
	parser.add_argument("file")
	args = parser.parse_args()
	site = args.site.resolve()
	signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
	with tempfile.TemporaryDirectory() as folder:
		copy = Path(folder)
		make_copy(args.tests.resolve(), copy)
		told, log, end = run_pytest(site, copy, args.file, args.device,
			args.limit)
	rows = list(rows_of(told, log, end))
	if any(row["status"].startswith("failed") for row in rows):
		sys.stderr.write(log)
	for row in rows:
		row = row | {"build": build(site)}
		print(*(f"{name}={value}" for name, value in row.items()), sep="\t")


if __name__ == "__main__":
	main()
