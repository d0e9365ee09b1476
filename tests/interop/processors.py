"""Whether the settings that processor_types.cc has for classes of image processors are those of transformers."""
import json
import pathlib
import re
import sys

import transformers

PLANNER = pathlib.Path(__file__).resolve().parents[2] / "planner"
SOURCE, NORMS = PLANNER / "cli/first/processor_types.cc", PLANNER / "plan/pixel_norm.h"
ENTRY = re.compile(r'\{"(\w+)", "\w+", "(\w+)",\s*R"\((.*?)\)"\}', re.S)
NORM = re.compile(r'\{"(\w+)", \{([\d., ]+)\}, \{([\d., ]+)\}\}')
# Where no entry says otherwise: what the reader of these files takes a key for that is not there. Classes without
# do_convert_rgb fail on images that are not red, green and blue.
USUAL = {"do_resize": [True], "do_rescale": [True], "do_normalize": [True], "do_center_crop": [None, False],
         "do_pad": [None, False], "do_convert_rgb": [None, True], "rescale_factor": [1 / 255]}


def main():
    wrong = []
    entries = ENTRY.findall(SOURCE.read_text())
    norms = {name: {"image_mean": json.loads(f"[{mean}]"), "image_std": json.loads(f"[{deviation}]")}
             for name, mean, deviation in NORM.findall(NORMS.read_text())}
    for name, pixels, text in entries:
        theirs = getattr(transformers, name)
        expected = USUAL | {key: [value] for key, value in (json.loads(text) | norms[pixels]).items()}
        for key, values in expected.items():
            value = getattr(theirs, key, None)
            value = list(value) if isinstance(value, tuple) else value
            if value not in values:
                wrong.append(f"{name}: {key} is {value} in transformers, and here {values[0]}")
    if len(entries) < 2:
        wrong.append(f"{SOURCE}: no classes were found")
    print("\n".join(wrong) or f"image processors: settings of {len(entries)} classes are those of transformers")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
