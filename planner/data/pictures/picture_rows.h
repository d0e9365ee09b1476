// The rows of a picture, one after the other, from a file of any of the formats.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "planner/data/pictures/picture_size.h"

namespace planwright {

class PictureRows {
 public:
  PictureRows() = default;
  PictureRows(const PictureRows&) = delete;
  virtual ~PictureRows() = default;

  // Values of a pixel: red, green, blue, and the alpha, if there are four.
  virtual int64_t channels() const = 0;
  // The next row from the top, [width][channels], values of 8 bits. It stays until the next call.
  virtual absl::StatusOr<const uint8_t*> Next() = 0;
  // Behind the last row: whether the file ends as it must.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

// What is done with the values of a PNG that says what they are, or has 16 bits. kSrgb: they become values of sRGB, as
// libpng's simplified interface makes them. kAsStored: they stay; of 16 bits the high eight are taken, as Pillow does.
enum class PngValues { kSrgb, kAsStored };

// `file` must outlive the rows, and `size` be what ReadPictureSize says of it. Here and for each row InvalidArgument
// if the file is damaged.
absl::StatusOr<std::unique_ptr<PictureRows>> OpenPictureRows(std::string_view file, const PictureSize& size,
                                                             PngValues values);

// Of one format each; OpenPictureRows chooses.
absl::StatusOr<std::unique_ptr<PictureRows>> OpenPngRows(std::string_view file, const PictureSize& size,
                                                         PngValues values);
absl::StatusOr<std::unique_ptr<PictureRows>> OpenJpegRows(std::string_view file, const PictureSize& size);
absl::StatusOr<std::unique_ptr<PictureRows>> OpenWebpRows(std::string_view file, const PictureSize& size);

}  // namespace planwright
