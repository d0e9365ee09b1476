#!/usr/bin/env python3
"""Runs of 8 ranks, with 2 and 4 encoder lanes: the rows that each encoder rank computed, as the ranks wrote them
(--probe), with `data.balance: none` and `images`. Balance must at least halve what the fullest lane has more than the
mean lane, over the step and over each microbatch. usage: lane_counts.py PLAN RECIPE FOLDER"""
import json
import os
import shutil
import struct
import subprocess
import sys

RANKS = 4  # of the encoder; as many of the language model


def rows(path):
    """{microbatch: rows of packed patches} of one rank in one step."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {int(name.split("/")[1]): tensor["shape"][0] for name, tensor in header.items()
            if name.endswith("/vision.patch_and_position")}


def excesses(plan, recipe, folder, lanes, balance, seed):
    """What the fullest lane has more than the mean one, as a share, in each step: of the step, of its microbatches."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tp = RANKS // lanes
    subprocess.run([plan, "launch", recipe, "--local", "--yes", "--steps", "2", "--run-dir", f"{folder}/run", "--probe",
                    f"{folder}/probe", f"modules.radio_encoder.placement.ranks={RANKS}",
                    f"modules.radio_encoder.parallel.tp={tp}", f"modules.language.placement.first_rank={RANKS}",
                    f"modules.language.placement.ranks={RANKS}", "batch.global_samples=64", "batch.micro_samples=4",
                    f"data.balance={balance}", f"data.seed={seed}"], check=True, stdout=subprocess.DEVNULL)
    for step in ("first", "last"):
        of_lane = [rows(f"{folder}/probe/parts/values_{step}.rank{rank:04d}.safetensors")
                   for rank in range(0, RANKS, tp)]
        mean = sum(sum(lane.values()) for lane in of_lane) / lanes
        fullest = max(sum(lane.values()) for lane in of_lane)
        by_microbatch = sum(max(lane[m] for lane in of_lane) for m in of_lane[0])
        yield fullest / mean - 1, by_microbatch / mean - 1


def main(plan, recipe, folder):
    halved = True
    for lanes in (2, 4):
        means = {}
        for balance in ("none", "images"):
            steps = [e for seed in (1, 2, 3) for e in excesses(plan, recipe, folder, lanes, balance, seed)]
            means[balance] = [sum(values) / len(steps) for values in zip(*steps)]
            print(f"{lanes} encoder lanes, balance {balance}: fullest lane over mean {1 + means[balance][0]:.4f} in a "
                  f"step, {1 + means[balance][1]:.4f} in its microbatches")
        halved &= all(2 * after <= before for before, after in zip(means["none"], means["images"]))
    print("the excess is at least halved" if halved else "the excess is NOT halved")
    return 0 if halved else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
