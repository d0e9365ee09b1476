#include "planner/state/weights/weight_files.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"
#include "planner/state/weights/name_groups.h"
#include "planner/state/weights/weight_folder.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// Bytes that are read at a time, and tested while they are still in the cache of the core.
constexpr int64_t kBlock = int64_t{1} << 18;

// The number of an fp16, as an fp32: all of them are there.
float WidenedFp16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16, exponent = (half >> 10) & 0x1fU;
  const uint32_t fraction = half & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);  // infinity or NaN
  if (exponent == 0) {  // zero, or a multiple of the smallest fp16
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

void WidenFp16(const std::vector<uint16_t>& halves, std::span<std::byte> to) {
  for (size_t i = 0; i < halves.size(); ++i) {
    const float wide = WidenedFp16(halves[i]);
    std::memcpy(to.data() + i * sizeof wide, &wide, sizeof wide);
  }
}

std::string WhyMissing(const std::string& path, int number, const WeightFolder& folder) {
  int64_t tensors = 0;
  std::string first;
  for (const auto& [tensor, file] : folder.weight_map) {
    if (file == number && tensors++ == 0) first = tensor;
  }
  const std::string target = DanglingLink(path);
  return absl::StrCat(path, " is missing",
                      target.empty() ? ""
                                     : absl::StrCat(": it is a symbolic link to ", target,
                                                    ", which is not there (an incomplete download?)"),
                      tensors > 0 ? absl::StrCat("; the index has ", tensors, " tensors in it, such as ", first) : "");
}

// How the index and the headers contradict each other. All files were read, so a file has the same number in the folder
// and among them. `again`: tensors that are in a further file, and in which.
void CompareIndex(const WeightFolder& folder, const std::map<std::string, WeightTensor>& all,
                  const std::set<std::pair<std::string, int>>& again, std::vector<TensorLine>& lines) {
  if (folder.weight_map.empty()) return;
  for (const auto& [tensor, file] : folder.weight_map) {
    const auto found = all.find(tensor);
    if ((found != all.end() && found->second.file == file) || again.contains({tensor, file})) continue;
    lines.push_back(
        {"", tensor,
         absl::StrCat(": by the index in ", folder.files[static_cast<size_t>(file)], ", but in ",
                      found == all.end() ? "no file" : folder.files[static_cast<size_t>(found->second.file)])});
  }
  std::vector<std::vector<TensorLine>> of_file(folder.files.size());
  for (const auto& [tensor, about] : all) {
    if (folder.weight_map.contains(tensor)) continue;
    const auto file = static_cast<size_t>(about.file);
    of_file[file].push_back({"", tensor, absl::StrCat(": in ", folder.files[file], ", but not in the index")});
  }
  for (std::vector<TensorLine>& some : of_file) std::move(some.begin(), some.end(), std::back_inserter(lines));
}

// A line for each tensor; more than three of which the same is said are one line.
std::vector<std::string> CountedLines(const std::vector<TensorLine>& lines) {
  std::map<std::string, std::vector<std::string>> names;
  for (const TensorLine& line : lines) names[line.end].push_back(line.name);
  std::vector<std::string> texts;
  for (const TensorLine& line : lines) {
    const std::vector<std::string>& all = names.at(line.end);
    if (all.size() <= 3) {
      texts.push_back(Printable(absl::StrCat("tensor ", line.name, line.end)));
    } else if (all.front() == line.name) {
      texts.push_back(Printable(absl::StrCat(all.size(), " tensors, such as ", line.name, line.end)));
    }
  }
  return texts;
}

}  // namespace

std::optional<DType> ReadType(std::string_view type) {
  if (type == "BF16") return DType::kBf16;
  if (type == "F32" || type == "F16") return DType::kFp32;
  if (type == "F64") return DType::kFp64;
  return std::nullopt;
}

WeightFiles::~WeightFiles() = default;

absl::StatusOr<std::unique_ptr<WeightFiles>> WeightFiles::Open(const std::string& path) {
  absl::StatusOr<WeightFolder> folder = FindWeightFiles(path);
  if (!folder.ok()) return folder.status();
  std::unique_ptr<WeightFiles> result(new WeightFiles());
  result->path_ = path;
  result->model_type_ = folder->model_type;
  result->tied_ = folder->tied;
  result->adapter_config_ = folder->adapter_config;
  result->warnings_ = folder->warnings;
  std::vector<std::string> problems;
  std::vector<TensorLine> lines;
  std::set<std::pair<std::string, int>> again;
  bool all_read = true;
  for (size_t i = 0; i < folder->files.size(); ++i) {
    const std::string& name = folder->files[i];
    const std::string file_path = folder->folder + name;
    const absl::StatusOr<PlainFile> file = PlainFile::Open(file_path);
    absl::StatusOr<SafetensorsHeader> header =
        file.ok() ? ReadSafetensorsHeader(*file) : absl::StatusOr<SafetensorsHeader>(file.status());
    if (!header.ok()) {
      all_read = false;
      const std::string message = Printable(std::string(header.status().message()));
      if (absl::IsNotFound(header.status()) && !folder->folder.empty()) {
        problems.push_back(Printable(WhyMissing(file_path, static_cast<int>(i), *folder)));
      } else {
        problems.push_back(absl::IsInvalidArgument(header.status()) ? absl::StrCat(file_path, ": ", message) : message);
      }
      continue;
    }
    header->text = {};
    const auto number = static_cast<int>(result->files_.size());
    for (auto& [tensor, about] : header->tensors) about.file = number;
    // Moved, not copied: there may be a million. Those that stay are there already.
    result->all_.merge(header->tensors);
    result->files_.push_back({file_path, file->bytes(), std::move(header->metadata)});
    for (const auto& [tensor, about] : header->tensors) {
      const std::string& first = result->files_[static_cast<size_t>(result->all_.at(tensor).file)].path;
      lines.push_back({"", tensor, absl::StrCat(": in ", first.substr(folder->folder.size()), " and in ", name)});
      again.emplace(tensor, static_cast<int>(i));
    }
    if (result->all_.size() > kMaxSafetensorsTensors) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has more than ", kMaxSafetensorsTensors, " tensors, which is the limit"));
    }
    result->handles_.push_back(std::make_unique<Handle>());
  }
  if (all_read) {
    CompareIndex(*folder, result->all_, again, lines);
    if (lines.empty() && folder->total_size) {
      int64_t bytes = 0;
      for (const auto& [tensor, about] : result->all_) bytes += about.bytes;
      if (bytes != *folder->total_size) {
        result->warnings_.push_back(absl::StrCat("the index says total_size ", *folder->total_size,
                                                 ", and the tensors have ", bytes, " bytes"));
      }
    }
  }
  for (std::string& line : CountedLines(lines)) problems.push_back(std::move(line));
  if (problems.size() == 1 && folder->folder.empty()) return absl::InvalidArgumentError(problems[0]);
  if (!problems.empty())
    return absl::InvalidArgumentError(ListOf(path + " is damaged or incomplete:", std::move(problems)));
  return result;
}

const std::vector<int64_t>* WeightFiles::ShapeOf(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second.shape;
}

std::optional<TensorType> WeightFiles::TypeOf(const std::string& key) const {
  const auto found = all_.find(key);
  if (found == all_.end()) return std::nullopt;
  const std::optional<DType> dtype = ReadType(found->second.type);
  if (!dtype) return std::nullopt;
  return TensorType{*dtype, found->second.shape};
}

absl::Status WeightFiles::ReadBytes(const WeightTensor& tensor, int64_t first, std::span<std::byte> to) const {
  Handle& handle = *handles_[static_cast<size_t>(tensor.file)];
  const File& about = files_[static_cast<size_t>(tensor.file)];
  absl::call_once(handle.once, [&] {
    absl::StatusOr<PlainFile> file = PlainFile::Open(about.path);
    if (!file.ok()) {
      handle.opened = absl::DataLossError(file.status().message());
    } else if (file->bytes() != about.bytes) {
      handle.opened = absl::DataLossError(absl::StrCat(about.path, " changes while it is read: it had ", about.bytes,
                                                       " bytes, and has ", file->bytes()));
    } else {
      handle.file = *std::move(file);
    }
  });
  if (!handle.opened.ok()) return handle.opened;
  if (const absl::Status read = handle.file.Read(tensor.offset + first, to); !read.ok())
    return absl::DataLossError(read.message());
  bytes_read_ += static_cast<int64_t>(to.size());
  return absl::OkStatus();
}

std::string WeightFiles::PlaceOf(const std::string& key) const {
  return absl::StrCat(files_[static_cast<size_t>(all_.at(key).file)].path, ": tensor ", Printable(key));
}

absl::Status WeightFiles::Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                               Numbers numbers) {
  const auto found = all_.find(key);
  const std::optional<DType> type = found == all_.end() ? std::nullopt : ReadType(found->second.type);
  if (!type) return absl::InvalidArgumentError(absl::StrCat(path_, " has no tensor ", key));
  const WeightTensor& tensor = found->second;
  const DType dtype = *type;
  const int64_t width = DTypeBytes(dtype), stored = BitsOfSafetensorsType(tensor.type) / 8;
  const absl::Status inside = CheckRuns(key, runs, ElementsOf(tensor.shape), static_cast<int64_t>(to.size()) / width);
  if (!inside.ok()) return inside;
  std::vector<uint16_t> halves;
  for (const ElementRun& run : runs) {
    for (int64_t done = 0; done < run.count; done += kBlock / width) {
      const int64_t count = std::min(kBlock / width, run.count - done);
      const std::span<std::byte> target = to.subspan((run.local + done) * width, count * width);
      absl::Status read;
      if (stored == width) {
        read = ReadBytes(tensor, (run.whole + done) * stored, target);
      } else {
        halves.resize(static_cast<size_t>(count));
        read = ReadBytes(tensor, (run.whole + done) * stored, std::as_writable_bytes(std::span(halves)));
        if (read.ok()) WidenFp16(halves, target);
      }
      if (!read.ok()) return read;
      if (numbers == Numbers::kAny) continue;
      if (const auto at = FirstNotFinite(dtype, target)) {
        return absl::DataLossError(absl::StrCat(PlaceOf(key), NotFinite(run.whole + done + *at)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
