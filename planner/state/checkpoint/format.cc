#include "planner/state/checkpoint/format.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

// A byte that is no UTF-8 is replaced: a name is for people.
std::string Quoted(const std::string& text) { return JsonText(Json(text)); }

// Reads the fields of one object. The first problem is kept, and all fields read after it are empty.
class Fields {
 public:
  Fields(const Json& json, std::string where, std::string& problem)
      : json_(json), where_(std::move(where)), problem_(problem) {
    if (!json_.is_object()) Wrong("it is not an object");
  }

  int64_t Number(const char* key, int64_t least, int64_t most) {
    const Json* value = Find(key);
    if (value == nullptr) return 0;
    if (!IsNumber(*value, least, most)) {
      Wrong(absl::StrCat(key, " is not a number from ", least, " to ", most));
      return 0;
    }
    return value->get<int64_t>();
  }
  std::string Text(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr) return "";
    if (!value->is_string()) {
      Wrong(absl::StrCat(key, " is not a text"));
      return "";
    }
    return value->get<std::string>();
  }
  // Texts by name.
  std::map<std::string, std::string> Texts(const char* key) {
    std::map<std::string, std::string> texts;
    const Json* value = Find(key);
    if (value == nullptr) return texts;
    if (!value->is_object()) Wrong(absl::StrCat(key, " is not an object"));
    for (const auto& [name, text] : value->items()) {
      if (!text.is_string()) Wrong(absl::StrCat(key, ".", Quoted(name), " is not a text"));
      if (!problem_.empty()) return {};
      texts[name] = text.get<std::string>();
    }
    return texts;
  }
  // A finite number.
  double Real(const Json& value, const std::string& name) {
    if (value.is_number()) return value.get<double>();
    Wrong(absl::StrCat(name, " is not a number"));
    return 0;
  }
  // Of fields that a file may lack.
  std::vector<double> RealsOrNone(const char* key) {
    std::vector<double> numbers;
    if (!json_.is_object() || !json_.contains(key)) return numbers;
    List(key, [&](const Json& item) { numbers.push_back(Real(item, absl::StrCat("an item of ", key))); });
    return numbers;
  }
  // {"held_out": {"loss": 3.1 or null, "samples_digest": "5f..."}}; older programs wrote {"held_out": 3.1}.
  std::map<std::string, SetLoss> LossesOrNone(const char* key) {
    std::map<std::string, SetLoss> losses;
    if (!json_.is_object() || !json_.contains(key)) return losses;
    const Json* value = Find(key);
    if (value == nullptr) return losses;
    if (!value->is_object()) Wrong(absl::StrCat(key, " is not an object"));
    if (!problem_.empty()) return losses;
    for (const auto& [name, json] : value->items()) {
      const std::string where = absl::StrCat(key, ".", Quoted(name));
      if (!json.is_object()) {
        losses[name].loss = Real(json, where);
        continue;
      }
      Fields set(json, where, problem_);
      const Json* loss = set.Find("loss");
      if (loss != nullptr && !loss->is_null()) losses[name].loss = set.Real(*loss, "its loss");
      losses[name].samples_digest = set.Text("samples_digest");
      set.Close();
    }
    return losses;
  }
  std::string RunId() {
    const std::string id = Text("run_id");
    if (!IsRunId(id)) Wrong(absl::StrCat("its run_id ", Quoted(id), " is not 32 hex digits"));
    return id;
  }
  // The version of the file; 0 if this release does not read it.
  int64_t Format() {
    const int64_t version = Number("format", 0, kLargestNumber);
    if (version == kCheckpointFormatVersion || version == kCheckpointFormatWithoutRun) return version;
    Wrong(absl::StrCat("its format is version ", version, "; this version reads ", kCheckpointFormatWithoutRun, " and ",
                       kCheckpointFormatVersion));
    return 0;
  }
  int Life() { return static_cast<int>(Number("life", 1, INT32_MAX)); }
  CheckpointCounters Counters() {
    CheckpointCounters counters;
    counters.step = Number("step", 0, kLargestNumber);
    counters.applied_steps = Number("applied_steps", 0, kLargestNumber);
    counters.skipped_steps = Number("skipped_steps", 0, kLargestNumber);
    counters.consumed_samples = Number("consumed_samples", 0, kLargestNumber);
    return counters;
  }
  // A list; each of its items goes to `read`.
  template <typename Read>
  void List(const char* key, Read read) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Wrong(absl::StrCat(key, " is not a list"));
    for (const Json& item : *value) {
      if (problem_.empty()) read(item);
    }
  }
  // A list of numbers from 0.
  static bool ReadNumbers(const Json& json, std::vector<int64_t>& numbers) {
    if (!json.is_array()) return false;
    for (const Json& number : json) {
      if (!IsNumber(number, 0, kLargestNumber)) return false;
      numbers.push_back(number.get<int64_t>());
    }
    return true;
  }
  const Json* Find(const char* key) {
    known_.emplace_back(key);
    if (!problem_.empty()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    Wrong(absl::StrCat("it has no ", key));
    return nullptr;
  }
  // After all fields were read: there is no other.
  void Close() {
    if (!problem_.empty()) return;
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return Wrong(absl::StrCat("it has an unknown field ", Quoted(key)));
    }
  }
  void Wrong(const std::string& what) {
    if (problem_.empty()) problem_ = where_.empty() ? what : absl::StrCat(where_, ": ", what);
  }

 private:
  static bool IsNumber(const Json& json, int64_t least, int64_t most) {
    if (!json.is_number_unsigned()) return false;  // the parser gives every integer from 0 this type
    const uint64_t value = json.get<uint64_t>();
    return value >= static_cast<uint64_t>(least) && value <= static_cast<uint64_t>(most);
  }

  const Json& json_;
  std::string where_;
  std::string& problem_;
  std::vector<std::string_view> known_;  // few: a manifest may have a million objects
};

bool CanBeKey(const std::string& key) {
  return !key.empty() && key != "__metadata__" &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string NoKey(const std::string& key) { return absl::StrCat(Quoted(key), " cannot be the key of a tensor"); }

ShardTensor ReadShardTensor(const std::string& key, const Json& json, std::string& problem) {
  ShardTensor tensor;
  Fields fields(json, absl::StrCat("tensor ", key), problem);
  const std::string type = fields.Text("dtype");
  const auto dtype = DTypeFromName(type);
  if (!dtype) fields.Wrong(absl::StrCat("its type ", Quoted(type), " is unknown"));
  tensor.dtype = dtype.value_or(DType::kFp32);
  const Json* shape = fields.Find("shape");
  if (shape != nullptr && !Fields::ReadNumbers(*shape, tensor.shape)) fields.Wrong("its shape is not a list of sizes");
  fields.List("elements", [&](const Json& item) {
    std::vector<int64_t> numbers;
    if (!Fields::ReadNumbers(item, numbers) || numbers.size() != 4)
      return fields.Wrong("elements are not four numbers");
    tensor.elements.push_back({numbers[0], numbers[1], numbers[2], numbers[3]});
  });
  tensor.sha256 = fields.Text("sha256");
  fields.Close();
  if (!problem.empty()) return tensor;
  if (const auto count = CheckShardTensor(key, tensor.shape, tensor.elements); !count.ok())
    problem = std::string(count.status().message());
  return tensor;
}

// The fields that manifest and index share.
std::string IdentityText(const CheckpointIdentity& of) {
  const CheckpointCounters& counters = of.counters;
  return absl::StrCat(
      of.run_id.empty() ? "" : absl::StrCat(",\n  \"run_id\": ", Quoted(of.run_id)), ",\n  \"life\": ", of.life,
      ",\n  \"step\": ", counters.step, ",\n  \"applied_steps\": ", counters.applied_steps,
      ",\n  \"skipped_steps\": ", counters.skipped_steps, ",\n  \"consumed_samples\": ", counters.consumed_samples);
}

std::string TextsOf(const char* key, const std::map<std::string, std::string>& texts) {
  if (texts.empty()) return "";
  return absl::StrCat(",\n  \"", key, "\": {",
                      absl::StrJoin(texts, ", ",
                                    [](std::string* out, const auto& source) {
                                      absl::StrAppend(out, "\n    ", Quoted(source.first), ": ", Quoted(source.second));
                                    }),
                      "\n  }");
}

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

std::string NotesText(const ManifestNotes& notes) {
  std::string text;
  if (!notes.recent_losses.empty()) {
    absl::StrAppend(&text, ",\n  \"recent_losses\": [",
                    absl::StrJoin(notes.recent_losses, ", ",
                                  [](std::string* out, double loss) { absl::StrAppend(out, Number(loss)); }),
                    "]");
  }
  if (notes.skipped_in_a_row > 0) absl::StrAppend(&text, ",\n  \"skipped_in_a_row\": ", notes.skipped_in_a_row);
  if (!notes.evaluation.empty()) {
    absl::StrAppend(&text, ",\n  \"evaluation\": {",
                    absl::StrJoin(notes.evaluation, ", ",
                                  [](std::string* out, const auto& set) {
                                    const SetLoss& loss = set.second;
                                    absl::StrAppend(out, "\n    ", Quoted(set.first),
                                                    ": {\"loss\": ", loss.loss ? Number(*loss.loss) : "null",
                                                    ", \"samples_digest\": ", Quoted(loss.samples_digest), "}");
                                  }),
                    "\n  }");
  }
  return text;
}

int FormatOf(bool has_run) { return has_run ? kCheckpointFormatVersion : kCheckpointFormatWithoutRun; }

// The last line of a manifest. The digest covers all before the line.
std::string DigestLine(std::string_view before) {
  return absl::StrCat("  \"sha256\": \"", Sha256Hex(before), "\"\n}\n");
}

}  // namespace

bool IsRunId(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<ElementStride> StridesOf(const std::vector<ElementRun>& runs) {
  std::vector<ElementStride> strides;
  for (size_t i = 0; i < runs.size();) {
    // Runs that follow each other in the whole tensor, though not in the storage, are one run here.
    ElementStride run{runs[i].whole, runs[i].count, 0, 1};
    for (++i; i < runs.size() && runs[i].whole == run.first + run.count; ++i) run.count += runs[i].count;
    if (!strides.empty() && strides.back().count == run.count) {
      ElementStride& last = strides.back();
      const int64_t distance = run.first - (last.first + (last.times - 1) * last.stride);
      if (last.times == 1 || last.stride == distance) {
        last.stride = distance;
        ++last.times;
        continue;
      }
    }
    strides.push_back(run);
  }
  return strides;
}

std::vector<ElementRun> RunsOf(const std::vector<ElementStride>& strides) {
  std::vector<ElementRun> runs;
  int64_t local = 0;
  for (const ElementStride& stride : strides) {
    for (int64_t i = 0; i < stride.times; ++i, local += stride.count)
      runs.push_back({local, stride.first + i * stride.stride, stride.count});
  }
  return runs;
}

absl::StatusOr<int64_t> CheckShardTensor(const std::string& key, const std::vector<int64_t>& shape,
                                         const std::vector<ElementStride>& elements) {
  const auto wrong = [&key](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", key, ": ", what...));
  };
  if (!CanBeKey(key)) return absl::InvalidArgumentError(NoKey(key));
  if (shape.size() > kMaxSafetensorsRank)
    return wrong("it has ", shape.size(), " dims, more than ", kMaxSafetensorsRank);
  int64_t whole = 1;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(whole, size, &whole) || whole > kMostElements)
      return wrong("its shape [", absl::StrJoin(shape, ","), "] is not possible");
  }
  if (elements.empty() && whole > 0) return wrong("none of its elements are there");
  int64_t end = 0, count = 0;
  for (const ElementStride& stride : elements) {
    int64_t next = 0;
    const bool good = stride.first >= end && stride.count >= 1 && stride.times >= 1 &&
                      (stride.times == 1 ? stride.stride == 0 : stride.stride >= stride.count) &&
                      !__builtin_mul_overflow(stride.times - 1, stride.stride, &next) &&
                      !__builtin_add_overflow(next, stride.first, &next) &&
                      !__builtin_add_overflow(next, stride.count, &next) && next <= whole;
    if (!good) {
      return wrong("elements [", stride.first, ",", stride.count, ",", stride.stride, ",", stride.times,
                   "] do not ascend in a tensor of ", whole);
    }
    end = next;
    count += stride.count * stride.times;
  }
  return count;
}

std::vector<int64_t> ShapeInShard(const std::vector<int64_t>& shape, int64_t count) {
  return count == ElementsOf(shape) ? shape : std::vector<int64_t>{count};
}

std::string WriteShardIndex(const ShardIndex& index) {
  std::string tensors;
  for (const auto& [key, tensor] : index.tensors) {
    absl::StrAppend(&tensors, tensors.empty() ? "\n    " : ",\n    ", Quoted(key), ": {\"dtype\": \"",
                    std::string(DTypeName(tensor.dtype)), "\", \"shape\": [", absl::StrJoin(tensor.shape, ", "),
                    "], \"elements\": [",
                    absl::StrJoin(tensor.elements, ", ",
                                  [](std::string* out, const ElementStride& stride) {
                                    absl::StrAppend(out, "[", stride.first, ", ", stride.count, ", ", stride.stride,
                                                    ", ", stride.times, "]");
                                  }),
                    "], \"sha256\": ", Quoted(tensor.sha256), "}");
  }
  return absl::StrCat("{\n  \"format\": ", FormatOf(index.of.has_value()), ",\n  \"rank\": ", index.rank,
                      index.of ? IdentityText(*index.of) : "", ",\n  \"bytes\": ", index.bytes,
                      ",\n  \"header_sha256\": ", Quoted(index.header_sha256), ",\n  \"tensors\": {", tensors,
                      "\n  }\n}\n");
}

absl::StatusOr<ShardIndex> ReadShardIndex(std::string_view text) {
  const absl::StatusOr<Json> parsed = ParseJson(text, kShardIndexJson);
  if (!parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat("it is not JSON that can be read: ", parsed.status().message()));
  const Json& json = *parsed;
  ShardIndex index;
  std::string problem;
  Fields fields(json, "", problem);
  const int64_t version = fields.Format();
  index.rank = static_cast<int>(fields.Number("rank", 0, kMostRanks - 1));
  if (version == kCheckpointFormatVersion)
    index.of = {.run_id = fields.RunId(), .life = fields.Life(), .counters = fields.Counters()};
  index.bytes = fields.Number("bytes", 0, kLargestNumber);
  index.header_sha256 = fields.Text("header_sha256");
  if (const Json* tensors = fields.Find("tensors"); tensors != nullptr) {
    if (!tensors->is_object()) fields.Wrong("tensors are not an object");
    if (tensors->size() > kMaxSafetensorsTensors) fields.Wrong("it has too many tensors");
    for (const auto& [key, tensor] : tensors->items()) {
      if (!CanBeKey(key)) fields.Wrong(NoKey(key));
      if (!problem.empty()) break;
      index.tensors[key] = ReadShardTensor(key, tensor, problem);
    }
  }
  fields.Close();
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return index;
}

std::map<std::string, std::string> ShardMetadata(const ShardIndex& index) {
  if (!index.of) return {};
  return {{"run_id", index.of->run_id},
          {"checkpoint", CheckpointFolder(index.of->counters.step, index.of->life)},
          {"rank", absl::StrCat(index.rank)}};
}

std::string WriteManifest(const Manifest& manifest) {
  std::string shards;
  for (const ManifestShard& shard : manifest.shards) {
    absl::StrAppend(&shards, shards.empty() ? "\n    " : ",\n    ", "{\"rank\": ", shard.rank,
                    ", \"bytes\": ", shard.bytes, ", \"index_bytes\": ", shard.index_bytes,
                    ", \"index_sha256\": ", Quoted(shard.index_sha256), "}");
  }
  const std::string before =
      absl::StrCat("{\n  \"format\": ", FormatOf(!manifest.run_id.empty()), ",\n  \"name\": ", Quoted(manifest.name),
                   ",\n  \"plan_digest\": ", Quoted(manifest.plan_digest),
                   ",\n  \"recipe_digest\": ", Quoted(manifest.recipe_digest),
                   ",\n  \"precision\": ", Quoted(manifest.precision), ",\n  \"world_size\": ", manifest.world_size,
                   IdentityText(manifest.identity()), ",\n  \"plan_bytes\": ", manifest.plan_bytes,
                   ",\n  \"plan_sha256\": ", Quoted(manifest.plan_sha256), TextsOf("data", manifest.data),
                   TextsOf("base", manifest.base), NotesText(manifest.notes), ",\n  \"shards\": [", shards, "\n  ],\n");
  return before + DigestLine(before);
}

absl::StatusOr<Manifest> ReadManifest(std::string_view text) {
  static const size_t tail = DigestLine("").size();
  if (text.size() < tail) return absl::InvalidArgumentError("it is cut off");
  const std::string_view before = text.substr(0, text.size() - tail);
  // The whole line is compared, so no byte of the file is left out.
  if (text.substr(before.size()) != DigestLine(before))
    return absl::InvalidArgumentError("it is damaged: its last line is not the SHA-256 of all before");
  const absl::StatusOr<Json> parsed = ParseJson(text, kManifestJson);
  if (!parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat("it is not JSON that can be read: ", parsed.status().message()));
  const Json& json = *parsed;
  Manifest manifest;
  std::string problem;
  Fields fields(json, "", problem);
  const int64_t version = fields.Format();
  manifest.name = fields.Text("name");
  manifest.plan_digest = fields.Text("plan_digest");
  manifest.recipe_digest = fields.Text("recipe_digest");
  manifest.precision = fields.Text("precision");
  manifest.world_size = static_cast<int>(fields.Number("world_size", 0, kMostRanks));
  if (version == kCheckpointFormatVersion) manifest.run_id = fields.RunId();
  manifest.life = fields.Life();
  manifest.counters = fields.Counters();
  manifest.plan_bytes = fields.Number("plan_bytes", 0, kLargestNumber);
  manifest.plan_sha256 = fields.Text("plan_sha256");
  if (json.is_object() && json.contains("data")) manifest.data = fields.Texts("data");
  if (json.is_object() && json.contains("base")) manifest.base = fields.Texts("base");
  manifest.notes = {fields.RealsOrNone("recent_losses"), 0, fields.LossesOrNone("evaluation")};
  if (json.is_object() && json.contains("skipped_in_a_row"))
    manifest.notes.skipped_in_a_row = fields.Number("skipped_in_a_row", 0, manifest.counters.skipped_steps);
  fields.List("shards", [&](const Json& item) {
    Fields shard(item, absl::StrCat("shards[", manifest.shards.size(), "]"), problem);
    ManifestShard read;
    read.rank = static_cast<int>(shard.Number("rank", 0, kMostRanks - 1));
    read.bytes = shard.Number("bytes", 0, kLargestNumber);
    read.index_bytes = shard.Number("index_bytes", 0, kLargestNumber);
    read.index_sha256 = shard.Text("index_sha256");
    shard.Close();
    if (read.rank >= manifest.world_size) shard.Wrong(absl::StrCat("rank ", read.rank, " is not in the world"));
    if (!manifest.shards.empty() && read.rank <= manifest.shards.back().rank) shard.Wrong("ranks do not ascend");
    manifest.shards.push_back(read);
  });
  fields.Find("sha256");
  fields.Close();
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return manifest;
}

std::string CheckpointFolder(int64_t step, int life) { return absl::StrFormat("step-%08d.life-%d", step, life); }
std::string ShardFile(int rank) { return absl::StrFormat("rank-%05d.safetensors", rank); }
std::string IndexFile(int rank) { return absl::StrFormat("rank-%05d.json", rank); }

}  // namespace planwright
