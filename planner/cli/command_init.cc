// `plan init`: a first recipe of a model, with the fastest layout that a search finds (docs/tune.md#a-first-recipe).
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/layout_search.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/exchange/recipe_text.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/yaml/yaml_text.h"
#include "planner/search/results/gpu_counts.h"
#include "planner/search/results/started_recipe.h"
#include "planner/search/results/tunable_keys.h"
#include "planner/search/results/tuned_recipe.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostGpus = 1'000'000;

std::string ModelNames() {
  std::string names;
  for (const BuiltInModel& model : BuiltInModels()) absl::StrAppend(&names, names.empty() ? "" : "|", model.name);
  return names;
}

// The first recipe as messages name it. It is a text, on which overrides are laid.
constexpr char kFirstRecipe[] = "<first recipe>";

bool IsOverride(const Location& where) { return where.file && *where.file == kCommandLine; }

// The cluster that has so many GPUs. What overrides say of it stays, and the rest follows: further overrides.
// InvalidArgument: they name another number of GPUs.
absl::Status FitCluster(const ClusterRecipe& cluster, int64_t gpus, std::vector<std::string>& overrides) {
  const int64_t nodes = *cluster.nodes, node = *cluster.gpus_per_node;
  const bool nodes_given = IsOverride(cluster.nodes.where), node_given = IsOverride(cluster.gpus_per_node.where);
  if (gpus % node == 0 && gpus / node == nodes) return absl::OkStatus();
  if (!nodes_given && !node_given) return CheckWholeNodes({gpus}, kGpusOfANode);
  if (!nodes_given && gpus % node == 0) {
    overrides.push_back(absl::StrCat("cluster.nodes=", gpus / node));
    return absl::OkStatus();
  }
  if (!node_given && gpus % nodes == 0) {
    overrides.push_back(absl::StrCat("cluster.gpus_per_node=", gpus / nodes));
    return absl::OkStatus();
  }
  std::string given = nodes_given ? absl::StrCat("cluster.nodes=", nodes) : "";
  if (node_given) absl::StrAppend(&given, given.empty() ? "" : " and ", "cluster.gpus_per_node=", node);
  return absl::InvalidArgumentError(absl::StrCat("option `--gpus` is ", gpus, ", and no cluster of ", given,
                                                 " has so many GPUs: change one of them"));
}

using Json = nlohmann::ordered_json;

// `file`: null for stdout. `text`: null if there is none. `weights`: what is said of those of an imported model, or
// null.
Json JsonOf(const Found& found, const Json& file, const Json& text, const Json& weights) {
  Json json = FoundJson(found);
  json["file"] = file, json["text"] = text, json["weights"] = weights;
  return json;
}

// The weights of the models of a file that `plan import` wrote.
struct PublishedWeights {
  std::string from;  // as seen from the current folder; empty: the recipe does not begin with them
  std::string said;  // a line for people; empty: nothing is to be said
};

// As an override. `drawn` alone is no folder there.
std::string InitializeFrom(const std::string& folder) {
  const std::string path = fs::path(folder).is_absolute() ? folder : "./" + folder;
  return "initialize.from=" + FlowText(ScalarNode(path, {}, /*quoted=*/true));
}

std::string BeginsDrawn(const std::string& folder, const std::string& why) {
  return absl::StrCat("it begins with drawn weights, and not with those of ", Printable(folder), ": ", why);
}

// Where the recipe shall begin with them. What the file or an override says of it stays.
PublishedWeights FindWeights(const StartedRecipe& started, const std::vector<std::string>& overrides) {
  const bool given = started.initialized || std::any_of(overrides.begin(), overrides.end(), [](const std::string& o) {
                       return o.starts_with("initialize");
                     });
  if (started.extends.empty() || given) return {};
  const absl::StatusOr<std::string> text = ReadWholeFile(started.extends, kLargestRecipe);
  const std::string named = text.ok() ? WeightsInComment(*text) : "";
  if (named.empty()) return {};
  // Behind a link `..` is another folder than without it.
  std::error_code error;
  const fs::path found = fs::path(started.extends).parent_path() / named, plain = found.lexically_normal();
  const std::string folder = (fs::equivalent(found, plain, error) ? plain : found).string();
  if (!fs::exists(folder, error)) return {"", BeginsDrawn(folder, "they are not on this machine")};
  return {folder, absl::StrCat("it begins with the weights of ", Printable(folder), " (initialize.from)")};
}

// Why the weights of `from` are not those of the recipe's models, as where they lack a norm; empty: they fit.
std::string WhyWeightsDoNotFit(const YamlNode& recipe, std::vector<std::string> changes, const std::string& from) {
  std::vector<std::string> absent;
  // As an override: problems of it are those of the weights, and name them from the current folder.
  changes.push_back(InitializeFrom(from));
  const LoadedPlan compared = LoadComparedPlan(recipe, changes, absent);
  for (const Diagnostic& problem : compared.problems.as_found()) {
    if (problem.kind == DiagnosticKind::kFilesDoNotFit && IsOverride(problem.where)) return problem.message;
  }
  return "";
}

// Tells of the recipe, or prints it. `output`: empty for stdout. `weights`: a line of what it begins with, or empty.
void Tell(const Found& found, const std::string& text, const std::string& output, const std::string& weights,
          bool as_json) {
  const auto or_null = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  if (as_json) {
    std::cout << JsonText(JsonOf(found, or_null(output), text, or_null(weights)), 2) << "\n";
  } else if (output.empty()) {
    std::cout << text;
  } else {
    std::cerr << "wrote " << Printable(output) << ": a step is predicted to take "
              << StepText(found, found.chosen()->seconds) << " on " << ClusterText(found) << "\n";
  }
  if (!as_json && !weights.empty()) std::cerr << weights << "\n";
}

struct InitFlags : SearchFlags {
  std::optional<std::string> model, output;
  std::optional<int64_t> gpus;
  bool replace = false;
};

int InitRecipe(const InitFlags& flags) {
  const bool as_json = flags.json;
  for (const char* needed : {"--model", "--gpus"}) {
    if (!flags.has(needed))
      return UsageError(absl::StrCat("`plan init` needs --model NAME and --gpus N; ", needed, " is not given"));
  }
  TuneRequest request = flags.request;
  for (const std::string& word : flags.words) {
    if (word.find('=') == std::string::npos)
      return UsageError("`" + word + "` is not an override; an override has the form a.b=c");
    request.overrides.push_back(word);
  }
  if (flags.replace && !flags.output) return UsageError("option `--replace` is for -o");
  const int64_t gpus = *flags.gpus;
  const std::string output = flags.output.value_or("");
  if (flags.output) {
    if (absl::Status status = CheckRecipeTarget(output, flags.replace, *flags.model); !status.ok())
      return UsageError(status);
  }
  Diagnostics diagnostics;
  const std::string& model = *flags.model;
  absl::StatusOr<StartedRecipe> started = StartRecipe(model, gpus, diagnostics);
  if (!started.ok()) {
    if (!diagnostics.has_errors()) return UsageError(started.status());
    const LoadedPlan loaded = LoadPlan(model, {});
    loaded.PrintProblems(as_json);
    return loaded.exit_status();
  }
  PublishedWeights weights = FindWeights(*started, request.overrides);
  const YamlNode drawn = started->own;
  if (!weights.from.empty()) {
    if (absl::Status status = LayOverrides({InitializeFrom(weights.from)}, started->own); !status.ok())
      return UsageError(status);
  }
  const std::string file = output.empty() ? "recipe.yaml" : output;
  // A text, so that messages can point at its lines.
  const std::string first = *TextOfStarted(*started, {}, "", kFirstRecipe);
  const std::map<std::string, std::string> sources = {{kFirstRecipe, first}};
  std::optional<YamlNode> tree = RecipeTreeOfText(first, kFirstRecipe, diagnostics);
  Require(tree.has_value(), "what a first recipe is written as can be read");
  request.recipe = *std::move(tree);
  const auto invalid = [&] {
    const LoadedPlan loaded = LoadPlan(request.recipe, request.overrides);
    loaded.PrintProblems(as_json, sources);
    return kExitInvalid;
  };
  const std::optional<Recipe> recipe = ReadRecipe(request.recipe, request.overrides, diagnostics);
  if (!recipe || !recipe->damaged.empty() || diagnostics.has_errors()) return invalid();
  for (const absl::Status& status :
       {CheckFixedKeys(*recipe, request.fixed), FitCluster(recipe->cluster, gpus, request.overrides)}) {
    if (!status.ok()) return UsageError(status);
  }
  request.gpus = gpus;
  LayoutSearch search(as_json);
  absl::StatusOr<Found> found = search.Run(request, diagnostics);
  if (!found.ok()) return diagnostics.has_errors() ? invalid() : UsageError(found.status());
  if (!found->chosen()) {
    if (as_json) {
      std::cout << JsonText(JsonOf(*found, nullptr, nullptr, nullptr), 2) << "\n";
    } else {
      std::cerr << "no layout was found: " << PrintableLines(FoundText(*found, LineWidth(STDERR_FILENO, kShowWidth)));
      PrintGivenProblems(*found, request.overrides, sources);
    }
    return search.signal() != 0 ? 128 + search.signal() : kExitInvalid;
  }
  std::vector<std::string> changes = request.overrides;
  changes.insert(changes.end(), found->chosen()->changes.begin(), found->chosen()->changes.end());
  if (!weights.from.empty()) {
    if (const std::string why = WhyWeightsDoNotFit(request.recipe, changes, weights.from); !why.empty()) {
      started->own = drawn;
      weights.said = BeginsDrawn(weights.from, Printable(why) + ". With initialize.from `plan weights` lists all");
    }
  }
  const std::string comment = FoundComment(
      absl::StrCat("A first recipe of ", Printable(model),
                   ", with the layout that a search chose (docs/tune.md). Batch, budget and data\n"
                   "are a beginning: set your own, and search again with `plan tune`. `given` is where the "
                   "search began."),
      *found);
  const absl::StatusOr<std::string> text = TextOfStarted(*started, changes, comment, file);
  if (!text.ok()) return UsageError(text.status());
  const absl::Status status = output.empty() ? CheckLayoutText(file, *text, *found->chosen())
                                             : WriteLayoutRecipe(output, *text, *found->chosen());
  if (!status.ok()) return UsageError(status);
  Tell(*found, *text, output, weights.said, as_json);
  return search.signal() != 0 ? 128 + search.signal() : kExitSuccess;
}

}  // namespace

CliCommand InitCommand() {
  std::vector<Option> options = {
      {"--model " + ModelNames(), &InitFlags::model, "the model; or a file that `plan import` wrote"},
      {"--gpus N", &InitFlags::gpus, "GPUs of the cluster, in nodes of eight; fewer are one node",
       WholeNumbers{1, kMostGpus}},
      Option("-o, --output FILE", &InitFlags::output, "write the recipe there; without it, it is printed")
          .Writes()
          .With({"plan init --model nemotron_moe_vlm_20l --gpus 8 cluster.gpu=h200_sxm -o mine.yaml",
                 "writes a first recipe"}),
      {"--replace", &InitFlags::replace, "let -o replace a file that is there"},
      JsonOption("print the same as JSON")};
  const std::vector<Option> search = SearchOptions();
  options.insert(options.end() - 1, search.begin(), search.end());
  CliCommand command = {"init", "writes a first recipe of a model, with a layout that a search chose",
                        Runs(InitRecipe)};
  command.usage = "--model NAME --gpus N [OVERRIDE ...] [-o FILE]";
  command.options = std::move(options);
  command.details =
      "The recipe is valid as it is, with mock data. Overrides change what it begins with:\n"
      "cluster.gpu=h200_sxm batch.global_samples=768. Relative paths in them are seen from the current folder.\n"
      "cluster.gpus_per_node and cluster.nodes may be overridden, too: what is left open follows from --gpus.\n"
      "The layout is that of `plan tune`, and so are the options of the search. Comments of the\n"
      "recipe list five layouts at most. Exit status: 1 if no layout is valid and fits; 130 after Ctrl-C.\n";
  command.see_also = {"import", "tune", "validate"}, command.pages = {"docs/tune.md"};
  return command;
}

}  // namespace planwright
