"""Writes pictures of every kind, and what Pillow reads in them: the files beside this one.

    pip install pillow==13.0.0 numpy==2.4.6 safetensors==0.8.0
    apt-get install libjpeg-turbo-progs
    python3 tests/golden/pictures/make.py

They are read by tests/data/pictures. pixels.safetensors: of each file, by its name, the bytes of the picture as RGB, on
white if it has an alpha channel. NAME [8 bytes in each number, zeros behind the last]; NAME.size: height, width.
animated.webp and arithmetic.jpg are refused, and not among them. turned.safetensors: the same of files of the folder
`turned`, as ImageOps.exif_transpose turns them, with NAME.orientation.
"""

import io
import pathlib
import struct
import subprocess
import zlib

import numpy as np
from PIL import ExifTags, Image, ImageOps
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


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(height, width, kind, bits, *chunks, behind=(), seed=7):
    """A PNG of noise with chunks before and behind its pixels. `kind`: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6
    RGBA."""
    values = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    noise = np.random.default_rng(seed)
    rows = [b"\0" + noise.integers(0, 256, (width * values * bits + 7) // 8, np.uint8).tobytes() for _ in range(height)]
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)) +
            b"".join(chunks) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + b"".join(behind) + chunk(b"IEND", b""))


def pngs():
    """Kinds of PNG. The high eight of 16 bits count, and no gamma does. Some have an alpha, which names say."""
    linear, srgb = chunk(b"gAMA", struct.pack(">I", 100_000)), chunk(b"sRGB", b"\0")
    palette = chunk(b"PLTE", np.random.default_rng(3).integers(0, 256, 48, np.uint8).tobytes())
    return {
        "deep_rgb.png": png(5, 16, 2, 16), "deep_alpha.png": png(5, 16, 6, 16), "deep_grey_alpha.png": png(5, 16, 4, 16),
        "deep_srgb.png": png(5, 16, 2, 16, srgb), "deep_gamma.png": png(5, 16, 2, 16, linear),
        "gamma.png": png(5, 16, 2, 8, linear), "gamma_alpha.png": png(5, 16, 6, 8, linear),
        "gamma_grey.png": png(5, 16, 0, 8, linear), "palette.png": png(5, 16, 3, 4, palette),
        "palette_gamma.png": png(5, 16, 3, 4, linear, palette),
        "palette_alpha.png": png(5, 16, 3, 4, palette, chunk(b"tRNS", bytes(range(0, 240, 16)))),
        "grey_alpha.png": png(5, 16, 4, 8), "grey_key_alpha.png": png(5, 16, 0, 8, chunk(b"tRNS", b"\0\x44")),
        "rgb_key_alpha.png": png(5, 16, 2, 8, chunk(b"tRNS", b"\0\x44\0\x21\0\x90")),
        "grey_1.png": png(5, 16, 0, 1), "grey_2.png": png(5, 16, 0, 2), "grey_4.png": png(5, 16, 0, 4)}


def exif(orientation, byte_order=">", kind="H"):
    """A TIFF with a tag before and one behind the orientation."""
    mark = b"MM" if byte_order == ">" else b"II"
    value = struct.pack(byte_order + kind, orientation).ljust(4, b"\0")
    entries = [struct.pack(byte_order + "HHI", 256, 4, 1) + struct.pack(byte_order + "I", 40),
               struct.pack(byte_order + "HHI", 274, {"H": 3, "I": 4}[kind], 1) + value,
               struct.pack(byte_order + "HHI", 282, 5, 1) + struct.pack(byte_order + "I", 50)]
    return mark + struct.pack(byte_order + "HIH", 42, 8, len(entries)) + b"".join(entries) + b"\0" * 12


def xmp(orientation, as_attribute=True):
    inside = (f'<rdf:Description tiff:Orientation="{orientation}"/>' if as_attribute else
              f"<rdf:Description><tiff:Orientation>{orientation}</tiff:Orientation></rdf:Description>")
    return f"<x:xmpmeta xmlns:x='adobe:ns:meta/'>{inside}</x:xmpmeta>".encode()


def profile(orientation):
    """EXIF as ImageMagick writes it into a text."""
    data = b"Exif\0\0" + exif(orientation)
    digits = data.hex()
    lines = [digits[i:i + 72] for i in range(0, len(digits), 72)]
    return f"\nexif\n{len(data):8}\n".encode() + "\n".join(lines).encode() + b"\n"


def with_segments(file, *contents):
    """A JPEG with segments APP1 behind its first one."""
    at = 4 + int.from_bytes(file[4:6], "big")
    return file[:at] + b"".join(b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data for data in contents) + file[at:]


def with_webp_chunks(exif_data=None, xmp_data=b""):
    return webp(7, 10, quality=60, exif=exif_data or b"", xmp=xmp_data)


def turned_files():
    """Files that say in all ways how they are to be turned."""
    plain, head, of_xmp = jpeg(7, 10), b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
    raw, text = b"Raw profile type exif\0", b"XML:com.adobe.xmp\0"
    files = {f"{n}.jpg": with_segments(plain, head + exif(n, "<" if n % 2 else ">")) for n in range(1, 9)}
    return files | {
        "long.jpg": with_segments(plain, head + exif(5, ">", "I")),
        "none.jpg": with_segments(plain, head + exif(9)),
        "zero.jpg": with_segments(plain, head + exif(0), of_xmp + xmp(6)),
        "twice.jpg": with_segments(plain, head + head + exif(8)),
        "cut.jpg": with_segments(plain, head + exif(6)[:20]),
        "xmp.jpg": with_segments(plain, of_xmp + xmp(6)),
        "xmp_element.jpg": with_segments(plain, of_xmp + xmp(3, False)),
        "xmp_last.jpg": with_segments(plain, of_xmp + xmp(2), of_xmp + xmp(7)),
        "both.jpg": with_segments(plain, of_xmp + xmp(6), head + exif(1)),
        "exif.png": png(7, 10, 2, 8, chunk(b"eXIf", exif(6))),
        "alpha.png": png(7, 10, 6, 8, chunk(b"eXIf", exif(5, "<"))),
        "behind.png": png(7, 10, 2, 8, behind=[chunk(b"eXIf", exif(7))]),
        "profile.png": png(7, 10, 2, 8, chunk(b"tEXt", raw + profile(8))),
        "packed_profile.png": png(7, 10, 2, 8, chunk(b"zTXt", raw + b"\0" + zlib.compress(profile(6)))),
        "xmp.png": png(7, 10, 2, 8, chunk(b"iTXt", text + b"\0\0\0\0" + xmp(4))),
        "packed_xmp.png": png(7, 10, 2, 8, chunk(b"iTXt", text + b"\1\0en\0\0" + zlib.compress(xmp(8)))),
        "exif_before_profile.png": png(7, 10, 2, 8, chunk(b"tEXt", raw + profile(8)), chunk(b"eXIf", exif(3))),
        "exif.webp": with_webp_chunks(exif(6)),
        "exif_with_head.webp": with_webp_chunks(head + exif(8)),
        "xmp.webp": with_webp_chunks(None, xmp(5)),
        "both.webp": with_webp_chunks(exif(2), xmp(5)),
        # More than the last bytes behind the pixels, where only those who read all of a file find it.
        "far_behind.png": png(7, 10, 2, 8, behind=[chunk(b"eXIf", exif(6)), chunk(b"prVt", bytes(600))]),
    }


def turned_pixels(file):
    """The picture as Pillow turns it, and by what."""
    image = Image.open(io.BytesIO(file))
    turn = ImageOps.exif_transpose(image)
    orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    return on_white(turn), orientation if 1 <= orientation <= 8 else 1


def pixels(file):
    return on_white(Image.open(io.BytesIO(file)))


def on_white(image):
    """As transformers converts images: alpha_composite rounds what it mixes to 8 bits."""
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
        **pngs(),
    }
    for name, file in files.items():
        (HERE / name).write_bytes(file)
    frames = [Image.fromarray(picture(20, 24, 3, seed)) for seed in (0, 1)]
    frames[0].save(HERE / "animated.webp", save_all=True, append_images=frames[1:])
    (HERE / "arithmetic.jpg").write_bytes(cjpeg(20, 24, "-arithmetic"))
    values = {name: pixels(file) for name, file in files.items()}
    # Pillow cuts greys of 16 bits off at 255. Their high eight bits are what it takes of all other files.
    (HERE / "deep_grey.png").write_bytes(png(5, 16, 0, 16))
    deep = np.frombuffer(zlib.decompress(png(5, 16, 0, 16).split(b"IDAT")[1]), np.uint8).reshape(5, 33)[:, 1::2]
    values["deep_grey.png"] = np.repeat(deep[..., None], 3, -1)
    save(values, {}, "pixels.safetensors")
    (HERE / "turned").mkdir(exist_ok=True)
    for name, file in turned_files().items():
        (HERE / "turned" / name).write_bytes(file)
    found = {name: turned_pixels(file) for name, file in turned_files().items()}
    save({name: values for name, (values, _) in found.items()},
         {f"{name}.orientation": np.array([orientation]) for name, (_, orientation) in found.items()},
         "turned.safetensors")


def save(pictures, tensors, name):
    for picture_name, values in pictures.items():
        tensors[f"{picture_name}.size"] = np.array(values.shape[:2], np.int64)
        tensors[picture_name] = np.pad(values.reshape(-1), (0, -values.size % 8)).view(np.int64)
    save_file(tensors, HERE / name)


if __name__ == "__main__":
    main()
