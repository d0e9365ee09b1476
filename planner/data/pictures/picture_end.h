// Whether a file of a picture may have been cut off, without decoding it.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/data/pictures/picture_size.h"

namespace planwright {

// The first and the last bytes of a file that are looked at.
inline constexpr int64_t kPictureBegin = 2048, kPictureEnd = 512;

// Whether a file of `bytes` bytes lacks what its format ends with: the end mark of a JPEG, the chunk IEND of a PNG, the
// bytes that a WebP says to have. Such a file must be decoded to know whether its picture is whole, as other bytes may
// come behind an end. `begin` and `end`: its first and last bytes, as many as above, or all of a shorter file.
bool MayBeCut(PictureFormat format, std::string_view begin, std::string_view end, int64_t bytes);

}  // namespace planwright
