// The header of a JPEG file, from its first marker to its first scan.
#pragma once

#include "planner/data/pictures/exif.h"
#include "planner/data/pictures/picture_size.h"

namespace planwright {

struct JpegHeader {
  int64_t height = 0, width = 0;  // pixels
  // The picture is whole only behind its last scan, so all coefficients are held until then: so many bytes.
  bool several_scans = false;
  int64_t coefficient_bytes = 0;
  FileStretch exif, xmp;  // what its first segment of EXIF has, and its last one of XMP; nothing if there is none
};

// Walks the markers up to the first scan. InvalidArgument if a marker is damaged, the file ends before, or it is of a
// kind that is not read.
absl::StatusOr<JpegHeader> ReadJpegHeader(ReadBytes read);

}  // namespace planwright
