"""fp8_golden: writes tests/golden/fp8.txt, FP8 as the package ml_dtypes has it

A line is FORMAT "is" or "to", the bits of an fp32 number, and a code: the code
is that number exactly, or the number rounds to it."""
import ml_dtypes
import numpy as np

FORMATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def lines(name, kind):
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(kind).astype(np.float32)
    for code, bits in zip(codes, values.view(np.uint32)):
        yield f"{name} is {bits:08x} {code:02x}"
    finite = np.unique(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / np.float32(2)
    for x in np.concatenate([np.nextafter(middle, np.float32(-np.inf)), middle,
                             np.nextafter(middle, np.float32(np.inf))]):
        code = np.array(x, np.float32).astype(kind).view(np.uint8)
        yield f"{name} to {np.float32(x).view(np.uint32):08x} {code:02x}"


if __name__ == "__main__":
    with open("tests/golden/fp8.txt", "w") as out:
        for name, kind in FORMATS.items():
            out.writelines(line + "\n" for line in lines(name, kind))
