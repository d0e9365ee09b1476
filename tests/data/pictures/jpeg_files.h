// A writer of JPEG files for tests.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

// It needs <cstdio>.
#include <jpeglib.h>

namespace planwright {

struct JpegSettings {
  int height = 1, width = 1;
  bool grey = false;
  int across = 1, down = 1;  // how many times as fine the first color's grid is
  bool progressive = false;
  int restart_rows = 0;
  bool flat = false;  // all pixels are the same
};

// Noise, or one color.
inline std::string JpegOf(const JpegSettings& settings) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);  // ends the program if something is wrong
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_width = settings.width;
  jpeg.image_height = settings.height;
  jpeg.input_components = settings.grey ? 1 : 3;
  jpeg.in_color_space = settings.grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg.comp_info[0].h_samp_factor = settings.across;
  jpeg.comp_info[0].v_samp_factor = settings.down;
  jpeg.restart_in_rows = settings.restart_rows;
  if (settings.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::mt19937 random(static_cast<unsigned>(settings.height * 1000 + settings.width));
  std::vector<unsigned char> row(settings.width * jpeg.input_components);
  for (int y = 0; y < settings.height; ++y) {
    if (!settings.flat) {
      for (unsigned char& value : row) value = static_cast<unsigned char>(random());
    }
    unsigned char* start = row.data();
    jpeg_write_scanlines(&jpeg, &start, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(bytes), count);
  std::free(bytes);
  return file;
}

}  // namespace planwright
