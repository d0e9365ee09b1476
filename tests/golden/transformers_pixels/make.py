"""Writes what transformers' image processors of nemotron_h_omni and of Qwen's models make of images: the files beside
this one.

    pip install transformers==5.23.0 torch==2.11.0 torchvision==0.26.0 pillow==13.0.0
    python3 tests/golden/transformers_pixels/make.py

Torch must use its kernels for AVX2 or AVX-512, which give the same bits: its other kernels round elsewhere. The files
are read by tests/data/pictures/transformers_pixels_test.cc.

grids.safetensors: grids of patches of 20,000 sizes.
  settings [settings, 5]: patch, pixel shuffle, min_patches, max_patches, and how many of the sizes are theirs.
  grids [sizes]: height, width, rows and columns, of 16 bits each, height in the lowest. 0 rows and columns: the
  processor fails.
smart_grids.safetensors: the same of Qwen2-VL's processor, which Qwen3-VL has too.
NAME.png, NAME.jpg, NAME.webp: small images of several kinds. patches.safetensors: what the processor makes of
  the PNG files; photos.safetensors: of the others.
  NAME.settings [4]: patch, pixel shuffle, min_patches, max_patches. NAME.grid [2]: rows, columns.
  NAME.patches [patches, 3 patch^2] fp32; of a large image only those that NAME.numbers lists.
qwen_patches.safetensors: what the processor of Qwen3-VL makes of all of them, as above, patches row by row and of one
  frame. Pixels have 8 bits there, so patches are bytes, eight of them an int64 and zeros behind the last one: (value -
  127.5) / 127.5 in fp32 is what it gives, to the bit.
siglip_patches.safetensors: what the processor of SigLIP makes of all of them, bicubic as in LLaVA, cut into the whole
  patches that its convolution sees. NAME.settings [2]: patch, pixels of a side. Patches as those of Qwen3-VL.
siglip2_patches.safetensors: the same, bilinear as processors of SigLIP 2 are configured.
"""

import io
import pathlib
import random
import struct
import zlib

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from transformers.models.nemotron_h_omni.image_processing_nemotron_h_omni import (
    NemotronH_Omni_Reasoning_V3ImageProcessor as Processor,
    get_patch_grid_size,
)
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor, smart_resize
from transformers.models.siglip.image_processing_siglip import SiglipImageProcessor

HERE = pathlib.Path(__file__).parent
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6  # colour types of PNG


def grid_of(height, width, patch, shuffle, least, most):
    try:
        rows, cols = get_patch_grid_size(height, width, patch, shuffle, least, most)
        return (rows, cols) if rows and cols else (0, 0)
    except ZeroDivisionError:
        return 0, 0


def smart_grid_of(height, width, patch, merge, least, most):
    try:
        sides = smart_resize(height, width, patch * merge, least * patch ** 2, most * patch ** 2)
        return tuple(side // patch for side in sides)
    except ValueError:  # too thin
        return 0, 0


def write_grids():
    draw = random.Random(20261124)

    def any_size(largest):  # about as many small ones as large ones
        return int(largest ** draw.random()), int(largest ** draw.random())

    def of_patches(patch, most):  # exact multiples, and one pixel beside them
        return tuple(draw.randint(1, most) * patch + draw.choice([-1, 0, 0, 1]) for _ in range(2))

    def thin():
        sides = [draw.randint(1, 40), draw.randint(1000, 60000)]
        draw.shuffle(sides)
        return tuple(sides)

    published = [(16 * rows, 16 * cols) for rows in range(1, 61) for cols in range(1, 61)]
    published += [any_size(16384) for _ in range(5400)] + [of_patches(16, 200) for _ in range(2000)]
    published += [thin() for _ in range(1000)]
    cases = [
        ((16, 2, 1024, 13312), published),
        ((16, 2, 4, 256), [of_patches(16, 30) if i % 2 else any_size(4096) for i in range(4000)]),
        ((16, 2, 1024, 1024), [any_size(4096) for _ in range(500)]),
        ((16, 2, 250, 256), [of_patches(16, 30) for _ in range(500)]),
        ((14, 2, 256, 4096), [of_patches(14, 100) if i % 2 else any_size(4096) for i in range(1000)]),
        ((16, 1, 64, 1024), [of_patches(16, 60) for _ in range(1000)]),
        ((16, 4, 64, 4096), [of_patches(16, 100) for _ in range(1000)]),
    ]
    save_grids(cases, grid_of, "grids.safetensors")
    tokens = [(32 * rows, 32 * cols) for rows in range(1, 41) for cols in range(1, 41)]
    tokens += [of_patches(16, 400) for _ in range(3400)]  # halves of tokens, and one pixel beside them
    tokens += [any_size(16384) for _ in range(5000)] + [thin() for _ in range(1000)]
    save_grids([
        ((16, 2, 256, 65536), tokens),  # published with Qwen3-VL
        ((14, 2, 16, 5120), [of_patches(14, 200) if i % 2 else any_size(8192) for i in range(3000)]),  # defaults
        ((16, 2, 4, 256), [of_patches(16, 60) if i % 2 else any_size(4096) for i in range(4000)]),
        ((16, 2, 1024, 1024), [any_size(4096) for _ in range(1000)]),
        ((16, 1, 64, 1024), [of_patches(16, 60) for _ in range(500)]),
        ((16, 4, 64, 4096), [of_patches(16, 100) for _ in range(500)]),
    ], smart_grid_of, "smart_grids.safetensors")


def save_grids(cases, rule, name):
    settings, grids = [], []
    for setting, sizes in cases:
        settings.append([*setting, len(sizes)])
        for height, width in sizes:
            rows, cols = rule(height, width, *setting)
            grids.append(height | width << 16 | rows << 32 | cols << 48)
    assert len(grids) == 20000
    tensors = {"settings": np.array(settings, np.int64), "grids": np.array(grids, np.int64)}
    save_file(tensors, HERE / name)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(values, color, depth=8, chunks=b""):
    """values: [height, width, channels], or packed bytes [height, bytes of a row] with 8 bits; `chunks` before data."""
    height, width = values.shape[:2]
    if depth < 8:
        width = width * 8 // depth
    rows = values.astype(">u2" if depth == 16 else np.uint8).reshape(height, -1)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(
        b"IEND", b"")


def picture(height, width, channels, largest=255, seed=0):
    """Waves, hard edges and noise: what overshoots, and what an antialias must not miss."""
    noise = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        wave = 0.5 + 0.5 * np.sin(x / (3 + c) + y / (7 - c))
        edges = (x // 5 + y // 9 + c) % 2
        planes.append(0.4 * wave + 0.4 * edges + 0.2 * noise.random((height, width)))
    return np.round(np.stack(planes, -1) * largest)


def saved(values, kind, mode=None):
    file = io.BytesIO()
    values = values.astype(np.uint8)
    image = Image.fromarray(values[..., 0] if values.shape[2] == 1 else values)
    if mode:
        image = Image.frombytes(mode, image.size, image.tobytes())
    image.save(file, kind, quality=80)
    return file.getvalue()


def write_images():
    palette = chunk(b"PLTE", picture(1, 16, 3, seed=3).astype(np.uint8).tobytes())
    packed = (np.arange(30)[:, None] * 7 + np.arange(22)[None] * 29) % 256
    clear = chunk(b"tRNS", struct.pack(">3H", 1, 1, 2))
    stripes = np.packbits((np.arange(2500)[None] // 3 + np.arange(2001)[:, None] // 2) % 2, axis=1)[:, :312]
    images = {  # the file, and patch, pixel shuffle, min_patches, max_patches
        "shrink.png": (png(picture(111, 150, 3), RGB), (16, 2, 4, 24)),
        "grow.png": (png(picture(23, 41, 3), RGB), (16, 2, 18, 64)),
        "own_size.png": (png(picture(32, 64, 3), RGB), (16, 2, 4, 64)),
        "one_side.png": (png(picture(32, 70, 3), RGB), (16, 2, 4, 64)),
        "odd_multiples.png": (png(picture(48, 80, 3), RGB), (16, 2, 4, 16)),
        "thin.png": (png(picture(5, 200, 3), RGB), (16, 2, 4, 32)),
        "tall.png": (png(picture(200, 20, 3), RGB), (14, 2, 4, 32)),
        "rgba.png": (png(picture(61, 47, 4, seed=1), RGBA), (16, 2, 4, 16)),
        "grey.png": (png(picture(61, 47, 1), GREY), (16, 2, 4, 16)),
        "grey_alpha.png": (png(picture(33, 47, 2), GREY_ALPHA), (16, 1, 4, 16)),
        "palette.png": (png(packed, PALETTE, 4, palette + chunk(b"tRNS", bytes([0, 90, 180]))), (16, 4, 4, 16)),
        "clear_color.png": (png(picture(30, 40, 3, 3), RGB, 8, clear), (16, 2, 4, 16)),
        "rgb_16_bits.png": (png(picture(30, 40, 3, 65535), RGB, 16), (16, 2, 4, 16)),
        "rgba_16_bits.png": (png(picture(30, 40, 4, 65535), RGBA, 16), (16, 2, 4, 16)),
        "gamma.png": (png(picture(30, 40, 3), RGB, 8, chunk(b"gAMA", struct.pack(">I", 100000))), (16, 2, 4, 16)),
        "large.png": (png(stripes, GREY, 1), (16, 2, 1024, 13312)),
    }
    photos = {
        "photo.jpg": (saved(picture(111, 75, 3), "JPEG"), (16, 2, 4, 8)),
        "photo_cmyk.jpg": (saved(picture(25, 27, 4), "JPEG", "CMYK"), (16, 2, 8, 64)),
        "photo_grey.jpg": (saved(picture(61, 47, 1), "JPEG"), (14, 2, 4, 8)),
        "drawing.webp": (saved(picture(61, 90, 3), "WEBP"), (16, 2, 4, 8)),
        "drawing_alpha.webp": (saved(picture(47, 61, 4, seed=1), "WEBP"), (16, 2, 4, 8)),
    }
    write_patches(images, "patches.safetensors")
    write_patches(photos, "photos.safetensors")
    write_qwen_patches({**images, **photos})
    write_siglip_patches({**images, **photos}, 3, "siglip_patches.safetensors")
    write_siglip_patches({**images, **photos}, 2, "siglip2_patches.safetensors")


def write_patches(images, stored):
    tensors = {}
    for name, (file, (patch, shuffle, least, most)) in images.items():
        (HERE / name).write_bytes(file)
        name = name.split(".")[0]
        image = Image.open(io.BytesIO(file))
        processor = Processor(patch_size=patch, downsample_ratio=1 / shuffle, min_num_patches=least,
                              max_num_patches=most)
        made = processor(image, return_tensors="pt")
        assert made.pixel_values.dtype == torch.float32
        tensors[f"{name}.settings"] = np.array([patch, shuffle, least, most], np.int64)
        tensors[f"{name}.grid"] = made.image_grid_hw[0].numpy()
        patches = made.pixel_values.numpy()
        if len(patches) > 100:
            # Those where fp32 and fp64 differ most: there windows end elsewhere.
            numbers = np.sort(fp64_differs(image, made.image_grid_hw[0], patch, patches)[-8:])
            tensors[f"{name}.numbers"], patches = numbers.astype(np.int64), patches[numbers]
        tensors[f"{name}.patches"] = patches
    save_file(tensors, HERE / stored)


def write_qwen_patches(images):
    tensors = {}
    for name, (file, (patch, merge, least, most)) in images.items():
        name = name.split(".")[0]
        processor = Qwen2VLImageProcessor(
            patch_size=patch, merge_size=merge, temporal_patch_size=2, image_mean=[0.5] * 3, image_std=[0.5] * 3,
            size={"shortest_edge": least * patch ** 2, "longest_edge": most * patch ** 2})
        made = processor(Image.open(io.BytesIO(file)), return_tensors="pt")
        frames, rows, cols = made.image_grid_thw[0].tolist()
        films = made.pixel_values.view(rows // merge, cols // merge, merge, merge, 3, 2, patch * patch)
        films = films.transpose(1, 2).reshape(rows * cols, 3, 2, patch * patch)
        assert frames == 1 and films.dtype == torch.float32 and torch.equal(films[:, :, 0], films[:, :, 1])
        patches = films[:, :, 0].reshape(rows * cols, -1)
        pixels = (patches * 127.5 + 127.5).round()
        assert torch.equal((pixels - 127.5) / 127.5, patches)
        tensors[f"{name}.settings"] = np.array([patch, merge, least, most], np.int64)
        tensors[f"{name}.grid"] = made.image_grid_thw[0][1:].numpy()
        pixels = pixels.to(torch.uint8).numpy()
        if len(pixels) > 100:
            numbers = np.linspace(0, len(pixels) - 1, 24).astype(np.int64)
            tensors[f"{name}.numbers"], pixels = numbers, pixels[numbers]
        tensors[f"{name}.patches"] = np.pad(pixels.ravel(), (0, -pixels.size % 8)).view(np.int64)
    save_file(tensors, HERE / "qwen_patches.safetensors")


def write_siglip_patches(images, resample, stored):
    patch, side = 7, 31
    whole, tensors = side // patch, {}
    processor = SiglipImageProcessor(size={"height": side, "width": side}, resample=resample, do_convert_rgb=True)
    for name, (file, _) in images.items():
        name = name.split(".")[0]
        made = processor(Image.open(io.BytesIO(file)), return_tensors="pt").pixel_values[0]
        assert made.dtype == torch.float32 and made.shape == (3, side, side)
        seen = made[:, :whole * patch, :whole * patch].reshape(3, whole, patch, whole, patch)
        patches = seen.permute(1, 3, 0, 2, 4).reshape(whole * whole, -1)
        pixels = (patches * 127.5 + 127.5).round()
        assert torch.equal((pixels - 127.5) / 127.5, patches)
        tensors[f"{name}.settings"] = np.array([patch, side], np.int64)
        pixels = pixels.to(torch.uint8).numpy()
        tensors[f"{name}.patches"] = np.pad(pixels.ravel(), (0, -pixels.size % 8)).view(np.int64)
    save_file(tensors, HERE / stored)


def fp64_differs(image, grid, patch, patches):
    """Numbers of the patches in the order of how far they are from a resize in fp64."""
    rows, cols = grid.tolist()
    pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None].double()
    pixels = torch.nn.functional.interpolate(pixels, (rows * patch, cols * patch), mode="bicubic", antialias=True)
    constants = Processor.image_mean, Processor.image_std
    mean, std = (torch.tensor(values, dtype=torch.float64)[:, None, None] for values in constants)
    pixels = (pixels[0] / 255 - mean) / std
    exact = pixels.reshape(3, rows, patch, cols, patch).permute(1, 3, 0, 2, 4).reshape(rows * cols, -1)
    distance = (exact - torch.from_numpy(patches)).abs().amax(1)
    print(f"fp64 differs from fp32 by up to {distance.max():.1e}")
    return distance.argsort().numpy()


if __name__ == "__main__":
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    write_grids()
    write_images()
