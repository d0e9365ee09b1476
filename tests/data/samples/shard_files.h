// Writers of PNG and tar files for tests.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace planwright {

// A PNG of RGBA pixels, row by row.
inline std::string PngOf(int width, int height, const std::vector<uint8_t>& rgba) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGBA;
  png_alloc_size_t bytes = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &bytes, 0, rgba.data(), 0, nullptr));
  std::string file(bytes, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, file.data(), &bytes, 0, rgba.data(), 0, nullptr));
  file.resize(bytes);
  return file;
}

// One member: its header and its contents, filled up to whole blocks. `size`: what the header says; < 0: the true size.
inline std::string TarMemberOf(const std::string& name, const std::string& contents, char type = '0',
                               int64_t size = -1) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char octal[16];
  std::snprintf(octal, sizeof octal, "%011llo", static_cast<unsigned long long>(size < 0 ? contents.size() : size));
  header.replace(124, 11, octal);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(263, 2, "00");
  unsigned sum = 0;
  for (unsigned char c : header) sum += c;
  std::snprintf(octal, sizeof octal, "%06o", sum);
  header.replace(148, 6, octal);
  header[154] = '\0';
  return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

inline std::string WriteFile(const std::string& name, const std::string& contents) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

}  // namespace planwright
