#include "planner/exchange/from_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/exchange/convert.h"
#include "planner/plan/shard_map.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// The elements of `runs` as `dtype`. What is read is finite, and must stay so.
absl::Status ReadAs(CheckpointReader& reader, const LeavingPart& part, const std::vector<ElementRun>& runs, DType dtype,
                    std::span<std::byte> to) {
  if (part.stored == dtype) return reader.Read(part.key, runs, to, CheckpointReader::Numbers::kFinite);
  const size_t count = to.size() / static_cast<size_t>(DTypeBytes(dtype));
  std::vector<std::byte> read(count * static_cast<size_t>(DTypeBytes(part.stored)));
  if (absl::Status status = reader.Read(part.key, runs, read, CheckpointReader::Numbers::kFinite); !status.ok())
    return status;
  ConvertNumbers(part.stored, read, dtype, to);
  const auto at = FirstNotFinite(dtype, to);
  if (!at) return absl::OkStatus();
  const auto run = std::find_if(runs.begin(), runs.end(),
                                [&](const ElementRun& one) { return one.local <= *at && *at < one.local + one.count; });
  return absl::InvalidArgumentError(absl::StrCat("tensor ", part.key, ": element ", run->whole + *at - run->local,
                                                 " is too large for ", std::string(DTypeName(dtype)),
                                                 ": choose a wider --dtype"));
}

// Elements of a part that go to evenly spaced places of a piece of a tensor. They are read in the order of the
// checkpoint, so many runs at a time, and then put where they belong.
class BoxWriter {
 public:
  BoxWriter(CheckpointReader& reader, const LeavingPart& part, DType dtype, std::span<std::byte> to)
      : reader_(reader), part_(part), dtype_(dtype), width_(DTypeBytes(dtype)), to_(to) {}

  // `first`: the element of the tensor where the piece begins.
  absl::Status Write(const ElementBox& box, int64_t first) {
    std::vector<MapDim> outer = box.dims;
    std::stable_sort(outer.begin(), outer.end(), [](const MapDim& a, const MapDim& b) { return a.whole > b.whole; });
    row_ = {};
    if (!outer.empty() && outer.back().whole == 1) {
      row_ = outer.back();
      outer.pop_back();
    }
    std::vector<int64_t> at(outer.size(), 0);
    int64_t whole = box.whole, place = box.disk - first;
    for (;;) {
      runs_.push_back({static_cast<int64_t>(runs_.size()) * row_.size, whole, row_.size});
      places_.push_back(place);
      if (runs_.size() == kMostRuns) {
        if (absl::Status status = Flush(); !status.ok()) return status;
      }
      size_t dim = outer.size();
      for (; dim > 0; --dim) {
        const MapDim& of = outer[dim - 1];
        whole += of.whole, place += of.disk;
        if (++at[dim - 1] < of.size) break;
        at[dim - 1] = 0;
        whole -= of.size * of.whole, place -= of.size * of.disk;
      }
      if (dim == 0) return Flush();
    }
  }

 private:
  static constexpr size_t kMostRuns = size_t{1} << 16;

  absl::Status Flush() {
    if (runs_.empty()) return absl::OkStatus();
    if (runs_.size() == 1 && (row_.disk == 1 || row_.size == 1)) {
      const absl::Status read =
          ReadAs(reader_, part_, runs_, dtype_, to_.subspan(places_[0] * width_, row_.size * width_));
      runs_.clear(), places_.clear();
      return read;
    }
    read_.resize(runs_.size() * static_cast<size_t>(row_.size * width_));
    if (absl::Status status = ReadAs(reader_, part_, runs_, dtype_, read_); !status.ok()) return status;
    const std::byte* from = read_.data();
    for (const int64_t place : places_) {
      std::byte* to = to_.data() + place * width_;
      if (row_.disk == 1) {
        std::memcpy(to, from, static_cast<size_t>(row_.size * width_));
        from += row_.size * width_;
        continue;
      }
      for (int64_t i = 0; i < row_.size; ++i, from += width_) std::memcpy(to + i * row_.disk * width_, from, width_);
    }
    runs_.clear(), places_.clear();
    return absl::OkStatus();
  }

  CheckpointReader& reader_;
  const LeavingPart& part_;
  const DType dtype_;
  const int64_t width_;
  std::span<std::byte> to_;
  MapDim row_;
  std::vector<ElementRun> runs_;
  std::vector<int64_t> places_;  // of their first elements, in `to_`
  std::vector<std::byte> read_;
};

}  // namespace

OutTensor FromCheckpoint(CheckpointReader& reader, LeavingTensor leaving, DType dtype) {
  // Routers compare biases that differ by little: they stay as wide as fp32.
  if (leaving.buffer && dtype == DType::kBf16) dtype = DType::kFp32;
  const int64_t width = DTypeBytes(dtype);
  OutTensor tensor{
      leaving.name, SafetensorsTypeName(dtype), leaving.shape, ElementsOf(leaving.shape) * width, !leaving.buffer, {}};
  tensor.read = [&reader, parts = std::make_shared<const std::vector<LeavingPart>>(std::move(leaving.parts)), dtype,
                 width](int64_t first_byte, std::span<std::byte> to) -> absl::Status {
    const int64_t first = first_byte / width, count = static_cast<int64_t>(to.size()) / width;
    for (const LeavingPart& part : *parts) {
      if (!part.map) return ReadAs(reader, part, {{0, first, count}}, dtype, to);
      BoxWriter writer(reader, part, dtype, to);
      for (const ElementBox& box : part.map->BoxesOnDisk(first, count)) {
        if (absl::Status status = writer.Write(box, first); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  };
  return tensor;
}

}  // namespace planwright
