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
#include "planner/cli/first/folders_recipe.h"
#include "planner/cli/first/simplest_layout.h"
#include "planner/cli/layout_search.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/exchange/recipe_text.h"
#include "planner/exchange/run_model.h"
#include "planner/exchange/write_config.h"
#include "planner/plan/precision.h"
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
constexpr char kFirstRecipe[] = "<first recipe>";  // beside the file that it becomes

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

// The keys of a layout that overrides set: a first recipe keeps what was asked for.
std::vector<std::string> AskedKeys(const Recipe& recipe, const std::vector<std::string>& overrides) {
  std::vector<std::string> asked;
  for (const std::string& key : TunableKeys(recipe)) {
    const auto sets = [&](const std::string& word) {
      const std::string path = word.substr(0, word.find('='));
      return path == key || path.starts_with(key + ".") || key.starts_with(path + ".");
    };
    if (std::any_of(overrides.begin(), overrides.end(), sets)) asked.push_back(key);
  }
  return asked;
}

using Json = nlohmann::ordered_json;

// `file`: null for stdout. `text`: null if there is none. `weights`: what is said of those of an imported model, or
// null. `notes`: what people are told besides.
Json JsonOf(const Found& found, const Json& file, const Json& text, const Json& weights,
            const std::vector<std::string>& notes) {
  Json json = FoundJson(found);
  json["file"] = file, json["text"] = text, json["weights"] = weights, json["notes"] = notes;
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

// Why `plan export` will not make one folder of what the plan trains, as no model_type has these two models; empty: it
// will.
std::string WhyNotExported(const Plan& plan) {
  Findings findings;
  const RunModel run = ModelOfRun(plan, "", findings);
  if (findings.problems.empty()) ConfigOf(plan, run.said, DTypeOf(plan.precision), findings);
  if (findings.problems.empty()) return "";
  const Finding& first = findings.problems.front();
  std::string why = absl::StrCat("`plan export` will not write it as one folder: ", first.where);
  if (!first.value.empty()) absl::StrAppend(&why, " = ", first.value);
  return absl::StrCat(why, " ", first.message, ". With --module NAME it writes one module");
}

// Tells of the recipe, or prints it. `output`: empty for stdout. `weights`: a line of what it begins with, or empty.
void Tell(const Found& found, const std::string& text, const std::string& output, const std::string& weights,
          const std::vector<std::string>& notes, bool as_json) {
  const auto or_null = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  if (as_json) {
    std::cout << JsonText(JsonOf(found, or_null(output), text, or_null(weights), notes), 2) << "\n";
  } else if (output.empty()) {
    std::cout << text;
  } else {
    std::cerr << "wrote " << Printable(output) << ": a step is predicted to take "
              << StepText(found, found.chosen()->seconds) << " on " << ClusterText(found) << "\n";
  }
  if (as_json) return;
  if (!weights.empty()) std::cerr << weights << "\n";
  for (const std::string& note : notes) std::cerr << note << "\n";
}

struct InitFlags : SearchFlags {
  std::optional<std::string> model, output;
  FolderWords folders;
  std::optional<int64_t> gpus;
  bool replace = false;
};

// What is missing of the words of `plan init`, or too much; empty: nothing.
std::string WrongWords(const InitFlags& flags) {
  const bool folders = flags.has("--weights");
  if (folders && flags.has("--model"))
    return "--model and --weights both say the model: --weights FOLDER is a Hugging Face folder, --model NAME one that "
           "the program contains, or a file that `plan import` wrote";
  if (folders) {
    for (const char* needed : {"--data", "--gpus"}) {
      if (!flags.has(needed))
        return absl::StrCat("`plan init --weights` needs --data SHARDS and --gpus N; ", needed, " is not given");
    }
    for (const auto& [option, word] :
         {std::pair("--weights", &flags.folders.weights), std::pair("--encoder", &flags.folders.encoder),
          std::pair("--evaluation", &flags.folders.evaluation)}) {
      if (flags.has(option) && word->empty()) return absl::StrCat("option `", option, "` has an empty name");
    }
    return "";
  }
  for (const char* of_folders : {"--encoder", "--data", "--evaluation"}) {
    if (flags.has(of_folders)) return absl::StrCat("option `", of_folders, "` is for --weights FOLDER");
  }
  for (const char* needed : {"--model", "--gpus"}) {
    if (!flags.has(needed))
      return absl::StrCat("`plan init` needs --model NAME, or --weights FOLDER, and --gpus N; ", needed,
                          " is not given");
  }
  return "";
}

int InitRecipe(const InitFlags& flags) {
  const bool as_json = flags.json, folders = flags.has("--weights");
  if (const std::string wrong = WrongWords(flags); !wrong.empty()) return UsageError(wrong);
  TuneRequest request = flags.request;
  for (const std::string& word : flags.words) {
    if (word.find('=') == std::string::npos)
      return UsageError("`" + word + "` is not an override; an override has the form a.b=c");
    request.overrides.push_back(word);
  }
  if (flags.replace && !flags.output) return UsageError("option `--replace` is for -o");
  const int64_t gpus = *flags.gpus;
  const std::string output = flags.output.value_or(""), file = output.empty() ? "recipe.yaml" : output;
  std::string model = flags.model.value_or("");
  if (flags.output) {
    if (absl::Status status = CheckRecipeTarget(output, flags.replace, model); !status.ok()) return UsageError(status);
  }
  Diagnostics diagnostics;
  std::vector<std::string> notes;
  SteadyLines steady(as_json);
  if (folders) steady.Say([] { return "reading folders and shards"; });
  absl::StatusOr<StartedRecipe> started = absl::UnknownError("");
  if (folders) {
    FolderWords words = flags.folders;
    words.file = file;
    absl::StatusOr<FolderRecipe> of_folders = StartFromFolders(words, gpus, request.overrides);
    if (!of_folders.ok()) {
      UsageError(of_folders.status());
      return absl::IsFailedPrecondition(of_folders.status()) ? kExitInvalid : kExitUsage;
    }
    started = std::move(of_folders->started);
    model = of_folders->name, notes = of_folders->notes;
  } else {
    started = StartRecipe(model, gpus, diagnostics);
  }
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
  // A text, so that messages can point at its lines.
  const std::string name = (fs::path(file).parent_path() / kFirstRecipe).string();
  const std::string first = *TextOfStarted(*started, {}, "", name);
  const std::map<std::string, std::string> sources = {{name, first}};
  std::optional<YamlNode> tree = RecipeTreeOfText(first, name, diagnostics);
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
  for (std::string& key : AskedKeys(*recipe, request.overrides)) request.fixed.push_back(std::move(key));
  request.gpus = gpus;
  // Who says how many layouts are timed gets the same recipe on any machine.
  if (!flags.has("--seconds") && !flags.has("--candidates")) request.seconds = kFirstSearchSeconds;
  LayoutSearch search(as_json, &steady);
  absl::StatusOr<SimplestFound> simplest =
      FindSimplestLayout([&](const TuneRequest& part, Diagnostics& problems) { return search.Run(part, problems); },
                         [&] { return search.signal() != 0; }, *recipe, request, diagnostics);
  if (!simplest.ok()) return diagnostics.has_errors() ? invalid() : UsageError(simplest.status());
  steady.Say([] { return "comparing the recipe with what it names"; });
  const Found* found = &simplest->found;
  if (!found->chosen()) {
    if (as_json) {
      std::cout << JsonText(JsonOf(*found, nullptr, nullptr, nullptr, notes), 2) << "\n";
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
  if (folders) {
    std::vector<std::string> absent;
    const LoadedPlan compared = LoadComparedPlan(request.recipe, changes, absent);
    if (!compared.plan || compared.problems.has_errors()) {
      compared.PrintProblems(as_json, sources);
      return kExitInvalid;
    }
    if (const std::string why = WhyNotExported(*compared.plan); !why.empty()) notes.push_back(Printable(why));
  }
  const std::string comment =
      FoundComment(absl::StrCat("A first recipe of ", Printable(model),
                                ", with a layout that searches chose (docs/tune.md):\n", simplest->why,
                                ".\nBatch, budget and data are a beginning: set your own, and search again with "
                                "`plan tune`. `given` is where the\nsearches began."),
                   *found);
  const absl::StatusOr<std::string> text = TextOfStarted(*started, changes, comment, file);
  if (!text.ok()) return UsageError(text.status());
  const absl::Status status = output.empty() ? CheckLayoutText(file, *text, *found->chosen())
                                             : WriteLayoutRecipe(output, *text, *found->chosen());
  if (!status.ok()) return UsageError(status);
  notes.insert(notes.begin(), absl::StrCat("the layout: ", found->chosen()->line, "; ", simplest->why));
  Tell(*found, *text, output, weights.said, notes, as_json);
  return search.signal() != 0 ? 128 + search.signal() : kExitSuccess;
}

}  // namespace

CliCommand InitCommand() {
  const auto folder = [](auto FolderWords::*part) { return At(&InitFlags::folders, part); };
  std::vector<Option> options = {
      {"--model " + ModelNames(), &InitFlags::model, "the model; or a file that `plan import` wrote"},
      {"--weights FOLDER", folder(&FolderWords::weights),
       "instead of --model: a Hugging Face folder, of a language model or of a vision-language model"},
      {"--encoder FOLDER", folder(&FolderWords::encoder), "with --weights of a language model: a folder of an encoder"},
      {"--data SHARDS", folder(&FolderWords::data),
       "with --weights: shards that `prepare` made, as their folder or as \"shards/*.tar\"; commas between several"},
      {"--evaluation SHARDS", folder(&FolderWords::evaluation),
       "with --weights: the same of documents that are not trained on"},
      {"--gpus N", &InitFlags::gpus, "GPUs of the cluster, in nodes of eight; fewer are one node",
       WholeNumbers{1, kMostGpus}},
      Option("-o, --output FILE", &InitFlags::output, "write the recipe there; without it, it is printed")
          .Writes()
          .With({"plan init --model nemotron_moe_vlm_20l --gpus 8 cluster.gpu=h200_sxm -o mine.yaml",
                 "writes a first recipe"}),
      {"--replace", &InitFlags::replace, "let -o replace a file that is there"},
      JsonOption("print the same as JSON")};
  const std::vector<Option> search = SearchOptions(kFirstSearchSeconds);
  options.insert(options.end() - 1, search.begin(), search.end());
  CliCommand command = {"init", "writes a first recipe of a model, with a layout that a search chose",
                        Runs(InitRecipe)};
  command.usage =
      "{--model NAME | --weights FOLDER [--encoder FOLDER] --data SHARDS} --gpus N [OVERRIDE ...] [-o FILE]";
  command.options = std::move(options);
  command.details =
      "With --model the recipe is valid as it is, with mock data. With --weights it has the models of the folders, "
      "begins\n"
      "with their weights, and trains one epoch of the data. Overrides change what it begins with:\n"
      "cluster.gpu=h200_sxm batch.global_samples=768. Relative paths in them are seen from the current folder.\n"
      "cluster.gpus_per_node and cluster.nodes may be overridden, too: what is left open follows from --gpus.\n"
      "The layout is the simplest of those that are as fast as the fastest, as far as predicted times are known. "
      "Options\n"
      "of the searches are those of `plan tune`, and hold for each but for --seconds. Comments of the recipe list "
      "five\n"
      "layouts at most. Exit status: 1 if no layout is valid and fits; 130 after Ctrl-C.\n";
  command.see_also = {"import", "tune", "validate"}, command.pages = {"docs/tune.md", "docs/from_photos.md"};
  return command;
}

}  // namespace planwright
