#include "planner/weights/read_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/run_files/safetensors.h"
#include "planner/weights/fit_part.h"

namespace planwright {
namespace {

constexpr int64_t kChunk = int64_t{1} << 24;  // bytes that a thread reads at a time

// One tensor to read.
struct Item {
  int source = -1;
  std::string key;
  DType dtype = DType::kFp32;
  int64_t elements = 0, row = 0;  // row > 0: elements of a row of an embedding
};

// Whether all bytes are zero, or the sign of a zero.
bool IsZero(std::span<const std::byte> bytes, int64_t width) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool top = static_cast<int64_t>(i) % width == width - 1;  // little endian: the sign is in the last byte
    if ((bytes[i] & (top ? std::byte{0x7f} : std::byte{0xff})) != std::byte{0}) return false;
  }
  return true;
}

class ValueReader {
 public:
  ValueReader(WeightsFit& fit, const std::function<void(int64_t, int64_t)>& progress)
      : fit_(fit), progress_(progress) {}

  void Add(Item item) {
    all_ += item.elements * DTypeBytes(item.dtype);
    items_.push_back(std::move(item));
  }

  WeightValues Run(int threads) {
    found_.resize(items_.size());
    std::atomic<size_t> next = 0;
    const auto loop = [&] {
      std::vector<std::byte> buffer;
      for (size_t i = next++; i < items_.size(); i = next++) Read(i, buffer);
    };
    std::vector<std::thread> others;
    try {
      for (int i = 1; i < threads; ++i) others.emplace_back(loop);
    } catch (const std::system_error&) {
      // No more threads can be had: those that there are do the work.
    }
    loop();
    for (std::thread& other : others) other.join();
    WeightValues values;
    for (const Found& found : found_) {
      if (!found.problem.empty()) values.problems.push_back(found.problem);
      if (!found.warning.empty()) values.warnings.push_back(found.warning);
    }
    for (const SourceFit& source : fit_.sources) values.bytes += source.opened->reader().bytes_read();
    return values;
  }

 private:
  struct Found {
    std::string problem, warning;
  };

  void Read(size_t index, std::vector<std::byte>& buffer) {
    const Item& item = items_[index];
    SourceFit& source = fit_.sources[static_cast<size_t>(item.source)];
    const int64_t width = DTypeBytes(item.dtype);
    int64_t step = kChunk / width;
    if (item.row > 0) step = std::max<int64_t>(1, step / item.row) * item.row;
    std::vector<int64_t> zero_rows;
    for (int64_t first = 0; first < item.elements; first += step) {
      const int64_t count = std::min(step, item.elements - first);
      buffer.resize(static_cast<size_t>(count * width));
      const absl::Status read =
          source.opened->reader().Read(item.key, {{0, first, count}}, buffer, ElementReader::Numbers::kFinite);
      if (!read.ok()) {
        found_[index].problem = std::string(read.message());
        return;
      }
      for (int64_t row = 0; item.row > 0 && row < count; row += item.row) {
        const std::span<const std::byte> bytes(buffer.data() + row * width, static_cast<size_t>(item.row * width));
        if (IsZero(bytes, width)) zero_rows.push_back((first + row) / item.row);
      }
      Done(count * width);
    }
    found_[index].warning = ZeroRows(item.key, zero_rows);
  }

  void Done(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (progress_) progress_(done_, all_);
  }

  WeightsFit& fit_;
  const std::function<void(int64_t, int64_t)>& progress_;
  std::vector<Item> items_;
  std::vector<Found> found_;
  std::mutex mutex_;
  int64_t done_ = 0, all_ = 0;
};

// The first element that is not 1; none: all are.
std::optional<int64_t> FirstNotOne(DType dtype, std::span<const std::byte> bytes) {
  const int64_t width = DTypeBytes(dtype);
  std::byte one[8] = {};
  const uint16_t bf16 = 0x3f80;
  const float fp32 = 1;
  const double fp64 = 1;
  std::memcpy(one,
              dtype == DType::kBf16   ? static_cast<const void*>(&bf16)
              : dtype == DType::kFp32 ? static_cast<const void*>(&fp32)
                                      : static_cast<const void*>(&fp64),
              static_cast<size_t>(width));
  for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(width)) {
    if (std::memcmp(bytes.data() + i, one, static_cast<size_t>(width)) != 0) return static_cast<int64_t>(i) / width;
  }
  return std::nullopt;
}

}  // namespace

std::string ZeroRows(const std::string& tensor, const std::vector<int64_t>& rows) {
  constexpr size_t kNamed = 8;
  if (rows.empty()) return "";
  std::vector<std::string> runs;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    runs.push_back(end - i == 1 ? absl::StrCat(rows[i]) : absl::StrCat(rows[i], " to ", rows[end - 1]));
    i = end;
  }
  return absl::StrCat(tensor, ": ", rows.size(),
                      rows.size() == 1 ? " row is zero: " : " rows are zero: ", FirstOf(runs, kNamed),
                      " (training on these tokens may give infinite gradients)");
}

WeightValues ReadAllValues(const Plan& plan, WeightsFit& fit, int threads,
                           const std::function<void(int64_t, int64_t)>& progress) {
  ValueReader reader(fit, progress);
  for (const WeightPart& part : PartsOf(plan)) {
    for (const WantedTensor& wanted : WantedOf(part)) {
      const auto taken = fit.taken.find(wanted.name);
      if (taken == fit.taken.end()) continue;
      const bool embedding = wanted.vocabulary && absl::EndsWith(wanted.file_name, "embeddings.weight");
      reader.Add({taken->second.source, taken->second.key, taken->second.dtype, taken->second.elements,
                  embedding ? wanted.parameter->shape[1] : 0});
    }
  }
  WeightValues values = reader.Run(threads);
  for (std::string& line : ScalesThatAreNotOne(fit)) values.problems.push_back(std::move(line));
  return values;
}

std::string ScaleThatIsNotOne(WeightFiles& files, const std::string& name) {
  constexpr int64_t kMostElements = 1 << 20;
  const auto type = files.tensors().find(name);
  const int64_t elements = type == files.tensors().end() ? 0 : ElementsOf(type->second.shape);
  const std::string file = files.files()[static_cast<size_t>(files.all().at(name).file)].path;
  if (elements < 1 || elements > kMostElements) return absl::StrCat(file, ": tensor ", name, " is no list of scales");
  std::vector<std::byte> bytes(static_cast<size_t>(elements * DTypeBytes(type->second.dtype)));
  const absl::Status read = files.Read(name, {{0, 0, elements}}, bytes, ElementReader::Numbers::kAny);
  if (!read.ok()) return std::string(read.message());
  const auto at = FirstNotOne(type->second.dtype, bytes);
  if (!at) return "";
  return absl::StrCat(file, ": tensor ", name, ": element ", *at,
                      " is not 1, and the model has no such scale: it is another model");
}

std::vector<std::string> ScalesThatAreNotOne(const WeightsFit& fit) {
  std::vector<std::string> lines;
  for (const SourceFit& source : fit.sources) {
    for (const PassedThrough& passed : source.passed) {
      if (!passed.extra->must_be_ones) continue;
      for (const std::string& name : passed.names) {
        std::string line = ScaleThatIsNotOne(*source.opened->files(), name);
        if (!line.empty()) lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

}  // namespace planwright
