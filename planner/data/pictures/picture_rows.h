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

// `file` must outlive the rows, and `size` be what ReadPictureSize says of it. Here and for each row InvalidArgument
// if the file is damaged.
absl::StatusOr<std::unique_ptr<PictureRows>> OpenPictureRows(std::string_view file, const PictureSize& size);

// The rows of the picture that `rows` are when it is turned by an orientation of 2 to 8 (orientation.h). All of them
// are held: 3 or 4 bytes for each pixel. `size`: of the picture as it is stored.
absl::StatusOr<std::unique_ptr<PictureRows>> TurnRows(std::unique_ptr<PictureRows> rows, const PictureSize& size,
                                                      int orientation);

// Of one format each; OpenPictureRows chooses.
absl::StatusOr<std::unique_ptr<PictureRows>> OpenPngRows(std::string_view file, const PictureSize& size);
absl::StatusOr<std::unique_ptr<PictureRows>> OpenJpegRows(std::string_view file, const PictureSize& size);
absl::StatusOr<std::unique_ptr<PictureRows>> OpenWebpRows(std::string_view file, const PictureSize& size);

}  // namespace planwright
