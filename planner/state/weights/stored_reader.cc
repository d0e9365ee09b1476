#include "planner/state/weights/stored_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// Bytes that are read at a time where what is wanted lies in short rows.
constexpr int64_t kWindow = int64_t{1} << 20;
// A row of so many bytes is read by itself.
constexpr int64_t kLongRow = int64_t{1} << 12;
// Gaps are read too where they are at most so many times what is wanted.
constexpr int64_t kMostGaps = 8;

// Elements that are evenly spaced on disk, in the parameter and where they go. The dims are in the order of the disk.
struct Spaced {
  struct Dim {
    int64_t size = 1, whole = 0, disk = 0, local = 0;
    bool operator==(const Dim&) const = default;
  };
  int64_t whole = 0, disk = 0, local = 0;
  std::vector<Dim> dims;
};

// Whether `next` goes on as the steps of `all.front()` before it: the same box, as far again.
bool GoesOn(const Spaced& front, const Spaced::Dim& steps, const Spaced& next) {
  return next.dims == front.dims && next.whole == front.whole + steps.size * steps.whole &&
         next.disk == front.disk + steps.size * steps.disk && next.local == front.local + steps.size * steps.local;
}

// All boxes of some runs. A slice along an inner dim is a run for each index of the outer ones: these are one box here,
// with one more dim, so that they are read in the order of the disk.
std::vector<Spaced> SpacedOf(const ElementMap& map, const std::vector<ElementRun>& runs) {
  std::vector<Spaced> all;
  Spaced::Dim steps;  // of the last of them
  const auto end = [&] {
    if (all.empty() || steps.size == 1) return;
    std::vector<Spaced::Dim>& dims = all.back().dims;
    dims.insert(std::find_if(dims.begin(), dims.end(), [&](const Spaced::Dim& dim) { return dim.disk < steps.disk; }),
                steps);
  };
  for (const ElementRun& run : runs) {
    for (const ElementBox& box : map.BoxesOf(run.whole, run.count)) {
      Spaced next{box.whole, box.disk, run.local + box.whole - run.whole, {}};
      for (const MapDim& dim : box.dims) next.dims.push_back({dim.size, dim.whole, dim.disk, dim.whole});
      if (!all.empty() && steps.size == 1) {
        const Spaced& front = all.back();
        steps = {1, next.whole - front.whole, next.disk - front.disk, next.local - front.local};
      }
      if (!all.empty() && steps.disk > 0 && GoesOn(all.back(), steps, next)) {
        ++steps.size;
        continue;
      }
      end();
      all.push_back(std::move(next));
      steps = {};
    }
  }
  end();
  return all;
}

// Reads one box: row by row, where a row is what lies side by side on disk.
class BoxReader {
 public:
  BoxReader(WeightFiles& files, const std::string& tensor, std::span<std::byte> to, int64_t width)
      : files_(files), tensor_(tensor), to_(to), width_(width) {}

  // The element of the parameter that is infinite or no number, if `finite` asks for it.
  absl::StatusOr<std::optional<int64_t>> Read(const Spaced& box, DType dtype, bool finite) {
    std::vector<Spaced::Dim> outer = box.dims;
    row_ = {};
    if (!outer.empty() && outer.back().disk == 1) {
      row_ = outer.back();
      outer.pop_back();
    }
    int64_t elements = row_.size, last = box.disk + row_.size;
    for (const Spaced::Dim& dim : outer) {
      elements *= dim.size;
      last += (dim.size - 1) * dim.disk;
    }
    const bool together = row_.size * width_ < kLongRow && last - box.disk <= kMostGaps * elements;
    // What stays in its order goes straight to where it belongs.
    straight_ = !together && (row_.local == 1 || row_.size == 1);
    end_ = last;
    ahead_ = together ? std::max(kWindow / width_, row_.size) : row_.size;
    have_first_ = have_end_ = 0;
    std::vector<int64_t> at(outer.size(), 0);
    int64_t whole = box.whole, disk = box.disk, local = box.local;
    for (;;) {
      absl::StatusOr<const std::byte*> row = Row(disk, local);
      if (!row.ok()) return row.status();
      if (finite) {
        const std::span<const std::byte> numbers(*row, static_cast<size_t>(row_.size * width_));
        if (const auto bad = FirstNotFinite(dtype, numbers)) return std::optional(whole + *bad * row_.whole);
      }
      if (!straight_) Place(*row, local);
      size_t dim = outer.size();
      for (; dim > 0; --dim) {
        const Spaced::Dim& of = outer[dim - 1];
        whole += of.whole, disk += of.disk, local += of.local;
        if (++at[dim - 1] < of.size) break;
        at[dim - 1] = 0;
        whole -= of.size * of.whole, disk -= of.size * of.disk, local -= of.size * of.local;
      }
      if (dim == 0) return std::optional<int64_t>();
    }
  }

 private:
  // The bytes of the row that begins at `disk`.
  absl::StatusOr<const std::byte*> Row(int64_t disk, int64_t local) {
    if (straight_) {
      const std::span<std::byte> target = to_.subspan(local * width_, row_.size * width_);
      if (absl::Status read = Take(disk, row_.size, target); !read.ok()) return read;
      return target.data();
    }
    if (disk < have_first_ || disk + row_.size > have_end_) {
      const int64_t count = std::min(ahead_, end_ - disk);
      window_.resize(static_cast<size_t>(count * width_));
      if (absl::Status read = Take(disk, count, window_); !read.ok()) return read;
      have_first_ = disk, have_end_ = disk + count;
    }
    return window_.data() + (disk - have_first_) * width_;
  }

  // Numbers of gaps are those of others, so nothing is asked of them here.
  absl::Status Take(int64_t disk, int64_t count, std::span<std::byte> to) {
    return files_.Read(tensor_, {{0, disk, count}}, to, ElementReader::Numbers::kAny);
  }

  template <typename Number>
  void PlaceAll(const std::byte* row, std::byte* to) const {
    const int64_t step = row_.local * static_cast<int64_t>(sizeof(Number));
    for (int64_t i = 0; i < row_.size; ++i) std::memcpy(to + i * step, row + i * sizeof(Number), sizeof(Number));
  }
  void Place(const std::byte* row, int64_t local) {
    std::byte* to = to_.data() + local * width_;
    if (row_.local == 1) {
      std::memcpy(to, row, static_cast<size_t>(row_.size * width_));
    } else if (width_ == 2) {
      PlaceAll<uint16_t>(row, to);
    } else if (width_ == 4) {
      PlaceAll<uint32_t>(row, to);
    } else {
      PlaceAll<uint64_t>(row, to);
    }
  }

  WeightFiles& files_;
  const std::string& tensor_;
  std::span<std::byte> to_;
  const int64_t width_;
  Spaced::Dim row_;
  bool straight_ = false;
  int64_t end_ = 0, ahead_ = 0;            // of the box on disk; elements to read at a time
  int64_t have_first_ = 0, have_end_ = 0;  // elements in the window
  std::vector<std::byte> window_;
};

}  // namespace

void StoredReader::Add(const std::string& key, std::string tensor, std::vector<int64_t> shape, ElementMap map) {
  parts_.insert_or_assign(key, Part{std::move(tensor), std::move(shape), std::move(map)});
}

std::optional<TensorType> StoredReader::TypeOf(const std::string& key) const {
  const auto part = parts_.find(key);
  if (part == parts_.end()) return std::nullopt;
  const std::optional<TensorType> stored = files_.TypeOf(part->second.tensor);
  if (!stored) return std::nullopt;
  return TensorType{stored->dtype, part->second.shape};
}

std::string StoredReader::PlaceOf(const std::string& key) const {
  return absl::StrCat(files_.PlaceOf(TensorOf(key)), ", part ", Printable(key));
}

absl::Status StoredReader::Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                                Numbers numbers) {
  const std::optional<TensorType> type = TypeOf(key);
  if (!type) return absl::InvalidArgumentError(absl::StrCat(files_.path(), " has no part ", key));
  const Part& part = parts_.at(key);
  const int64_t width = DTypeBytes(type->dtype);
  const absl::Status inside = CheckRuns(key, runs, ElementsOf(part.shape), static_cast<int64_t>(to.size()) / width);
  if (!inside.ok()) return inside;
  BoxReader reader(files_, part.tensor, to, width);
  for (const Spaced& box : SpacedOf(part.map, runs)) {
    const absl::StatusOr<std::optional<int64_t>> bad = reader.Read(box, type->dtype, numbers == Numbers::kFinite);
    if (!bad.ok()) return bad.status();
    if (bad->has_value()) return absl::DataLossError(absl::StrCat(PlaceOf(key), NotFinite(**bad)));
  }
  return absl::OkStatus();
}

}  // namespace planwright
