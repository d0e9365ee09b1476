// WebP files by libwebp, which has no rows before it is done: the picture is held as a whole.
#include <absl/strings/str_cat.h>
#include <webp/decode.h>

#include <algorithm>
#include <vector>

#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

absl::Status BadWebp(const std::string& what) { return absl::InvalidArgumentError(absl::StrCat("WebP: ", what)); }

absl::Status StatusOf(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OK: return absl::OkStatus();
    case VP8_STATUS_OUT_OF_MEMORY: return BadWebp("there is no memory for it");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return BadWebp("the file ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE: return BadWebp("it has a feature that is not read");
    default: return BadWebp("its data are damaged");
  }
}

class WebpRows : public PictureRows {
 public:
  absl::Status Open(std::string_view file, const PictureSize& size) {
    // The file says its length, less that of the first two fields. What follows is not part of it.
    uint64_t bytes = 8;
    for (int i = 0; i < 4; ++i) bytes += static_cast<uint64_t>(static_cast<unsigned char>(file[4 + i])) << 8 * i;
    if (bytes > file.size()) return BadWebp("the file ends too early");
    const auto* data = reinterpret_cast<const uint8_t*>(file.data());
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) return absl::InternalError("libwebp is of another version");
    if (absl::Status status = StatusOf(WebPGetFeatures(data, bytes, &config.input)); !status.ok()) return status;
    if (config.input.width != size.width || config.input.height != size.height || config.input.has_animation != 0)
      return BadWebp("it says two sizes");
    channels_ = config.input.has_alpha != 0 ? 4 : 3;
    step_ = channels_ * size.width;
    decoded_.resize(step_ * size.height);
    config.output.colorspace = channels_ == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {decoded_.data(), static_cast<int>(step_), decoded_.size()};
    next_ = decoded_.data();
    return StatusOf(WebPDecode(data, bytes, &config));
  }

  int64_t channels() const override { return channels_; }

  absl::StatusOr<const uint8_t*> Next() override {
    const uint8_t* row = next_;
    next_ += step_;
    return row;
  }

 private:
  int64_t channels_ = 0, step_ = 0;
  std::vector<uint8_t> decoded_;
  const uint8_t* next_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureRows>> OpenWebpRows(std::string_view file, const PictureSize& size) {
  auto rows = std::make_unique<WebpRows>();
  if (absl::Status status = rows->Open(file, size); !status.ok()) return status;
  return rows;
}

}  // namespace planwright
