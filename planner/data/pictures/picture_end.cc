#include "planner/data/pictures/picture_end.h"

#include "planner/data/pictures/exif.h"

namespace planwright {

bool MayBeCut(PictureFormat format, std::string_view begin, std::string_view end, int64_t bytes) {
  switch (format) {
    // Neither can stand in pixels: behind ff there a JPEG has 00 or a restart mark.
    case PictureFormat::kJpeg: return end.find("\xff\xd9") == std::string_view::npos;
    case PictureFormat::kPng: return end.find("IEND\xae\x42\x60\x82") == std::string_view::npos;
    case PictureFormat::kWebp: return begin.size() < 8 || BytesAsNumber(begin, 4, 4, false) + 8 > bytes;
  }
  return true;
}

}  // namespace planwright
