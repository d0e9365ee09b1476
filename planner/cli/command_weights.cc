// `plan weights`: whether the weights that a recipe begins with fit its model, and who reads what (docs/weights.md).

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/progress_bar.h"
#include "planner/cli/terminal.h"
#include "planner/plan/ranks_text.h"
#include "planner/plan/remote_names.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/initial_pieces.h"
#include "planner/state/weights/read_values.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

struct CheckedWeights {
  WeightsFit fit;
  std::vector<RankReads> reads;  // empty if the weights do not fit
  bool values_read = false;
  WeightValues values;

  bool fits() const { return fit.fits() && values.problems.empty(); }
};

using Json = nlohmann::ordered_json;

bool IsAbsent(const SourceFit& source) {
  std::error_code error;
  return source.opened == nullptr && !std::filesystem::exists(source.path, error);
}

// "fits", or how many tensors do not.
std::string StateOf(const WeightsFit& fit, const PartFit& part) {
  if (part.source < 0) return "drawn";
  const SourceFit& source = fit.sources[static_cast<size_t>(part.source)];
  if (source.opened == nullptr) return IsAbsent(source) ? "absent" : "not read";
  if (part.found == part.tensors) return "fits";
  std::vector<std::string> counts = {absl::StrCat(WithCommas(part.found), " fit")};
  if (part.missing > 0) counts.push_back(absl::StrCat(WithCommas(part.missing), " missing"));
  if (part.unfit > 0) counts.push_back(absl::StrCat(WithCommas(part.unfit), " of another shape or type"));
  return absl::StrJoin(counts, ", ");
}

std::string PartsTable(const WeightsFit& fit, size_t width) {
  Table table({"part", "tensors", "parameters", "bytes", "state", "from"});
  for (const PartFit& part : fit.parts) {
    std::string from = Printable(part.from);
    if (!part.form.empty()) from += absl::StrCat(" (its names lack ", Printable(part.form), ")");
    if (!part.stored_form.empty()) from += absl::StrCat(" (", Printable(part.stored_form), ")");
    table.Add({Printable(part.part), WithCommas(part.tensors), WithCommas(part.elements),
               part.source < 0 ? "" : BytesText(part.bytes), StateOf(fit, part), from});
  }
  return table.Text("", width);
}

void AddSource(const SourceFit& source, std::vector<std::string>& lines) {
  if (source.opened == nullptr) return;
  const WeightFiles* files = source.opened->files();
  if (files == nullptr) {
    lines.push_back(absl::StrCat(Printable(source.path), ": a checkpoint, ",
                                 WithCommas(static_cast<int64_t>(source.opened->checkpoint()->tensors().size())),
                                 " tensors"));
  } else {
    int64_t bytes = 0;
    for (const WeightFiles::File& file : files->files()) bytes += file.bytes;
    lines.push_back(absl::StrCat(Printable(source.path), ": ",
                                 Counted(static_cast<int64_t>(files->files().size()), "file"), ", ", BytesText(bytes),
                                 ", ", Counted(static_cast<int64_t>(files->all().size()), "tensor")));
  }
  const auto count = [](const std::vector<std::string>& names) {
    return Counted(static_cast<int64_t>(names.size()), "tensor");
  };
  for (const PassedThrough& passed : source.passed) {
    const bool anywhere = passed.extra->anywhere;
    lines.push_back(absl::StrCat("  passed through: ", anywhere ? "*" : "", passed.extra->pattern, ", ",
                                 count(passed.names), ": ", passed.extra->what, ", for ", passed.extra->who));
  }
  if (!source.elsewhere.empty())
    lines.push_back(absl::StrCat("  not taken: ", count(source.elsewhere),
                                 " of parts that have another source, such as ", Printable(source.elsewhere[0])));
  if (!source.ignored.empty())
    lines.push_back(absl::StrCat("  ignored: ", count(source.ignored), ", such as ", Printable(source.ignored[0])));
}

// A source as the recipe names it, which is shorter than its path.
std::string WrittenName(const WeightsFit& fit, size_t source) {
  const auto part = std::find_if(fit.parts.begin(), fit.parts.end(),
                                 [&](const PartFit& one) { return one.source == static_cast<int>(source); });
  return Printable(part == fit.parts.end() ? fit.sources[source].path : part->from);
}

std::string ReadsTable(const CheckedWeights& weights, size_t width) {
  std::vector<std::string> header = {"ranks", "role"};
  for (size_t i = 0; i < weights.fit.sources.size(); ++i) header.push_back("from " + WrittenName(weights.fit, i));
  header.emplace_back("drawn");
  if (weights.fit.sources.size() > 1) header.emplace_back("reads in all");
  Table table(header);
  for (const RankReads& row : weights.reads) {
    std::vector<std::string> cells = {RanksText(row.ranks), absl::StrJoin(row.roles, ", ")};
    int64_t all = 0;
    for (int64_t bytes : row.bytes) {
      cells.push_back(BytesText(bytes));
      all += bytes;
    }
    cells.push_back(WithCommas(row.drawn));
    if (weights.fit.sources.size() > 1) cells.push_back(BytesText(all));
    table.Add(cells);
  }
  return "what each rank reads, and how many numbers it draws:\n" + table.Text("", width);
}

void AddLines(const char* begin, const std::vector<std::string>& lines, std::string& text) {
  const size_t shown = std::min(lines.size(), kMostLines);
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, begin, PrintableLines(lines[i]), "\n");
  if (shown < lines.size())
    absl::StrAppend(&text, begin, "and ", WithCommas(static_cast<int64_t>(lines.size() - shown)),
                    " more (--json has all)\n");
}

Json SourceJson(const SourceFit& source) {
  Json json = {{"path", source.path}, {"opened", source.opened != nullptr}, {"absent", IsAbsent(source)}};
  if (source.opened == nullptr) return json;
  const WeightFiles* files = source.opened->files();
  json["kind"] = files != nullptr ? "files" : "checkpoint";
  if (files != nullptr) {
    Json list = Json::array();
    for (const WeightFiles::File& file : files->files()) list.push_back({{"path", file.path}, {"bytes", file.bytes}});
    json["files"] = list;
    json["tensors"] = files->all().size();
  } else {
    json["tensors"] = source.opened->checkpoint()->tensors().size();
  }
  Json passed = Json::array();
  for (const PassedThrough& one : source.passed) {
    passed.push_back({{"what", one.extra->what}, {"needed_by", one.extra->who}, {"tensors", one.names}});
  }
  json["passed_through"] = passed;
  json["left_over"] = source.left_over;
  json["ignored"] = source.ignored;
  json["elsewhere"] = source.elsewhere;
  return json;
}

// For sources that are absent and may be names of the Hugging Face hub.
std::vector<std::string> HowToFetchAll(const WeightsFit& fit) {
  std::set<std::string> names;
  for (const PartFit& part : fit.parts) {
    if (part.source >= 0 && IsAbsent(fit.sources[static_cast<size_t>(part.source)]) && MayBeHubName(part.from))
      names.insert(part.from);
  }
  std::vector<std::string> lines;
  for (const std::string& name : names)
    lines.push_back(absl::StrCat("if it is a name of the Hugging Face hub, ", HowToFetch("from", name)));
  return lines;
}

std::string WeightsText(const CheckedWeights& weights, size_t width) {
  const WeightsFit& fit = weights.fit;
  std::string text = PartsTable(fit, width);
  std::vector<std::string> lines;
  for (const SourceFit& source : fit.sources) AddSource(source, lines);
  if (!lines.empty()) absl::StrAppend(&text, "\n", absl::StrJoin(lines, "\n"), "\n");
  if (!weights.reads.empty()) absl::StrAppend(&text, "\n", ReadsTable(weights, width));
  std::vector<std::string> warnings = fit.warnings, problems = fit.problems;
  warnings.insert(warnings.end(), weights.values.warnings.begin(), weights.values.warnings.end());
  problems.insert(problems.end(), weights.values.problems.begin(), weights.values.problems.end());
  AddLines("warning: ", warnings, text);
  AddLines("error: ", problems, text);
  AddLines("help: ", HowToFetchAll(fit), text);
  const bool absent = std::any_of(fit.sources.begin(), fit.sources.end(), IsAbsent);
  const std::string read =
      weights.values_read ? absl::StrCat("; ", BytesText(weights.values.bytes), " of values were read") : "";
  absl::StrAppend(&text,
                  problems.empty() ? "the weights fit"
                  : absent         ? "the weights are not here"
                                   : "the weights do not fit",
                  read, "\n");
  return text;
}

Json WeightsJson(const CheckedWeights& weights) {
  const WeightsFit& fit = weights.fit;
  Json parts = Json::array(), sources = Json::array(), reads = Json::array();
  for (const PartFit& part : fit.parts) {
    parts.push_back({{"part", part.part},
                     {"from", part.from},
                     {"source", part.source},
                     {"lacks_prefix", part.form},
                     {"tensors", part.tensors},
                     {"parameters", part.elements},
                     {"found", part.found},
                     {"missing", part.missing},
                     {"unfit", part.unfit},
                     {"bytes", part.bytes},
                     {"drawn_rows", part.drawn_rows}});
    if (!part.stored_form.empty()) parts.back()["form"] = part.stored_form;
  }
  for (const SourceFit& source : fit.sources) sources.push_back(SourceJson(source));
  for (const RankReads& row : weights.reads)
    reads.push_back({{"ranks", row.ranks}, {"roles", row.roles}, {"bytes", row.bytes}, {"drawn", row.drawn}});
  std::vector<std::string> warnings = fit.warnings, problems = fit.problems;
  warnings.insert(warnings.end(), weights.values.warnings.begin(), weights.values.warnings.end());
  problems.insert(problems.end(), weights.values.problems.begin(), weights.values.problems.end());
  return {{"fits", problems.empty()},
          {"parts", parts},
          {"sources", sources},
          {"reads", reads},
          {"warnings", warnings},
          {"problems", problems},
          {"values_read", weights.values_read}};
}

// Reads all values, and says how far it is.
WeightValues ReadValues(const Plan& plan, WeightsFit& fit) {
  ProgressBar bar;
  const auto progress = [&](int64_t done, int64_t all) {
    if (all > 0) bar.Show(static_cast<double>(done) / static_cast<double>(all), "of " + BytesText(all));
  };
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  return ReadAllValues(plan, fit, static_cast<int>(threads), progress);
}

struct WeightsOptions : CommandOptions {
  bool read = false;
};

int Weights(const WeightsOptions& options) {
  const absl::StatusOr<RecipeWords> words = SplitWords(options, {});
  if (!words.ok()) return UsageError(words.status());
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(options.json);
  if (!loaded.plan) return loaded.exit_status();
  CheckedWeights weights;
  weights.fit = FitWeights(*loaded.plan);
  if (weights.fit.fits()) {
    const absl::Status stand = CheckBaseOfAdapters(*loaded.plan, weights.fit);
    if (!stand.ok()) weights.fit.problems.emplace_back(stand.message());
  }
  if (weights.fit.fits()) weights.reads = ReadTable(*loaded.plan, weights.fit);
  if (options.read && weights.fit.fits()) {
    weights.values = ReadValues(*loaded.plan, weights.fit);
    weights.values_read = true;
  }
  if (options.json) {
    std::cout << JsonText(WeightsJson(weights), 2) << "\n";
  } else {
    std::cout << WeightsText(weights, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return weights.fits() ? kExitSuccess : kExitInvalid;
}

}  // namespace

CliCommand WeightsCommand() {
  CliCommand command = {"weights", "checks the weights that a run begins with, and says which rank reads what",
                        Runs(Weights), "r+"};
  command.usage = "RECIPE [OVERRIDE ...] [--read] [--json]";
  command.options = {
      {"--read", &WeightsOptions::read, "read all values too: infinity, NaN, rows of embeddings that are zero"},
      JsonOption("print the same as JSON"),
  };
  command.details =
      "Without --read only the headers of files are read, and some numbers of weights under the adapters of a "
      "checkpoint. Exit status: 1 if the weights do not fit.\n";
  command.examples = {{"plan weights recipes/icons_stage2.yaml", "checks the weights that the run begins with"}};
  command.see_also = {"import", "validate"}, command.pages = {"docs/weights.md"};
  return command;
}

}  // namespace planwright
