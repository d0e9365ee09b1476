// Where a tensor of a file has the elements of one parameter. The map is affine: each index of the parameter is one or
// two digits, and each digit has a stride on disk. So a slice of the parameter is few boxes on disk, and a range of the
// disk few boxes of the parameter, however the elements are ordered. Exact, in both directions.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright {

// `size` steps, each `whole` elements further in the parameter and `disk` elements further in the tensor of the file.
struct MapDim {
  int64_t size = 1, whole = 0, disk = 0;
  bool operator==(const MapDim&) const = default;
};

// Elements that are evenly spaced on both sides, from this one on. The dims are in the order of their strides on disk,
// the largest first; none has size 1, and none could be one with the next. No dims: a single element.
struct ElementBox {
  int64_t whole = 0, disk = 0;
  std::vector<MapDim> dims;

  int64_t elements() const;
};

// How a parameter lies in a matrix of a file (docs/weights.md#forms).
struct MatrixPart {
  std::vector<int64_t> shape;  // of the parameter
  int along = 0;               // the dim along which parameters follow each other
  int64_t groups = 1;          // divides both sizes along it
  int64_t before = 0;          // rows along it of the parameters before this one
  int64_t rows = 0;            // of all of them
  bool swap = false;           // the last two dims are exchanged on disk
  int64_t first = 0;           // elements of the file's tensor before the matrix
};

class ElementMap {
 public:
  explicit ElementMap(const MatrixPart& part);

  // Whether the parameter is one run on disk, in its own order.
  bool contiguous() const { return dims_.size() < 2 && (dims_.empty() || dims_[0].disk == 1); }
  int64_t first() const { return first_; }  // on disk, of the parameter's element 0

  // The elements [first, first + count) of the parameter, which has them: a few boxes, in their order.
  std::vector<ElementBox> BoxesOf(int64_t first, int64_t count) const;
  // The elements of the parameter that the tensor of the file has in [first, first + count): a few boxes, in the order
  // of the file. The range may have elements of others too.
  std::vector<ElementBox> BoxesOnDisk(int64_t first, int64_t count) const;

 private:
  int64_t CountBelow(int64_t disk) const;

  int64_t first_ = 0;
  std::vector<MapDim> dims_;     // in the order of the parameter
  std::vector<MapDim> on_disk_;  // the same in the order of the disk
};

}  // namespace planwright
