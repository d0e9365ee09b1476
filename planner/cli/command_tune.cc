// `plan tune`: the layouts of a recipe that are predicted to be the fastest (docs/tune.md).
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/layout_search.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/page_file.h"
#include "planner/cli/terminal.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/search/results/gpu_counts.h"
#include "planner/search/results/tunable_keys.h"
#include "planner/search/results/tuned_recipe.h"
#include "planner/search/results/tuned_text.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// What the command line asks for.
struct TuneCommandLine {
  std::string recipe;  // a file
  TuneRequest request;
  std::vector<int64_t> gpus;  // a list: most first
  GpuCounts::Form form = GpuCounts::Form::kOne;
  std::string write;               // empty: nothing is
  std::vector<std::string> files;  // that are written, in the order of `gpus`
  bool has_page = false;
  std::string page;  // "-": on stdout
  bool json = false;

  bool scaling() const { return form != GpuCounts::Form::kOne; }
};

struct TuneFlags : SearchFlags {
  GpuCounts gpus = {.counts = {0}};
  std::optional<std::string> write, page;
  bool replace = false;
};

absl::StatusOr<GpuCounts> ReadGpus(const std::string& name, const std::string& text) { return ReadGpuCounts(text); }

absl::StatusOr<TuneCommandLine> ReadCommandLine(const TuneFlags& flags) {
  TuneCommandLine line;
  ABSL_ASSIGN_OR_RETURN(const RecipeWords words, SplitWords(flags, {}));
  if (words.path.ends_with(".json"))
    return absl::InvalidArgumentError(words.path + " is a compiled plan: `plan tune` searches the layouts of a recipe");
  line.request = flags.request;
  line.recipe = words.path, line.request.overrides = words.overrides;
  line.json = flags.json;
  line.gpus = flags.gpus.counts, line.form = flags.gpus.form;
  line.has_page = flags.page.has_value();
  line.page = flags.page.value_or("");
  if (line.page == "-" && line.json)
    return absl::InvalidArgumentError("--html - and --json both print on stdout: name a file for the page");
  if (flags.replace && !flags.write) return absl::InvalidArgumentError("option `--replace` is for --write");
  if (!flags.write) return line;
  line.write = *flags.write;
  if (line.form == GpuCounts::Form::kRange) {
    return absl::InvalidArgumentError(
        "a range of GPUs has no one recipe: for --write name one number, or a list, of which the smaller numbers "
        "become "
        "launch.fallbacks");
  }
  std::sort(line.gpus.rbegin(), line.gpus.rend());
  for (const int64_t gpus : line.gpus)
    line.files.push_back(gpus == line.gpus.front() ? line.write : FallbackPath(line.write, gpus));
  for (const std::string& file : line.files) {
    ABSL_RETURN_IF_ERROR(CheckRecipeTarget(file, flags.replace, line.recipe));
  }
  return line;
}

// What the recipe must have, beyond being readable. All mistakes in one text.
absl::Status CheckAgainstRecipe(const Recipe& recipe, const TuneCommandLine& line) {
  std::string problems;
  const auto add = [&](const absl::Status& status) {
    if (!status.ok()) absl::StrAppend(&problems, problems.empty() ? "" : "\n", std::string(status.message()));
  };
  add(CheckFixedKeys(recipe, line.request.fixed));
  const int64_t node = *recipe.cluster.gpus_per_node;
  add(CheckWholeNodes(line.gpus, node));
  if (!line.write.empty() && line.scaling()) {
    const std::string list = "a list of GPUs with --write becomes launch.fallbacks, ";
    if (*recipe.launch.restarts == 0) {
      add(absl::InvalidArgumentError(
          list + "which only a run uses that is started again: add launch.restarts=N, how often that may be"));
    }
    if (!recipe.checkpoint.every_steps || **recipe.checkpoint.every_steps == 0)
      add(absl::InvalidArgumentError(list + "which needs checkpoints to go on from: add checkpoint.every_steps=N"));
    for (size_t i = 1; i < line.gpus.size(); ++i) {
      if ((line.gpus[i - 1] + node - 1) / node > (line.gpus[i] + node - 1) / node) continue;
      add(absl::InvalidArgumentError(absl::StrCat(list, "each for fewer nodes than the one before: ", line.gpus[i],
                                                  " and ", line.gpus[i - 1], " GPUs need as many")));
    }
  }
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems);
}

// Writes the recipes of all counts, smallest first: so the files that launch.fallbacks names are there.
absl::Status WriteRecipes(const TuneCommandLine& line, const std::vector<Found>& found) {
  for (const Found& one : found) {
    if (!one.chosen())
      return absl::NotFoundError(absl::StrCat("nothing is written: no layout for ", Counted(one.result.gpus, "GPU")));
  }
  for (size_t i = found.size(); i-- > 0;) {
    const TunedLayout& layout = *found[i].chosen();
    TunedRecipeText recipe = {
        .given = line.recipe,
        .overrides = line.request.overrides,
        .changes = layout.changes,
        .comment = FoundComment(
            absl::StrCat("The layout that `plan tune ", Printable(line.recipe), "` chose (docs/tune.md)."), found[i])};
    for (size_t j = 1; i == 0 && j < line.files.size(); ++j)
      recipe.fallbacks.push_back(std::filesystem::path(line.files[j]).filename().string());
    ABSL_ASSIGN_OR_RETURN(const std::string text, RecipeOfLayout(recipe, line.files[i]));
    ABSL_RETURN_IF_ERROR(WriteLayoutRecipe(line.files[i], text, layout));
    if (!line.json) std::cerr << "wrote " << Printable(line.files[i]) << "\n";
  }
  return absl::OkStatus();
}

void PrintFound(const TuneCommandLine& line, const std::vector<Found>& found, bool written) {
  if (line.json) {
    nlohmann::ordered_json json = FoundJson(found.front());
    if (line.scaling()) {
      json = {{"scaling", nlohmann::ordered_json::array()}};
      for (const Found& one : found) json["scaling"].push_back(FoundJson(one));
    }
    json["written"] = written ? line.files : std::vector<std::string>();
    std::cout << JsonText(json, 2) << "\n";
    return;
  }
  for (const Found& one : found) PrintGivenProblems(one, line.request.overrides);
  const size_t width = LineWidth(STDOUT_FILENO, kShowWidth);
  if (line.page != "-")
    std::cout << PrintableLines(line.scaling() ? ScalingText(found, width) : FoundText(found.front(), width));
}

// Which files are written is known before the search, which takes long: a mistake must not end it.
absl::Status CheckTargets(const TuneCommandLine& line, const Recipe& recipe) {
  std::vector<std::string> targets = line.files;
  if (!line.page.empty() && line.page != "-") {
    for (const std::string& file : line.files) {
      if (SameFile(file, line.page))
        return absl::InvalidArgumentError("--html and --write name one file: " + line.page);
    }
    targets.push_back(line.page);
  }
  for (const std::string& file : targets) {
    ABSL_RETURN_IF_ERROR(CheckNotRead(file, recipe));
  }
  return line.has_page ? CheckPageFile(line.page) : absl::OkStatus();
}

// A number of GPUs without a search.
Found NotSearched(const Recipe& recipe, int64_t gpus, const std::string& why) {
  const int64_t node = *recipe.cluster.gpus_per_node;
  Found found;
  found.searched = false;
  found.result.gpus = gpus, found.result.problem = why;
  found.result.cluster = {.nodes = static_cast<int>(std::max<int64_t>(1, gpus / node)),
                          .gpus_per_node = static_cast<int>(std::min(gpus, node)),
                          .gpu = *recipe.cluster.gpu};
  return found;
}

// Those of a recipe that is refused as it is, as `plan validate` prints them. False: there are none.
bool TellProblems(const TuneCommandLine& line, const TuneStart& start) {
  if (start.problems.empty()) return false;
  const LoadedPlan given = LoadPlan(line.recipe, line.request.overrides);
  std::cerr << "The recipe as it was given is refused:\n";
  given.PrintProblems();
  std::cerr << "Searched are layouts with which it is valid.\n";
  return true;
}

int TuneRecipe(const TuneFlags& flags) {
  absl::StatusOr<TuneCommandLine> line = ReadCommandLine(flags);
  if (!line.ok()) return UsageError(line.status());
  Diagnostics diagnostics;
  std::optional<YamlNode> tree = ReadRecipeTree(line->recipe, {}, diagnostics);
  const bool read = tree.has_value();
  if (read) line->request.recipe = *std::move(tree);
  const std::optional<Recipe> recipe =
      read ? ReadRecipe(line->request.recipe, line->request.overrides, diagnostics) : std::nullopt;
  const auto invalid = [&] {
    const LoadedPlan loaded = LoadPlan(line->recipe, line->request.overrides);  // finds all problems
    loaded.PrintProblems(line->json);
    return loaded.exit_status();
  };
  if (!recipe || !recipe->damaged.empty() || diagnostics.has_errors()) return invalid();
  if (absl::Status status = CheckAgainstRecipe(*recipe, *line); !status.ok()) return UsageError(status);
  if (absl::Status status = CheckTargets(*line, *recipe); !status.ok()) return UsageError(status);

  LayoutSearch search(line->json);
  std::vector<Found> found;
  for (const int64_t gpus : line->gpus) {
    if (search.signal() != 0) {
      found.push_back(NotSearched(*recipe, gpus, "It was not searched: the command was ended before."));
      found.back().result.interrupted = true;
      continue;
    }
    TuneRequest request = line->request;
    request.gpus = gpus;
    // Of a time that was asked for, an equal part for each.
    if (flags.has("--seconds")) request.seconds /= static_cast<double>(line->gpus.size());
    // On its own GPUs a recipe is meant to be valid. If it is not, what is wrong is told before the search.
    bool told = false;
    if (gpus == 0 && !line->json) request.begins = [&](const TuneStart& start) { told = TellProblems(*line, start); };
    Diagnostics problems;
    absl::StatusOr<Found> one = search.Run(request, problems);
    if (!one.ok() && gpus == 0) return problems.has_errors() ? invalid() : UsageError(one.status());
    if (one.ok()) {
      found.push_back(*std::move(one));
      found.back().told = told;
    } else {
      // What was found for other numbers stays.
      found.push_back(NotSearched(
          *recipe, gpus,
          problems.has_errors() ? "The recipe has errors on so many GPUs." : std::string(one.status().message())));
      found.back().problems = problems.sorted();
    }
  }
  const bool all = std::all_of(found.begin(), found.end(), [](const Found& one) { return one.searched; });
  const bool write = !line->write.empty() && all;
  const absl::Status written = write ? WriteRecipes(*line, found) : absl::OkStatus();
  PrintFound(*line, found, write && written.ok());
  if (!line->write.empty() && !write) UsageError("nothing is written: not every number of GPUs was searched");
  const std::string title = std::filesystem::path(line->recipe).stem().string();
  const absl::Status page = line->has_page ? WritePageFile(line->page, FoundPage(title, found)) : absl::OkStatus();
  for (const absl::Status* status : {&written, &page}) {
    if (!status->ok()) UsageError(*status);
  }
  if (!written.ok() || !page.ok()) return kExitUsage;
  if (search.signal() != 0) return 128 + search.signal();
  const bool good = std::all_of(found.begin(), found.end(), [](const Found& one) { return one.chosen() != nullptr; });
  return good ? kExitSuccess : kExitInvalid;
}

}  // namespace

CliCommand TuneCommand() {
  std::vector<Option> options = {
      Option("--gpus COUNTS", &TuneFlags::gpus, "search for so many GPUs: N, a list N,M,..., or a range MIN..MAX",
             ReadGpus)
          .With({"plan tune recipes/nemotron_moe_vlm_54l_33n.yaml --gpus 264", "searches for so many GPUs"}),
      Option("--write FILE", &TuneFlags::write, "write row 1 as a recipe that extends RECIPE by the keys that change")
          .Writes(),
      {"--replace", &TuneFlags::replace, "let --write replace a file that is there"},
      Option("--html FILE", &TuneFlags::page,
             "write a page for a browser, with the frontier of time and memory; `-` is stdout")
          .Writes(),
      JsonOption("print all figures for scripts")};
  const std::vector<Option> search = SearchOptions();
  options.insert(options.begin() + 1, search.begin(), search.end());
  CliCommand command = {"tune", "searches the layouts that do not change the loss curve, and proves the fastest",
                        Runs(TuneRecipe), "r+"};
  command.usage = "RECIPE [OVERRIDE ...] [--gpus N | N,M,... | MIN..MAX] [--fix KEYS] [--write FILE]";
  command.options = std::move(options);
  command.details =
      "What it may change, unless --fix names it: of each module placement, parallel (tp, cp, pp, ep, expert_tp,\n"
      "stage_layers, dispatch, overlap_dispatch) and recompute (none, full, elementwise, layer kinds);\n"
      "batch.micro_samples; buckets and overlap of gradients. A key of --fix stands for all that begin with it.\n"
      "A range stands for MIN, its doublings, and MAX. With --write, the largest number of a list becomes FILE, and\n"
      "the others FILE_N, which launch.fallbacks of FILE names: for nodes that are lost.\n"
      "Row 1 is the fastest, unless others are as fast within the error of the times and need less memory by more\n"
      "than 1 % of the device's: then the fastest of these, and so on.\n"
      "A recipe with an error that no layout ends is refused before the search.\n"
      "Ctrl-C ends a search with the best so far; of several numbers of GPUs those that were searched stay. A\n"
      "search that ends early says so, and how far from the optimum it may be. --html replaces no file but a page.\n"
      "Exit status: 1 if no layout is valid and fits, also for one of several numbers of GPUs; 130 after Ctrl-C.\n";
  command.examples = {
      {"plan tune recipes/nemotron_moe_vlm_20l_2g.yaml --write faster.yaml", "writes row 1 of the table as a recipe"}};
  command.see_also = {"init", "show", "measure"}, command.pages = {"docs/tune.md"};
  return command;
}

}  // namespace planwright
