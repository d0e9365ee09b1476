#include "planner/state/forms/element_map.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

int64_t Elements(std::span<const MapDim> dims) {
  int64_t elements = 1;
  for (const MapDim& dim : dims) elements *= dim.size;
  return elements;
}

// The strides of a tensor in row-major order.
std::vector<int64_t> Strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool ByDisk(const MapDim& a, const MapDim& b) { return a.disk > b.disk; }

// Dims of size 1 go, and neighbours that step on as one become one.
void Join(std::vector<MapDim>& dims) {
  std::vector<MapDim> joined;
  for (const MapDim& dim : dims) {
    if (dim.size == 1) continue;
    const bool goes_on =
        !joined.empty() && joined.back().whole == dim.size * dim.whole && joined.back().disk == dim.size * dim.disk;
    if (goes_on) {
      joined.back() = {joined.back().size * dim.size, dim.whole, dim.disk};
    } else {
      joined.push_back(dim);
    }
  }
  dims = std::move(joined);
}

void Add(ElementBox box, std::vector<ElementBox>& boxes) {
  std::stable_sort(box.dims.begin(), box.dims.end(), ByDisk);
  Join(box.dims);
  boxes.push_back(std::move(box));
}

// The box `box`, one step of `dim` further for each of `steps`.
ElementBox Moved(ElementBox box, const MapDim& dim, int64_t steps) {
  box.whole += steps * dim.whole;
  box.disk += steps * dim.disk;
  return box;
}

// Of the numbers whose digits are `dims`, those in [first, first + count): boxes at the corner `box`.
void Split(std::span<const MapDim> dims, int64_t first, int64_t count, const ElementBox& box,
           std::vector<ElementBox>& boxes) {
  if (count <= 0) return;
  if (dims.empty()) return Add(box, boxes);
  const MapDim& dim = dims.front();
  const std::span<const MapDim> rest = dims.subspan(1);
  const int64_t inner = Elements(rest);
  int64_t step = first / inner;
  if (first % inner != 0) {
    const int64_t some = std::min(count, inner - first % inner);
    Split(rest, first % inner, some, Moved(box, dim, step), boxes);
    count -= some;
    ++step;
  }
  if (const int64_t steps = count / inner; steps > 0) {
    ElementBox whole = Moved(box, dim, step);
    whole.dims.push_back({steps, dim.whole, dim.disk});
    whole.dims.insert(whole.dims.end(), rest.begin(), rest.end());
    Add(std::move(whole), boxes);
    count -= steps * inner;
    step += steps;
  }
  Split(rest, 0, count, Moved(box, dim, step), boxes);
}

}  // namespace

int64_t ElementBox::elements() const { return Elements(dims); }

ElementMap::ElementMap(const MatrixPart& part) {
  const auto along = static_cast<size_t>(part.along);
  Require(along < part.shape.size() && part.groups > 0 && part.shape[along] % part.groups == 0 &&
              part.rows % part.groups == 0 && part.before % part.groups == 0,
          "a part of a matrix has whole groups");
  Require(!part.swap || part.shape.size() > 1, "what is swapped has two dims");
  std::vector<int64_t> matrix = part.shape;
  matrix[along] = part.rows;
  const size_t last = matrix.size() - 1;
  if (part.swap) std::swap(matrix[last], matrix[last - 1]);
  std::vector<int64_t> disk = Strides(matrix);
  if (part.swap) std::swap(disk[last], disk[last - 1]);
  const std::vector<int64_t> whole = Strides(part.shape);
  for (size_t i = 0; i < part.shape.size(); ++i) {
    if (i != along) {
      dims_.push_back({part.shape[i], whole[i], disk[i]});
      continue;
    }
    const int64_t rows = part.shape[i] / part.groups;
    dims_.push_back({part.groups, rows * whole[i], part.rows / part.groups * disk[i]});
    dims_.push_back({rows, whole[i], disk[i]});
  }
  first_ = part.first + part.before / part.groups * disk[along];
  Join(dims_);
  on_disk_ = dims_;
  std::stable_sort(on_disk_.begin(), on_disk_.end(), ByDisk);
}

std::vector<ElementBox> ElementMap::BoxesOf(int64_t first, int64_t count) const {
  std::vector<ElementBox> boxes;
  Split(dims_, first, count, {0, first_, {}}, boxes);
  return boxes;
}

// How many elements of the parameter the file has before its element `disk`. In the order of the disk each digit steps
// over all that the digits behind it reach, so it is as with whole numbers.
int64_t ElementMap::CountBelow(int64_t disk) const {
  int64_t left = disk - first_, count = 0;
  for (size_t i = 0; i < on_disk_.size() && left > 0; ++i) {
    const MapDim& dim = on_disk_[i];
    const int64_t inner = Elements(std::span(on_disk_).subspan(i + 1));
    if (left / dim.disk >= dim.size) return count + dim.size * inner;
    count += left / dim.disk * inner;
    left %= dim.disk;
  }
  return left > 0 ? count + 1 : count;
}

std::vector<ElementBox> ElementMap::BoxesOnDisk(int64_t first, int64_t count) const {
  const int64_t from = CountBelow(first), to = CountBelow(first + count);
  std::vector<ElementBox> boxes;
  Split(on_disk_, from, to - from, {0, first_, {}}, boxes);
  return boxes;
}

}  // namespace planwright
