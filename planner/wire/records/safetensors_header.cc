#include "planner/wire/records/safetensors_header.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "planner/base/json/json_text.h"
#include "planner/base/text/stand_in.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

struct TypeBits {
  std::string_view name;
  int bits;
};
constexpr TypeBits kTypes[] = {{"BF16", 16},   {"F32", 32},        {"F16", 16},        {"F64", 64},    {"I64", 64},
                               {"I32", 32},    {"I16", 16},        {"I8", 8},          {"U64", 64},    {"U32", 32},
                               {"U16", 16},    {"U8", 8},          {"BOOL", 8},        {"F8_E4M3", 8}, {"F8_E5M2", 8},
                               {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
                               {"F4", 4},      {"C64", 64}};

// Bytes of a tensor; none if a size is negative, the product overflows, or its bits are no whole bytes.
std::optional<int64_t> BytesOf(int bits, const std::vector<int64_t>& shape) {
  int64_t all = bits;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(all, size, &all)) return std::nullopt;
  }
  if (all % 8 != 0) return std::nullopt;
  return all / 8;
}

// The list of integers under a key, each from 0 to the largest int64; none if it is anything else.
std::optional<std::vector<int64_t>> SizesUnder(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : *found) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

// Checks all that one entry says by itself. Whether tensors overlap needs all entries. Offsets are in bytes from the
// end of the header.
absl::StatusOr<HeaderTensor> ReadEntry(const std::string& name, const Json& json) {
  const auto wrong = [&](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": ", what...));
  };
  if (!json.is_object()) return wrong("its entry is not an object");
  const auto type = json.find("dtype");
  if (type == json.end() || !type->is_string()) return wrong("no dtype");
  const auto word = type->get<std::string>();
  const int bits = BitsOfSafetensorsType(word);
  if (bits == 0) return wrong("dtype \"", word, "\" is none that the format has");
  auto shape = SizesUnder(json, "shape");
  const auto offsets = SizesUnder(json, "data_offsets");
  if (!shape) return wrong("its shape is not a list of sizes");
  if (shape->size() > kMaxSafetensorsRank)
    return wrong(shape->size(), " dimensions, at most ", kMaxSafetensorsRank, " are read");
  if (!offsets || offsets->size() != 2) return wrong("data_offsets is not two offsets");
  const auto bytes = BytesOf(bits, *shape);
  if (!bytes) return wrong("its shape overflows, or is no whole number of bytes");
  if ((*offsets)[0] > (*offsets)[1]) return wrong("data_offsets run backwards");
  if ((*offsets)[1] - (*offsets)[0] != *bytes)
    return wrong("its shape needs ", *bytes, " bytes, its offsets span ", (*offsets)[1] - (*offsets)[0]);
  return HeaderTensor{.type = word, .shape = *std::move(shape), .offset = (*offsets)[0], .bytes = *bytes};
}

absl::Status ReadMetadata(const Json& json, std::map<std::string, std::string>& metadata) {
  if (!json.is_object()) return absl::InvalidArgumentError("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return absl::InvalidArgumentError(absl::StrCat("metadata ", key, " is not a string"));
    metadata[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// In the order of offsets, each tensor must begin where the one before ends: so no byte belongs to two tensors or none.
absl::Status CheckCover(const std::map<std::string, HeaderTensor>& tensors, int64_t data_bytes) {
  struct Span {
    int64_t begin = 0, end = 0;
    const std::string* name = nullptr;
  };
  std::vector<Span> spans;
  spans.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) spans.push_back({tensor.offset, tensor.offset + tensor.bytes, &name});
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  int64_t covered = 0;
  for (const Span& span : spans) {
    if (span.begin != covered) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", *span.name, " starts at ", span.begin, ", the one before ends at ", covered));
    }
    covered = span.end;
  }
  if (covered > data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the tensors end at ", covered, ", the data at ", data_bytes,
                                                   ": the file is cut short by ", covered - data_bytes, " bytes"));
  }
  if (covered < data_bytes)
    return absl::InvalidArgumentError(absl::StrCat("the tensors end at ", covered, ", the data at ", data_bytes));
  return absl::OkStatus();
}

// The bytes of the header, with its length before it.
absl::StatusOr<std::string> HeaderText(const PlainFile& file) {
  const auto bytes_of = [](auto& object, size_t size) { return std::as_writable_bytes(std::span(&object, size)); };
  const int64_t file_bytes = file.bytes();
  std::string begin(static_cast<size_t>(std::min<int64_t>(file_bytes, kStandInBytes)), '\0');
  if (absl::Status status = file.Read(0, std::as_writable_bytes(std::span(begin))); !status.ok()) return status;
  if (const std::string other = StandInFor(begin); !other.empty()) return absl::InvalidArgumentError(other);
  if (file_bytes < 8)
    return absl::InvalidArgumentError(absl::StrCat(file_bytes, " bytes are too few for a safetensors file"));
  uint64_t length = 0;
  if (absl::Status status = file.Read(0, bytes_of(length, 1)); !status.ok()) return status;
  // Before anything of that length is read: the length is the file's claim.
  if (length > static_cast<uint64_t>(file_bytes) - 8 && (begin.size() <= 8 || begin[8] != '{'))
    return absl::InvalidArgumentError("it is no safetensors file: no header in JSON follows its first 8 bytes");
  if (length > kMaxSafetensorsHeader)
    return absl::InvalidArgumentError(absl::StrCat("a header of ", length, " bytes is too long"));
  if (length > static_cast<uint64_t>(file_bytes) - 8)
    return absl::InvalidArgumentError("the header is longer than the file");
  std::string text(8 + length, '\0');
  if (absl::Status status = file.Read(0, bytes_of(text[0], text.size())); !status.ok()) return status;
  return text;
}

}  // namespace

int BitsOfSafetensorsType(std::string_view type) {
  for (const TypeBits& known : kTypes) {
    if (known.name == type) return known.bits;
  }
  return 0;
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const PlainFile& file) {
  absl::StatusOr<std::string> text = HeaderText(file);
  if (!text.ok()) return text.status();
  const auto no_object = [](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("the header is not a JSON object", why));
  };
  SafetensorsHeader header;
  bool has_metadata = false;
  absl::Status wrong;  // what is wrong with a field, which is JSON
  const auto visit = [&](std::string name, Json value) {
    const auto twice = [&name, &no_object] { return no_object(": " + GivenTwice(name)); };
    if (name == "__metadata__") {
      wrong = std::exchange(has_metadata, true) ? twice() : ReadMetadata(value, header.metadata);
      return wrong;
    }
    absl::StatusOr<HeaderTensor> entry = ReadEntry(name, value);
    wrong = entry.status();
    if (wrong.ok() && header.tensors.size() == kMaxSafetensorsTensors)
      wrong = absl::InvalidArgumentError("too many tensors");
    if (wrong.ok() && !header.tensors.try_emplace(std::move(name), *std::move(entry)).second) wrong = twice();
    return wrong;
  };
  const absl::StatusOr<Json> json = ParseFields(std::string_view(*text).substr(8), kSafetensorsJson, "", visit);
  if (!wrong.ok()) return wrong;
  if (!json.ok()) return no_object(absl::StrCat(": ", json.status().message()));
  if (!json->is_object()) return no_object("");
  const auto data = static_cast<int64_t>(text->size());
  if (absl::Status status = CheckCover(header.tensors, file.bytes() - data); !status.ok()) return status;
  for (auto& [name, tensor] : header.tensors) tensor.offset += data;
  header.text = *std::move(text);
  return header;
}

}  // namespace planwright
