#include "planner/state/weights/read_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/plan/pixel_norm.h"
#include "planner/state/checkpoint/number_range.h"
#include "planner/state/weights/fit_part.h"

namespace planwright {
namespace {

constexpr int64_t kChunk = int64_t{1} << 24;  // bytes that a thread reads at a time

// One tensor to read.
struct Item {
  ElementReader* reader = nullptr;
  std::string key;
  DType dtype = DType::kFp32, kept = DType::kFp32;  // of the source; of the run
  int64_t elements = 0, row = 0;                    // row > 0: elements of a row of an embedding
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
    const int64_t width = DTypeBytes(item.dtype);
    int64_t step = kChunk / width;
    if (item.row > 0) step = std::max<int64_t>(1, step / item.row) * item.row;
    std::vector<int64_t> zero_rows;
    for (int64_t first = 0; first < item.elements; first += step) {
      const int64_t count = std::min(step, item.elements - first);
      buffer.resize(static_cast<size_t>(count * width));
      ElementReader& reader = *item.reader;
      const std::vector<ElementRun> runs = {{0, first, count}};
      absl::Status read = reader.Read(item.key, runs, buffer, ElementReader::Numbers::kFinite);
      if (read.ok()) read = CheckRange(reader, item.key, runs, buffer, item.kept);
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

double NumberAt(DType dtype, const std::byte* at) {
  uint16_t bf16 = 0;
  float fp32 = 0;
  double fp64 = 0;
  switch (dtype) {
    case DType::kBf16: std::memcpy(&bf16, at, sizeof bf16); return std::bit_cast<float>(uint32_t{bf16} << 16);
    case DType::kFp32: std::memcpy(&fp32, at, sizeof fp32); return fp32;
    default: std::memcpy(&fp64, at, sizeof fp64); return fp64;
  }
}

// What is wrong with an element of a tensor that is passed through; empty: nothing. `type`: of the file.
std::string WrongNumber(const std::vector<double>& numbers, std::string_view type, int64_t element, double found) {
  if (numbers.size() == 1) {
    if (found == numbers[0]) return "";
    return absl::StrFormat(" is not %g, and the model has no such scale: it is another model", numbers[0]);
  }
  const bool mean = numbers[0] == kClipNorm.mean[0];
  const double expected = numbers[static_cast<size_t>(element)];
  // Beside 1e-6, half a step of a type that has few digits: all of these numbers are between 1/4 and 1/2.
  const double rounding = type == "BF16" ? 0x1p-10 : type == "F16" ? 0x1p-13 : 0;
  if (std::fabs(found - expected) <= 1e-6 + rounding) return "";
  return absl::StrFormat(" is %.8g, and images are normalized by the %s of CLIP, %.8g: it is another model", found,
                         mean ? "mean" : "deviation", expected);
}

// What is wrong with the numbers of one such tensor; empty: nothing.

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
      const bool embedding = wanted.vocabulary && !absl::EndsWith(wanted.file_name, "lm_head.weight");
      reader.Add({&fit.ReaderOf(taken->second), taken->second.key, taken->second.dtype,
                  wanted.parameter->buffer ? plan.master() : plan.dtype(), taken->second.elements,
                  embedding ? wanted.parameter->shape[1] : 0});
    }
  }
  WeightValues values = reader.Run(threads);
  for (std::string& line : WrongExtras(fit)) values.problems.push_back(std::move(line));
  return values;
}

std::string WrongExtra(WeightFiles& files, const KnownExtra& extra, const std::string& name) {
  constexpr int64_t kMostElements = 1 << 20;
  const std::optional<TensorType> type = files.TypeOf(name);
  const int64_t elements = type ? ElementsOf(type->shape) : 0;
  const std::vector<double> numbers = NumbersOf(extra);
  const bool one_for_each = numbers.size() > 1;
  if (elements < 1 || elements > kMostElements || (one_for_each && elements != static_cast<int64_t>(numbers.size())))
    return files.PlaceOf(name) + " is no list of such numbers";
  const DType dtype = type->dtype;
  std::vector<std::byte> bytes(static_cast<size_t>(elements * DTypeBytes(dtype)));
  const absl::Status read = files.Read(name, {{0, 0, elements}}, bytes, ElementReader::Numbers::kAny);
  if (!read.ok()) return std::string(read.message());
  for (int64_t i = 0; i < elements; ++i) {
    const double number = NumberAt(dtype, bytes.data() + i * DTypeBytes(dtype));
    const std::string wrong = WrongNumber(numbers, files.all().at(name).type, i, number);
    if (!wrong.empty()) return absl::StrCat(files.PlaceOf(name), ": element ", i, wrong);
  }
  return "";
}

std::string WrongCopy(const WeightFiles& files, const KnownExtra& extra, const std::string& name) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  const WeightTensor& copy = files.all().at(name);
  const std::string* of = extra.Original([&](const std::string& one) { return files.all().contains(one); });
  if (of == nullptr) return "";  // it is missing, which is told elsewhere
  const WeightTensor& original = files.all().at(*of);
  const std::string differs = absl::StrCat(files.PlaceOf(name), " is no copy of ", *of);
  if (copy.type != original.type || copy.shape != original.shape)
    return absl::StrCat(differs, ": it has another type or shape");
  std::vector<std::byte> a(static_cast<size_t>(std::min(kPiece, copy.bytes))), b = a;
  const int64_t width = copy.bytes / std::max<int64_t>(1, ElementsOf(copy.shape));
  for (int64_t first = 0; first < copy.bytes; first += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, copy.bytes - first));
    for (const auto& [tensor, bytes] : {std::pair(&copy, &a), std::pair(&original, &b)}) {
      const absl::Status read = files.ReadBytes(*tensor, first, std::span(*bytes).first(count));
      if (!read.ok()) return std::string(read.message());
    }
    const auto [one, other] = std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(count), b.begin());
    if (one != a.begin() + static_cast<int64_t>(count))
      return absl::StrCat(differs, ": element ", (first + (one - a.begin())) / width, " is another number");
  }
  return "";
}

std::vector<std::string> WrongExtras(WeightsFit& fit) {
  std::vector<std::string> lines;
  for (SourceFit& source : fit.sources) {
    for (const PassedThrough& passed : source.passed) {
      const KnownExtra& extra = *passed.extra;
      for (const std::string& name : passed.names) {
        WeightFiles& files = *source.opened->files();
        std::string line = !extra.is.empty()        ? WrongExtra(files, extra, name)
                           : !extra.copy_of.empty() ? WrongCopy(files, extra, name)
                                                    : std::string();
        if (line.empty()) continue;
        if (!extra.own_key.empty())
          absl::StrAppend(
              &line, ": write `", extra.own_key, ": ", extra.own_value,
              "` in the model of the recipe, which then has this tensor of its own, or `plan import` it anew");
        lines.push_back(std::move(line));
      }
    }
  }
  return lines;
}

}  // namespace planwright
