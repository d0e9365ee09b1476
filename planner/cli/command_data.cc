// `plan data`: what is done with the data of a recipe before a run (docs/training/data.md).
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/data_options.h"
#include "planner/cli/data_stats.h"
#include "planner/cli/data_trace.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

constexpr int64_t kMostJobs = 1024;

int IndexData(const Plan& plan, const DataOptions& line) {
  const IndexOptions& options = line.index;
  DataIndexResult result;
  const bool has_index = RowOf(plan.data.kind).indexed;
  const std::string kind(DataKindName(plan.data.kind));
  if (!has_index && (options.anew || options.decode)) {
    return UsageError("data of kind " + kind + " has no index: `" + (options.anew ? "--anew" : "--decode") +
                      "` is for data of kind sources");
  }
  if (has_index) {
    absl::StatusOr<DataIndexResult> made = MakeDataIndex(plan.data, options);
    if (!made.ok()) return ReportNoIndex(made.status());
    result = *std::move(made);
  }
  const absl::StatusOr<std::unique_ptr<SampleSource>> source =
      has_index ? OpenSources(plan) : absl::UnavailableError("no index");
  if (source.ok()) result.counts = (*source)->Counts();
  if (line.json) {
    std::cout << JsonText(DataIndexJson(plan.data, result), 2) << "\n";
  } else if (has_index) {
    std::cout << DataIndexText(plan.data, result, LineWidth(STDOUT_FILENO, kShowWidth));
  } else {
    std::cout << "data of kind " << kind << " has no index\n";
  }
  std::cout.flush();
  if (!has_index) return kExitSuccess;
  const int status = CheckDocuments(plan, source);
  return status == kExitSuccess ? MakeIndexOfSets(plan, options) : status;
}

// What `plan data` does, each with the options that it takes beside --json.
struct DataAction {
  const char* name;
  std::vector<std::string> options;
  int (*run)(const Plan&, const DataOptions&);
};

const DataAction kDataActions[] = {
    {"index", {"--jobs", "--anew", "--decode"}, IndexData},
    {"stats", {"--samples"}, StatsOfData},
    {"trace", {"--sample", "--step", "--lane", "--images"}, TraceData},
};

// The action that is named, or a message for the user.
absl::StatusOr<const DataAction*> FindAction(const Arguments& arguments) {
  if (arguments.words.empty())
    return absl::InvalidArgumentError("say what to do: `plan data index`, `stats` or `trace`, and a recipe");
  const std::string& name = arguments.words[0];
  std::vector<std::string> names;
  for (const DataAction& action : kDataActions) {
    names.emplace_back(action.name);
    if (name != action.name) continue;
    for (const auto& [option, value] : arguments.given) {
      if (option == "--json" || std::find(action.options.begin(), action.options.end(), option) != action.options.end())
        continue;
      return absl::InvalidArgumentError("`plan data " + name + "` has no option `" + option + "`");
    }
    return &action;
  }
  return absl::InvalidArgumentError("`plan data` cannot `" + Printable(name) + "`; " +
                                    NearNameHelp(name, names, "it can `index`, `stats` and `trace`"));
}

int Data(const DataOptions& options) {
  const absl::StatusOr<const DataAction*> action = FindAction(options);
  if (!action.ok()) return UsageError(action.status());
  Arguments rest = options;
  rest.words.erase(rest.words.begin());
  const absl::StatusOr<RecipeWords> words = SplitWords(rest, {});
  if (!words.ok()) return UsageError(words.status());
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(options.json);
  if (!loaded.plan) return loaded.exit_status();
  return (*action)->run(*loaded.plan, options);
}

}  // namespace

CliCommand DataCommand() {
  using O = DataOptions;
  CliCommand command = {"data", "makes the index of the data of a recipe, and shows what its samples contain",
                        Runs(Data), "ar+"};
  command.usage = "index|stats|trace RECIPE [OVERRIDE ...] [OPTION ...] [--json]";
  command.options = {
      {"--jobs N", At(&O::index, &IndexOptions::jobs),
       "index: shards that are read at a time; default: one for each core", WholeNumbers{1, kMostJobs}},
      {"--anew", At(&O::index, &IndexOptions::anew),
       "index: read all shards, also those whose size and time are as they were"},
      {"--decode", At(&O::index, &IndexOptions::decode),
       "index: read all shards and decode every image: what a run could not read is named now"},
      {"--samples N", &O::samples, "stats: read the texts of the first N samples; default 1,000",
       WholeNumbers{1, kMostSamples}},
      Option("--sample N", &O::sample, "trace: the sample with this number, from 0", WholeNumbers{0, kMostSamples})
          .With({"plan data trace recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml --sample 0", "what a sample contains"}),
      {"--step N", &O::step, "trace: the samples of a step, from 1, on one lane of the language model",
       WholeNumbers{1, kMostSamples}},
      {"--lane L", &O::lane, "trace: with --step, the lane, from 0", WholeNumbers{0, kMostRanks}},
      Option("--images DIR", &O::images, "trace: write what encoders see of the images into this folder, as PNG files",
             NameOf{"a folder"})
          .Writes(),
      JsonOption("print the same as JSON"),
  };
  command.details =
      "  index  reads all shards once, and keeps where their documents are and how long; a second time only those\n"
      "         that have changed. `plan launch` does the same before it starts ranks\n"
      "  stats  how full sequences are, how long documents and how large images, what of each source the run\n"
      "         trains on, and how many epochs that is\n"
      "  trace  what a sample contains: source, shard and document, text, ids, labels, what is learnt, images\n\n"
      "stats and trace of kind sources need the index. Exit status: 1 if shards are damaged or do not fit the\n"
      "recipe; all mistakes are listed, with shard and document.\n";
  command.examples = {{"plan data stats recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml", "how full sequences are"}};
  command.see_also = {"validate", "launch"}, command.pages = {"docs/training/data.md"};
  return command;
}

}  // namespace planwright
