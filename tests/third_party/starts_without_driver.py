"""Checks that the loader finds every library of an executor for GPUs, and needs none of NVIDIA's driver.

    starts_without_driver.py EXECUTOR

A machine without GPUs has no driver, and the same executor trains there on CPUs. Run without LD_LIBRARY_PATH: the RPATH
alone must find the libraries.
"""
import os
import re
import subprocess
import sys

environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
needed = subprocess.run(["ldd", sys.argv[1]], env=environment, check=True, capture_output=True, text=True).stdout
lines = [line.strip() for line in needed.splitlines()]
assert any(line.startswith("libtorch_cuda.so") for line in lines), f"this executor is for CPUs:\n{needed}"
wrong = [line for line in lines if "not found" in line or re.match(r"libcuda\.so|libnvidia", line)]
print("\n".join(wrong) or f"{len(lines)} libraries, none of the driver")
sys.exit(1 if wrong else 0)
