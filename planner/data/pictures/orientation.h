// How a picture is to be turned before it is looked at, as cameras write it into a file: EXIF's tag 274, or where that
// is missing XMP's tiff:Orientation. Read where Pillow's ImageOps.exif_transpose reads it
// (docs/model/vision_encoder.md#orientation).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

#include "planner/data/pictures/picture_size.h"

namespace planwright {

// Orientations have EXIF's numbers. 1: as it is stored. 2 and 4 are mirrored, 3 stands on its head, and of 5 to 8 the
// stored rows are columns of the picture.
inline bool IsTurned(int orientation) { return orientation != 1; }
inline bool RowsAreColumns(int orientation) { return orientation >= 5; }

// The orientation of the picture of `bytes` bytes, 1 to 8. 1 if the file says none or one that is none, or what says it
// is damaged. `read` is asked for a few hundred bytes, of a PNG for those before its pixels, and for its last ones: if
// these show no orientation, the rest of the chunks behind the pixels is passed over. With `whole` all chunks are
// looked at. Errors of `read`, and of a JPEG's header.
absl::StatusOr<int> ReadOrientation(PictureFormat format, ReadBytes read, int64_t bytes, bool whole);

// Whether all of a file says the orientation that was found without `whole`. InvalidArgument: it says another one.
absl::Status CompareOrientation(PictureFormat format, std::string_view file, int found);

}  // namespace planwright
