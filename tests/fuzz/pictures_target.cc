// Fuzz target: reads any bytes as a picture. It is refused, or it has the size that its header says; all functions say
// the same of it, and the rows of the resize are all there, however it is turned.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "planner/data/pictures/decode_picture.h"
#include "planner/data/pictures/orientation.h"

namespace planwright {
namespace {

// Larger pictures only take longer.
constexpr int64_t kMostPixels = 1 << 18;

template <typename Filter>
void ExpectRows(std::string_view file, const absl::Status& checked, int64_t height, int64_t width, int orientation) {
  int64_t rows = 0;
  double sum = 0;
  const auto take = [&](const auto* row) {
    ++rows;
    for (int64_t i = 0; i < 3 * width; ++i) sum += row[i];
  };
  const absl::Status status = DecodePictureRows<Filter>(file, height, width, take, orientation);
  if (status != checked || (status.ok() && (rows != height || !(sum > -1e9 && sum < 1e9)))) std::abort();
}

void TryPicture(std::string_view file) {
  const auto size = ReadPictureSize(file);
  if (size.ok() && size->height * size->width > kMostPixels) return;
  const absl::Status checked = CheckPicture(file);
  if (!size.ok() && size.status() != checked) std::abort();
  int orientation = 1;
  if (const auto format = ReadPictureFormat(file); format.ok()) {
    const auto read = [file](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
      return std::string(offset < static_cast<int64_t>(file.size()) ? file.substr(offset, count) : "");
    };
    for (const bool whole : {false, true}) {
      const absl::StatusOr<int> found = ReadOrientation(*format, read, static_cast<int64_t>(file.size()), whole);
      if (found.ok() && (*found < 1 || *found > 8)) std::abort();
      if (found.ok()) orientation = *found;
    }
  }
  ExpectRows<Bicubic>(file, checked, 7, 30, orientation);
  ExpectRows<Bilinear>(file, checked, 41, 3, 1 + (orientation + 4) % 8);
}

}  // namespace
}  // namespace planwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planwright::TryPicture(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
