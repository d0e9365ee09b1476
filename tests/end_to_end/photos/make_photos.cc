// Photos as people have them, without a download: of 12 megapixels, panoramas, scans of a page, turned by EXIF, grey,
// of 16 bits, tiny, thin, and damaged ones. Each shows one of four colors, so that there is something to learn.
//
// usage: make_photos FOLDER COUNT
// FOLDER gets 0000.jpg, 0001.png, ... and photos.json: of each its file, color, size, and what is special about it.
#include <png.h>
#include <webp/encode.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// It needs <cstdio>.
#include <jpeglib.h>

namespace {

using Json = nlohmann::ordered_json;

constexpr int kColors[4][3] = {{200, 60, 50}, {60, 180, 70}, {50, 80, 200}, {200, 190, 60}};

// A smooth picture of one color, which takes little time to write: it has 256 bands of rows that are the same. Of
// `channels` 1 it is grey.
std::vector<unsigned char> RowOf(int width, int band, int color, int channels) {
  std::vector<unsigned char> row(static_cast<size_t>(width) * channels);
  for (int x = 0; x < width; ++x) {
    // Hills of brightness, some hundred pixels wide.
    const int wave = (x * 256 / width + band) % 128;
    const int light = 70 + (wave < 64 ? wave : 128 - wave);
    for (int c = 0; c < channels; ++c)
      row[static_cast<size_t>(x) * channels + c] =
          static_cast<unsigned char>(channels == 1 ? 40 * color + light / 2
                                     : c == 3      ? (x < width / 8 ? 0 : 255)
                                                   : kColors[color][c] * light / 140);
  }
  return row;
}

// Calls take(row) for each row, from the top.
template <typename Take>
void ForEachRow(int width, int height, int color, int channels, const Take& take) {
  std::vector<unsigned char> row;
  for (int y = 0, band = -1; y < height; ++y) {
    if (y * 256 / height != band) row = RowOf(width, band = y * 256 / height, color, channels);
    take(row);
  }
}

// Orientation 1: no EXIF.
std::string Jpeg(int width, int height, int color, int channels, int orientation) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);  // ends the program if something is wrong
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = channels;
  jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (orientation != 1) {
    const unsigned char exif[] = {'E', 'x',  'i', 'f', 0,
                                  0,   'I',  'I', 42,  0,
                                  8,   0,    0,   0,   1,
                                  0,   0x12, 1,   3,   0,
                                  1,   0,    0,   0,   static_cast<unsigned char>(orientation),
                                  0,   0,    0,   0,   0,
                                  0,   0};
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif, sizeof exif);
  }
  ForEachRow(width, height, color, channels, [&](std::vector<unsigned char>& row) {
    unsigned char* start = row.data();
    jpeg_write_scanlines(&jpeg, &start, 1);
  });
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(bytes), count);
  std::free(bytes);
  return file;
}

std::string Png(int width, int height, int color, int channels, int bits) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(data), size);
      },
      nullptr);
  png_set_compression_level(png, 1);
  png_set_filter(png, 0, PNG_FILTER_UP);
  const int type = channels == 1 ? PNG_COLOR_TYPE_GRAY : channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(png, info, width, height, bits, type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  ForEachRow(width, height, color, channels, [&](const std::vector<unsigned char>& row) {
    std::vector<unsigned char> wide;
    for (const unsigned char value : row) wide.insert(wide.end(), bits / 8, value);
    png_write_row(png, wide.data());
  });
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string Webp(int width, int height, int color) {
  std::vector<unsigned char> pixels;
  ForEachRow(width, height, color, 3,
             [&](const std::vector<unsigned char>& row) { pixels.insert(pixels.end(), row.begin(), row.end()); });
  uint8_t* bytes = nullptr;
  const size_t count = WebPEncodeRGB(pixels.data(), width, height, 3 * width, 60, &bytes);
  std::string file(reinterpret_cast<char*>(bytes), count);
  WebPFree(bytes);
  return file;
}

struct Photo {
  std::string file, ending;
  int width = 0, height = 0, orientation = 1;
  std::string damage;  // "", "cut", "inside"
};

// What stands in the middle of a file is another thing than what its ends say.
std::string DamagedInside(std::string file, bool jpeg) {
  // Of a JPEG the picture ends here, with its end mark at the end of the file, too; of a PNG a checksum is wrong.
  file.replace(file.size() / 2, 2, jpeg ? "\xff\xd9" : "??");
  return file;
}

Photo PhotoOf(int number) {
  const int color = number % 4, round = number / 20;
  const auto jpeg = [&](int width, int height, int channels = 3, int orientation = 1) {
    return Photo{Jpeg(width, height, color, channels, orientation), "jpg", width, height, orientation, ""};
  };
  const auto png = [&](int width, int height, int channels, int bits = 8) {
    return Photo{Png(width, height, color, channels, bits), "png", width, height, 1, ""};
  };
  switch (number % 20) {
    case 0:
    case 1:
    case 2: return jpeg(4032, 3024);  // 12 megapixels
    case 3: return jpeg(3024, 4032);
    case 4:
    case 5: return jpeg(4032, 3024, 3, std::vector<int>{6, 8, 3}[(round + number % 2) % 3]);
    case 6:
    case 7: return jpeg(8000, 2000);     // a panorama
    case 8: return jpeg(2480, 3508, 1);  // a page of A4 with 300 dots an inch
    case 9: return png(2480, 3508, 1);
    case 10: return jpeg(640, 480, 1);
    case 11: return png(320, 240, 1, 16);
    case 12: return png(400, 300, 4);
    case 13: return Photo{Webp(800, 600, color), "webp", 800, 600, 1, ""};
    case 14: return jpeg(12, 9);    // tiny
    case 15: return jpeg(3000, 5);  // thin
    case 16: return jpeg(1200, 900);
    case 17: return jpeg(900, 1200, 3, 2);
    case 18: {
      Photo photo = round % 3 == 0   ? jpeg(1200, 900)
                    : round % 3 == 1 ? png(300, 200, 3)
                                     : Photo{Webp(400, 300, color), "webp", 400, 300, 1, ""};
      photo.file.resize(photo.file.size() * 2 / 3);
      photo.damage = "cut";
      return photo;
    }
    default: {
      Photo photo = round % 2 == 0 ? jpeg(1200, 900) : png(300, 200, 3);
      photo.file = DamagedInside(std::move(photo.file), round % 2 == 0);
      photo.damage = "inside";
      return photo;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_photos FOLDER COUNT\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  Json all = Json::array();
  for (int number = 0; number < std::atoi(argv[2]); ++number) {
    const Photo photo = PhotoOf(number);
    char name[32];
    std::snprintf(name, sizeof name, "%04d.%s", number, photo.ending.c_str());
    std::ofstream(folder / name, std::ios::binary) << photo.file;
    all.push_back({{"file", name},
                   {"color", number % 4},
                   {"width", photo.width},
                   {"height", photo.height},
                   {"orientation", photo.orientation},
                   {"damage", photo.damage}});
  }
  std::ofstream(folder / "photos.json") << all.dump(1) << "\n";
  return 0;
}
