"""Writes pictures of every kind, and what Pillow reads in them: the files beside this one.

    pip install pillow==13.0.0 numpy==2.4.6 safetensors==0.8.0
    apt-get install libjpeg-turbo-progs
    python3 tests/golden/pictures/make.py

They are read by tests/data/pictures. pixels.safetensors: of each file, by its name, the bytes of the picture as RGB, on
white if it has an alpha channel. NAME [8 bytes in each number, zeros behind the last]; NAME.size: height, width. animated.webp and arithmetic.jpg are refused, and not among them.
"""

import io
import pathlib
import subprocess

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent


def picture(height, width, channels, seed=0):
    """Waves, hard edges and noise, whose alpha has values of all sizes."""
    noise = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        wave = 0.5 + 0.5 * np.sin(x / (3 + c) + y / (7 - c))
        edges = (x // 5 + y // 9 + c) % 2
        planes.append(0.4 * wave + 0.4 * edges + 0.2 * noise.random((height, width)))
    return np.round(np.stack(planes, -1) * 255).astype(np.uint8)


def saved(values, kind, mode=None, **options):
    file = io.BytesIO()
    image = Image.fromarray(values[..., 0] if values.shape[2] == 1 else values)
    if mode:
        image = Image.frombytes(mode, image.size, image.tobytes())
    image.save(file, kind, **options)
    return file.getvalue()


def jpeg(height, width, channels=3, quality=80, **options):
    return saved(picture(height, width, channels), "JPEG", quality=quality, **options)


def webp(height, width, channels=3, **options):
    return saved(picture(height, width, channels), "WEBP", **options)


def cjpeg(height, width, *options, text=None):
    """What Pillow does not write. `text`: the scans of a JPEG."""
    file = io.BytesIO()
    Image.fromarray(picture(height, width, 3)).save(file, "PPM")
    if text:
        scans = HERE / "scans.txt"
        scans.write_text(text)
        options = (*options, "-scans", str(scans))
    made = subprocess.run(["cjpeg", "-quality", "80", *options], input=file.getvalue(), capture_output=True, check=True)
    if text:
        scans.unlink()
    return made.stdout


def without_adobe(file):
    at = file.index(b"\xff\xee")
    return file[:at] + file[at + 2 + int.from_bytes(file[at + 2:at + 4], "big"):]


def as_ycck(file):
    """The same values, said to be YCCK."""
    at = file.index(b"Adobe") + 11
    return file[:at] + b"\x02" + file[at + 1:]


def turned():
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: a quarter turn
    return jpeg(21, 34, exif=exif)


def pixels(file):
    """As transformers converts images: alpha_composite rounds what it mixes to 8 bits."""
    image = Image.open(io.BytesIO(file))
    if image.mode != "RGB":
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (255, 255, 255)), image).convert("RGB")
    return np.array(image)


def main():
    cmyk = jpeg(29, 37, 4, mode="CMYK")
    files = {
        "444.jpg": jpeg(29, 37, subsampling="4:4:4"),
        "422.jpg": jpeg(29, 37, subsampling="4:2:2"),
        "420.jpg": jpeg(29, 37, subsampling="4:2:0"),
        "411.jpg": cjpeg(29, 37, "-sample", "4x1"),
        "440.jpg": cjpeg(29, 37, "-sample", "1x2"),
        "coarse.jpg": jpeg(40, 33, quality=20),
        "fine.jpg": jpeg(33, 40, quality=97, optimize=True),
        "progressive_444.jpg": jpeg(29, 37, subsampling="4:4:4", progressive=True),
        "progressive_420.jpg": jpeg(37, 29, progressive=True),
        "progressive_grey.jpg": jpeg(30, 31, 1, progressive=True),
        "several_scans.jpg": cjpeg(29, 37, text="0;\n1 2;\n"),
        "uneven.jpg": cjpeg(29, 37, "-sample", "2x2,1x2,2x1"),
        "grey.jpg": jpeg(29, 37, 1),
        "cmyk.jpg": cmyk,
        "cmyk_progressive.jpg": jpeg(18, 23, 4, mode="CMYK", progressive=True),
        "cmyk_without_adobe.jpg": without_adobe(cmyk),
        "ycck.jpg": as_ycck(cmyk),
        "rgb.jpg": jpeg(29, 37, keep_rgb=True),
        "restarts.jpg": jpeg(40, 50, restart_marker_blocks=3),
        "one_pixel.jpg": jpeg(1, 1),
        "one_row.jpg": jpeg(1, 101),
        "one_column.jpg": jpeg(75, 1),
        "turned.jpg": turned(),
        "lossy.webp": webp(29, 37, quality=70),
        "coarse.webp": webp(48, 33, quality=10),
        "lossless.webp": webp(29, 37, lossless=True),
        "alpha.webp": webp(29, 37, 4, quality=70),
        "alpha_coarse.webp": webp(25, 31, 4, quality=40, alpha_quality=30),
        "lossless_alpha.webp": webp(29, 37, 4, lossless=True, exact=True),
        "extended.webp": webp(29, 37, quality=80, icc_profile=b"profile" * 30, exif=b"Exif\0\0of a kind"),
        "one_pixel.webp": webp(1, 1, quality=80),
        "one_row.webp": webp(1, 61, quality=80),
        "rgb.png": saved(picture(29, 37, 3), "PNG"),
        "rgba.png": saved(picture(29, 37, 4), "PNG"),
        "grey.png": saved(picture(29, 37, 1), "PNG"),
    }
    for name, file in files.items():
        (HERE / name).write_bytes(file)
    frames = [Image.fromarray(picture(20, 24, 3, seed)) for seed in (0, 1)]
    frames[0].save(HERE / "animated.webp", save_all=True, append_images=frames[1:])
    (HERE / "arithmetic.jpg").write_bytes(cjpeg(20, 24, "-arithmetic"))
    tensors = {}
    for name, file in files.items():
        values = pixels(file)
        tensors[f"{name}.size"] = np.array(values.shape[:2], np.int64)
        tensors[name] = np.pad(values.reshape(-1), (0, -values.size % 8)).view(np.int64)
    save_file(tensors, HERE / "pixels.safetensors")


if __name__ == "__main__":
    main()
