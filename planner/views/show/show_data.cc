#include <absl/strings/str_format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/views/show/lane_work.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNames = 4;  // of shards of one source, in the text
constexpr int kMostLanes = 4;     // of a module, in the text

double ShareOf(const DataPlan& data, const SourcePlan& source) {
  const int64_t all = std::accumulate(data.sources.begin(), data.sources.end(), int64_t{0},
                                      [](int64_t sum, const SourcePlan& each) { return sum + each.weight; });
  return static_cast<double>(source.weight) / static_cast<double>(all);
}

std::string NamesText(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (text.empty() ? "" : " ") + Printable(names[i]);
  if (names.size() > kMostNames)
    text += " and " + WithCommas(static_cast<int64_t>(names.size() - kMostNames)) + " more";
  return text;
}

// Lines "name  text", with the texts below each other.
class Lines {
 public:
  explicit Lines(size_t width) : width_(width) {}
  void Add(const std::string& name, const std::string& text) {
    constexpr size_t kNameWidth = 11;
    text_ += Wrapped(PadRight(name, kNameWidth) + text, width_, kNameWidth) + "\n";
  }
  void AddGap() { text_ += "\n"; }
  void AddTable(const Table& table) { text_ += table.Text("", width_); }
  void AddText(const std::string& line) { text_ += Wrapped(line, width_, 2) + "\n"; }
  const std::string& text() const { return text_; }

 private:
  const size_t width_;
  std::string text_;
};

std::string IdsText(const DataPlan& data) {
  std::string text;
  auto add = [&](const std::string& name, int64_t id) {
    if (id >= 0) text += (text.empty() ? "" : ", ") + name + " " + WithCommas(id);
  };
  if (data.encoders.empty()) add("image", data.image_token);
  for (const EncoderData& encoder : data.encoders) add("image of " + encoder.module, encoder.token);
  add("pad", data.pad_token);
  add("end", data.end_token);
  return text + (text.empty() ? "" : ", ") + "all below " + WithCommas(data.vocabulary);
}

std::string TextOf(const DataPlan& data) {
  std::string text = data.tokenizer;
  if (!data.tokenizer_digest.empty()) text += ", tokenizer " + data.tokenizer_digest.substr(0, 12);
  if (!data.template_digest.empty()) text += ", template " + data.template_digest.substr(0, 12);
  return text;
}

void AddMock(const DataPlan& data, Lines& lines) {
  std::string grids;
  for (const std::vector<int64_t>& grid : data.image_grids)
    grids += (grids.empty() ? "" : ", ") + WithCommas(grid[0]) + " x " + WithCommas(grid[1]);
  if (data.max_images > 0) {
    lines.Add("images", WithCommas(data.min_images) + " to " + WithCommas(data.max_images) + " a sample, of " + grids +
                            " patches");
  }
  lines.Add("classes", WithCommas(data.classes) + ", each with a text of " + Counted(data.text_tokens, "token"));
}

void AddDocuments(const DataPlan& data, Lines& lines) {
  Table table({"source", "kind", "weight", "share", "files"});
  for (const SourcePlan& source : data.sources) {
    const SourceKindRow& kind = RowOf(source.kind);
    table.Add({source.name, std::string(kind.word), WithCommas(source.weight),
               absl::StrFormat("%.2f %%", 100 * ShareOf(data, source)),
               kind.shards ? NamesText(source.shards) : Printable(source.path) + ".bin"});
  }
  lines.AddTable(table);
  lines.Add("shuffle", data.shuffle == "all"    ? "all documents"
                       : data.shuffle == "none" ? "none"
                                                : data.shuffle + " documents together");
  lines.Add("packing", data.packing == "first_fit" ? "first_fit, in windows of " + Counted(data.window, "document")
                                                   : "none, one document a sample");
  lines.Add("long", data.long_documents);
  lines.Add("damaged", data.damaged == "skip"
                           ? "skip, " + Counted(data.most_damaged, "document") + " of all sources at most"
                           : data.damaged);
  lines.Add("index", Printable(data.index));
  if (!data.encoders.empty()) {
    // Squares are as large as the encoder has them, whatever the limits say.
    const std::string limits =
        data.grid == "square" ? ""
                              : WithCommas(data.min_patches) + " to " + WithCommas(data.max_patches) + " patches, ";
    lines.Add("images", limits + data.resize + ", grid " + data.grid +
                            (data.orientation == "exif" ? ", turned as their EXIF says" : ""));
  }
}

Json LanesJson(const Plan& plan) {
  Json lanes = Json::array();
  for (const Module& module : plan.modules) {
    Json samples = Json::array();
    for (int lane = 0; lane < module.grid.dp; ++lane) {
      const LaneSamples share = SamplesOfLane(plan.budget.block_samples, module.grid.dp, lane);
      samples.push_back({share.first, share.end});
    }
    lanes.push_back({{"module", module.name}, {"lanes", module.grid.dp}, {"microbatch_samples", std::move(samples)}});
  }
  return lanes;
}

// "[0, 2) [2, 4) ...": the samples of each lane in a microbatch.
std::string LaneText(int64_t block, int lanes) {
  std::string text;
  for (int lane = 0; lane < std::min(lanes, kMostLanes); ++lane) {
    const LaneSamples share = SamplesOfLane(block, lanes, lane);
    text += (text.empty() ? "[" : " [") + WithCommas(share.first) + ", " + WithCommas(share.end) + ")";
  }
  return lanes > kMostLanes ? text + " ..." : text;
}

void AddLanes(const Plan& plan, Lines& lines) {
  const Budget& budget = plan.budget;
  lines.Add("step", Counted(budget.global_samples, "sample") + ", " + WithCommas(budget.microbatches) +
                        (budget.microbatches == 1 ? " microbatch of " : " microbatches of ") +
                        WithCommas(budget.block_samples));
  Table table({"module", "lanes", "samples of each lane in a microbatch"});
  for (const Module& module : plan.modules)
    table.Add({module.name, WithCommas(module.grid.dp), LaneText(budget.block_samples, module.grid.dp)});
  lines.AddTable(table);
}

void AddLaneWork(const Plan& plan, Lines& lines) {
  const absl::StatusOr<LaneWork> work = MeasureLaneWork(plan);
  if (!work.ok()) {
    lines.AddText("how full lanes are is not known: " + PrintableLines(std::string(work.status().message())));
    return;
  }
  const std::string steps = work->steps == 1 ? "the first step" : "the first " + Counted(work->steps, "step");
  if (work->patches == 0) {
    lines.AddText("the samples of " + steps + " have no images");
    return;
  }
  lines.AddText("fullest encoder lane over the mean lane, in patches of " + steps + ":");
  Table table({"module", "balance", "step", "microbatch"});
  for (const LaneWork::OfModule& module : work->modules) {
    for (const auto& [balance, fullness] : {std::pair("none", module.in_order), std::pair("images", module.balanced)}) {
      table.Add({module.module, std::string(balance) + (plan.data.balance == balance ? " (this run)" : ""),
                 absl::StrFormat("%.3f", fullness.step), absl::StrFormat("%.3f", fullness.microbatch)});
    }
  }
  lines.AddTable(table);
}

Json LaneWorkJson(const Plan& plan) {
  const absl::StatusOr<LaneWork> work = MeasureLaneWork(plan);
  if (!work.ok()) return {{"unknown", PrintableLines(std::string(work.status().message()))}};
  auto json = [](const Fullness& fullness) -> Json {
    return {{"step", fullness.step}, {"microbatch", fullness.microbatch}};
  };
  Json modules = Json::array();
  for (const LaneWork::OfModule& module : work->modules) {
    modules.push_back({{"module", module.module}, {"none", json(module.in_order)}, {"images", json(module.balanced)}});
  }
  return {{"steps", work->steps}, {"patches", work->patches}, {"fullest_over_mean", std::move(modules)}};
}

Json IdsJson(const DataPlan& data) {
  auto id = [](int64_t number) { return number < 0 ? Json() : Json(number); };
  Json images = Json::object();
  for (const EncoderData& encoder : data.encoders) images[encoder.module] = encoder.token;
  return {{"image", id(data.image_token)},
          {"image_of", std::move(images)},
          {"pad", id(data.pad_token)},
          {"end", id(data.end_token)},
          {"vocabulary", data.vocabulary}};
}

// What a set is made of, in a few words.
std::string SetText(const DataPlan& data) {
  switch (data.kind) {
    case DataKind::kMock: return "seed " + std::to_string(data.seed);
    case DataKind::kRecorded: return Printable(data.path);
    case DataKind::kSources: break;
  }
  std::string names;
  for (const SourcePlan& source : data.sources) names += (names.empty() ? "" : ", ") + source.name;
  return names;
}

void AddEvaluation(const Plan& plan, Lines& lines) {
  lines.Add("evaluation", "every " + Counted(plan.evaluation.every_samples, "sample"));
  Table table({"set", "samples", "rounds", "of"});
  for (const EvaluationSet& set : plan.evaluation.sets)
    table.Add({set.name, set.samples > 0 ? WithCommas(set.samples) : "all",
               set.samples > 0 ? WithCommas(set.rounds) : "", SetText(set.data)});
  lines.AddTable(table);
}

Json SourcesJson(const DataPlan& data) {
  Json sources = Json::array();
  for (const SourcePlan& source : data.sources) {
    Json json = {{"name", source.name},
                 {"kind", SourceKindName(source.kind)},
                 {"weight", source.weight},
                 {"share", ShareOf(data, source)}};
    if (RowOf(source.kind).shards) {
      json["shards"] = source.shards;
      json["ignore"] = source.ignore;
    } else {
      json["path"] = source.path;
    }
    sources.push_back(std::move(json));
  }
  return sources;
}

Json EvaluationJson(const EvaluationPlan& evaluation) {
  Json sets = Json::array();
  for (const EvaluationSet& set : evaluation.sets) {
    // Null: all of them, which no index has counted yet.
    const auto counted = [&](int64_t number) { return set.samples > 0 ? Json(number) : Json(); };
    Json json = {{"name", set.name}, {"samples", counted(set.samples)}, {"rounds", counted(set.rounds)}};
    switch (set.data.kind) {
      case DataKind::kMock: json["seed"] = set.data.seed; break;
      case DataKind::kRecorded: json["path"] = set.data.path; break;
      case DataKind::kSources: json["sources"] = SourcesJson(set.data), json["index"] = set.data.index; break;
    }
    sets.push_back(std::move(json));
  }
  return {{"every_samples", evaluation.every_samples}, {"sets", std::move(sets)}};
}

}  // namespace

std::string ShowData(const Plan& plan, size_t width) {
  const DataPlan& data = plan.data;
  Lines lines(width);
  lines.Add("data", std::string(DataKindName(data.kind)) + ", seed " + std::to_string(data.seed));
  if (RowOf(data.kind).tokenized) lines.Add("text", TextOf(data));
  lines.Add("ids", IdsText(data));
  switch (data.kind) {
    case DataKind::kMock: AddMock(data, lines); break;
    case DataKind::kRecorded: lines.Add("batch", Printable(data.path)); break;
    case DataKind::kSources: AddDocuments(data, lines); break;
  }
  lines.Add("documents", data.packed_documents ? "each sees itself alone (packed_documents)"
                                               : "each sees those before it in its sample");
  lines.Add("balance", data.balance);
  lines.AddGap();
  AddLanes(plan, lines);
  if (!plan.evaluation.empty()) {
    lines.AddGap();
    AddEvaluation(plan, lines);
  }
  if (!data.encoders.empty()) {
    lines.AddGap();
    AddLaneWork(plan, lines);
  }
  return lines.text();
}

Json ShowDataJson(const Plan& plan) {
  const DataPlan& data = plan.data;
  Json json = {{"kind", DataKindName(data.kind)}, {"seed", data.seed}, {"ids", IdsJson(data)}};
  switch (data.kind) {
    case DataKind::kMock:
      json["image_grids"] = data.image_grids;
      json["images"] = {data.min_images, data.max_images};
      json["classes"] = data.classes;
      json["text_tokens"] = data.text_tokens;
      break;
    case DataKind::kRecorded: json["path"] = data.path; break;
    case DataKind::kSources:
      json["tokenizer"] = data.tokenizer;
      json["window"] = data.window;
      if (data.grid != "square") json["patches"] = {data.min_patches, data.max_patches};
      json["resize"] = data.resize;
      json["grid"] = data.grid;
      json["orientation"] = data.orientation;
      json["sources"] = SourcesJson(data);
      json["tokenizer_digest"] = data.tokenizer_digest;
      json["template_digest"] = data.template_digest;
      json["shuffle"] = data.shuffle;
      json["packing"] = data.packing;
      json["long"] = data.long_documents;
      json["damaged"] = data.damaged;
      json["most_damaged"] = data.most_damaged;
      json["index"] = data.index;
      break;
  }
  json["packed_documents"] = data.packed_documents;
  json["balance"] = data.balance;
  json["global_samples"] = plan.budget.global_samples;
  json["microbatches"] = plan.budget.microbatches;
  json["lanes"] = LanesJson(plan);
  if (!plan.evaluation.empty()) json["evaluation"] = EvaluationJson(plan.evaluation);
  json["lane_work"] = data.encoders.empty() ? Json() : LaneWorkJson(plan);
  return json;
}

}  // namespace planwright
