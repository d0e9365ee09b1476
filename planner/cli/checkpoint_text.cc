#include "planner/cli/checkpoint_text.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/optimizer_states.h"
#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string NameOfFolder(const std::string& folder) {
  const std::filesystem::path path(folder);
  return Printable((path.has_filename() ? path : path.parent_path()).filename().string());
}

// When the manifest was written, by the file system's clock; empty: there is none.
std::string PublishedAt(const std::string& folder) {
  struct stat about {};
  std::tm utc{};
  if (stat((folder + "/" + kManifestFile).c_str(), &about) != 0 || gmtime_r(&about.st_mtime, &utc) == nullptr)
    return "";
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

const char* KindText(UnusableCheckpoint::Kind kind) {
  switch (kind) {
    case UnusableCheckpoint::Kind::kForeign: return "foreign";
    case UnusableCheckpoint::Kind::kOffPath: return "replaced";
    case UnusableCheckpoint::Kind::kNoLife: return "of no life";
    case UnusableCheckpoint::Kind::kOtherRun: return "of another run";
    case UnusableCheckpoint::Kind::kNotPublished: return "not published";
    case UnusableCheckpoint::Kind::kDamaged: return "damaged";
  }
  return "";
}

// A row of the table of checkpoints.
struct ListedCheckpoint {
  const FoundCheckpoint* found = nullptr;  // or
  const UnusableCheckpoint* unusable = nullptr;

  const std::string& folder() const { return found ? found->folder : unusable->folder; }
  int64_t step() const { return found ? found->manifest.counters.step : unusable->step; }
  int life() const { return found ? found->manifest.life : unusable->life; }
};

std::vector<ListedCheckpoint> NewestFirst(const CheckpointList& list) {
  std::vector<ListedCheckpoint> all;
  for (const FoundCheckpoint& found : list.found) all.push_back({&found, nullptr});
  for (const UnusableCheckpoint& unusable : list.unusable) all.push_back({nullptr, &unusable});
  std::stable_sort(all.begin(), all.end(), [](const ListedCheckpoint& a, const ListedCheckpoint& b) {
    return std::pair(a.life(), a.step()) > std::pair(b.life(), b.step());
  });
  return all;
}

// "; held_out 2.9512 (best), other 3.1": the losses of the evaluation sets with these weights; empty: there are none.
std::string LossesText(const CheckpointList& list, const FoundCheckpoint& found) {
  std::string text;
  for (const auto& [set, loss] : found.manifest.notes.evaluation) {
    absl::StrAppend(&text, text.empty() ? "; " : ", ", Printable(set), " ",
                    loss.loss ? absl::StrFormat("%.6g", *loss.loss) : "nan",
                    BestCheckpoint(list.found, set) == &found ? " (best)" : "");
  }
  return text;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// The sum, or the largest number if that is beyond it: a forged file can say that it has any number of bytes.
int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// What a key is about: "language", or "" if it has no dot.
std::string ModuleOf(const std::string& key) {
  const size_t dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

// "layers.3.norm" -> "layers.*.norm"
std::string WithoutNumbers(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (std::string& part : parts) {
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) part = "*";
  }
  return absl::StrJoin(parts, ".");
}

// The number of a state in kOptimizerStates, from 0: the order in which states are listed. -1: the weight itself.
int NumberOf(const std::string& state) {
  for (size_t i = 0; i < std::size(kOptimizerStates); ++i) {
    if (kOptimizerStates[i].name == state) return static_cast<int>(i);
  }
  return -1;
}

// What a checkpoint keeps of one weight: itself, or states, or both.
struct KeptWeight {
  std::map<int, DType> parts;  // as NumberOf numbers them
  int64_t bytes = 0;
  size_t fewest_shards = std::numeric_limits<size_t>::max(), most_shards = 0;  // that a part is in
};

// The weight's name without that of its module, and its shape.
using WeightName = std::pair<std::string, std::vector<int64_t>>;
struct StoredModule {
  int64_t tensors = 0, bytes = 0;
  std::map<WeightName, KeptWeight> weights;
};

std::map<std::string, StoredModule> ModulesOf(const StoredCheckpoint& checkpoint) {
  std::map<std::string, StoredModule> modules;
  for (const auto& [key, tensor] : checkpoint.tensors) {
    const std::string name = ModuleOf(key);
    StoredModule& module = modules[name];
    ++module.tensors;
    module.bytes = Sum(module.bytes, tensor.bytes());
    const KeyParts parts = SplitKey(name.empty() ? key : key.substr(name.size() + 1));
    KeptWeight& kept = module.weights[{parts.name, tensor.shape}];
    kept.parts[NumberOf(parts.state)] = tensor.dtype;
    kept.bytes = Sum(kept.bytes, tensor.bytes());
    kept.fewest_shards = std::min(kept.fewest_shards, tensor.ranks.size());
    kept.most_shards = std::max(kept.most_shards, tensor.ranks.size());
  }
  return modules;
}

std::string PartsText(const std::map<int, DType>& parts) {
  return absl::StrJoin(parts, ", ", [](std::string* out, const auto& part) {
    out->append(part.first < 0 ? "weight" : std::string(kOptimizerStates[part.first].name));
  });
}

std::string TypesText(const std::map<int, DType>& parts) {
  std::vector<std::string> names;
  for (const auto& [part, dtype] : parts) {
    const std::string name(DTypeName(dtype));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

// Weights whose names differ by numbers alone are one row, if shape and parts are the same.
std::string WeightsTable(const StoredModule& module, size_t width) {
  struct Row {
    int64_t weights = 0, bytes = 0;
    size_t fewest_shards = std::numeric_limits<size_t>::max(), most_shards = 0;
  };
  std::map<std::tuple<std::string, std::vector<int64_t>, std::map<int, DType>>, Row> rows;
  for (const auto& [name, kept] : module.weights) {
    Row& row = rows[{WithoutNumbers(name.first), name.second, kept.parts}];
    ++row.weights;
    row.bytes = Sum(row.bytes, kept.bytes);
    row.fewest_shards = std::min(row.fewest_shards, kept.fewest_shards);
    row.most_shards = std::max(row.most_shards, kept.most_shards);
  }
  Table table({"name", "number", "shape", "type", "size", "shards", "kept"});
  for (const auto& [key, row] : rows) {
    const auto& [name, shape, parts] = key;
    std::string shards = std::to_string(row.fewest_shards);
    if (row.most_shards > row.fewest_shards) absl::StrAppend(&shards, "-", row.most_shards);
    table.Add({Printable(name), WithCommas(row.weights), ShapeText(shape), TypesText(parts), BytesText(row.bytes),
               shards, PartsText(parts)});
  }
  return table.Text("  ", width);
}

}  // namespace

int64_t BytesOf(const Manifest& manifest) {
  int64_t bytes = manifest.plan_bytes;
  for (const ManifestShard& shard : manifest.shards) bytes = Sum(bytes, Sum(shard.bytes, shard.index_bytes));
  return bytes;
}

namespace {

// "; life 2 began from it", which is why it may stay beyond checkpoint.keep_last; empty: the newest life did not.
std::string BeganText(const CheckpointList& list, const Manifest& manifest) {
  const LifeStart& start = list.newest_start;
  const bool began = start.from_life == manifest.life && start.from_step == manifest.counters.step;
  return began ? absl::StrCat("; life ", list.newest_life, " began from it") : "";
}

}  // namespace

std::string CheckpointsText(const CheckpointList& list, size_t width) {
  Table table({"step", "life", "samples", "size", "published", "state"});
  for (const ListedCheckpoint& row : NewestFirst(list)) {
    if (row.found) {
      const Manifest& manifest = row.found->manifest;
      table.Add({std::to_string(row.step()), std::to_string(row.life()), WithCommas(manifest.counters.consumed_samples),
                 BytesText(BytesOf(manifest)), PublishedAt(row.folder()),
                 "usable" + BeganText(list, manifest) + LossesText(list, *row.found)});
      continue;
    }
    const bool named = row.step() >= 0;
    std::string state = KindText(row.unusable->kind);
    if (!named) absl::StrAppend(&state, ", ", NameOfFolder(row.folder()));
    absl::StrAppend(&state, ": ", Printable(row.unusable->why));
    table.Add({named ? std::to_string(row.step()) : "", named ? std::to_string(row.life()) : "", "", "",
               PublishedAt(row.folder()), state});
  }
  return table.Text("", width);
}

Json CheckpointsJson(const CheckpointList& list) {
  Json checkpoints = Json::array();
  for (const ListedCheckpoint& row : NewestFirst(list)) {
    Json& json = checkpoints.emplace_back();
    json["folder"] = row.folder();
    json["step"] = row.step() >= 0 ? Json(row.step()) : Json(nullptr);
    json["life"] = row.step() >= 0 ? Json(row.life()) : Json(nullptr);
    json["consumed_samples"] = row.found ? Json(row.found->manifest.counters.consumed_samples) : Json(nullptr);
    json["bytes"] = row.found ? Json(BytesOf(row.found->manifest)) : Json(nullptr);
    const std::string published = PublishedAt(row.folder());
    json["published"] = published.empty() ? Json(nullptr) : Json(published);
    json["state"] = row.found ? "usable" : KindText(row.unusable->kind);
    json["why"] = row.found ? Json(nullptr) : Json(row.unusable->why);
    json["evaluation"] = row.found ? Json::object() : Json(nullptr);
    json["best_of"] = Json::array();
    if (!row.found) continue;
    for (const auto& [set, loss] : row.found->manifest.notes.evaluation) {
      json["evaluation"][set] = loss.loss ? Json(*loss.loss) : Json(nullptr);
      if (BestCheckpoint(list.found, set) == row.found) json["best_of"].push_back(set);
    }
  }
  return {{"checkpoints", checkpoints}};
}

int64_t ShardedTensor::bytes() const { return ElementsOf(shape) * DTypeBytes(dtype); }

std::string CheckpointText(const StoredCheckpoint& checkpoint, size_t width) {
  const Manifest& manifest = checkpoint.manifest;
  const CheckpointCounters& counters = manifest.counters;
  std::string text = absl::StrCat(
      NameOfFolder(checkpoint.folder), " of ", Printable(manifest.name), "\n  after step ", counters.step, ": ",
      counters.applied_steps, " applied, ", counters.skipped_steps, " skipped, ",
      Counted(counters.consumed_samples, "sample"), "\n  written by life ", manifest.life, " on ",
      Counted(manifest.world_size, "rank"), ", published ", PublishedAt(checkpoint.folder),
      manifest.run_id.empty() ? "" : "\n  of run " + manifest.run_id, "\n  ", Printable(manifest.precision), ", ",
      Counted(static_cast<int64_t>(manifest.shards.size()), "shard"), ", ", BytesText(BytesOf(manifest)), "\n  plan ",
      Printable(manifest.plan_digest), "\n  recipe ", Printable(manifest.recipe_digest), "\n");
  for (const auto& [name, module] : ModulesOf(checkpoint)) {
    absl::StrAppend(&text, "\n", name.empty() ? "other" : Printable(name), ": ", Counted(module.tensors, "tensor"),
                    ", ", BytesText(module.bytes), "\n", WeightsTable(module, width));
  }
  return text;
}

Json CheckpointJson(const StoredCheckpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  Json shards = Json::array(), tensors = Json::array();
  for (const ManifestShard& shard : manifest.shards)
    shards.push_back({{"rank", shard.rank}, {"bytes", shard.bytes}, {"index_bytes", shard.index_bytes}});
  for (const auto& [key, tensor] : checkpoint.tensors) {
    tensors.push_back({{"key", key},
                       {"dtype", std::string(DTypeName(tensor.dtype))},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes()},
                       {"ranks", tensor.ranks}});
  }
  return {{"folder", checkpoint.folder},
          {"name", manifest.name},
          {"step", manifest.counters.step},
          {"applied_steps", manifest.counters.applied_steps},
          {"skipped_steps", manifest.counters.skipped_steps},
          {"consumed_samples", manifest.counters.consumed_samples},
          {"run_id", manifest.run_id.empty() ? Json(nullptr) : Json(manifest.run_id)},
          {"life", manifest.life},
          {"world_size", manifest.world_size},
          {"precision", manifest.precision},
          {"plan_digest", manifest.plan_digest},
          {"recipe_digest", manifest.recipe_digest},
          {"published", PublishedAt(checkpoint.folder)},
          {"bytes", BytesOf(manifest)},
          {"shards", shards},
          {"tensors", tensors}};
}

std::string CheckedText(const CheckedCheckpoint& checked) {
  const std::string name = NameOfFolder(checked.folder);
  if (checked.problems.empty()) return absl::StrCat(name, ": whole, ", BytesText(checked.bytes), " read\n");
  if (checked.removed) return name + ": was removed while it was read; a run keeps only some (checkpoint.keep_last)\n";
  std::string text = name + ": damaged\n";
  for (const CheckpointProblem& problem : checked.problems)
    absl::StrAppend(&text, "  ", Printable(problem.file), ": ", Printable(problem.what), "\n");
  return text;
}

Json CheckedJson(const CheckedCheckpoint& checked) {
  Json problems = Json::array();
  for (const CheckpointProblem& problem : checked.problems)
    problems.push_back({{"file", problem.file}, {"what", problem.what}});
  return {{"folder", checked.folder},
          {"whole", checked.problems.empty()},
          {"removed", checked.removed},
          {"bytes", checked.bytes},
          {"problems", problems}};
}

}  // namespace planwright
