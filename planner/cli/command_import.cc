// `plan import`: a Hugging Face folder as the models of a recipe (docs/hugging_face.md#what-goes-in).

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/exchange_text.h"
#include "planner/exchange/import_folder.h"
#include "planner/search/results/tuned_recipe.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

int ImportFailed(const absl::Status& status) { return UsageError(PrintableLines(std::string(status.message()))); }

// FILE is replaced if that is asked for, as by other commands; but nothing of FOLDER, which is the only copy of
// somebody's model.
absl::Status CheckImportTarget(const std::string& folder, const std::string& file, bool replace) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(file, error);  // of what a link leads to
  if (fs::is_directory(status)) return absl::InvalidArgumentError(file + " is a folder: name a file to write");
  if (fs::exists(status) && !fs::is_regular_file(status))
    return absl::InvalidArgumentError(file + " exists and is no plain file");
  const fs::path source = fs::weakly_canonical(folder + "/.", error), target = fs::weakly_canonical(file, error);
  for (fs::path above = target.parent_path();; above = above.parent_path()) {
    if (fs::equivalent(above, source, error))
      return absl::InvalidArgumentError(file + " is inside of " + folder + ", which import does not change");
    if (above == above.parent_path()) break;
  }
  if (fs::exists(status) && !replace)
    return absl::InvalidArgumentError(file + " exists: name another file, or replace it with --replace");
  return absl::OkStatus();
}

struct ImportOptions : CommandOptions {
  std::optional<std::string> output;
  bool replace = false, untie = false;
  std::set<std::string> ignored;
};

int Import(const ImportOptions& options) {
  if (options.words.size() != 1)
    return UsageError("`plan import` needs one folder; found " + std::to_string(options.words.size()));
  const std::string& folder = options.words[0];
  const std::optional<std::string>& file = options.output;
  if (folder.empty()) return UsageError("`plan import` needs a folder; found an empty name");
  if (options.replace && !file) return UsageError("option `--replace` is for -o");
  if (file) {
    const absl::Status status = CheckImportTarget(folder, *file, options.replace);
    if (!status.ok()) return ImportFailed(status);
  }
  // What is printed is taken for a file of the current folder.
  const std::string named = PathInFile(folder, file.value_or("model.yaml"));
  const absl::StatusOr<ImportedModel> imported =
      ImportFolder(folder, options.ignored, named, BuiltInDialects(), options.untie);
  if (!imported.ok()) return ImportFailed(imported.status());
  const bool expressed = imported->findings.problems.empty();
  if (expressed && file) {
    if (absl::Status status = WriteNamedFile(*file, imported->text); !status.ok()) return ImportFailed(status);
  }
  if (options.json) {
    Json json = {{"file", expressed && file ? Json(*file) : Json()},
                 {"text", expressed ? Json(imported->text) : Json()}};
    AddFindings(imported->findings, json);
    std::cout << JsonText(json, 2) << "\n";
    return expressed ? kExitSuccess : kExitInvalid;
  }
  if (!expressed) std::cerr << Printable(folder) << " cannot be expressed as a recipe\n";
  std::cerr << FindingsText(imported->findings);
  if (!expressed) return kExitInvalid;
  if (file) {
    std::cerr << "wrote " << Printable(*file) << "\n";
  } else {
    std::cout << imported->text;
  }
  return kExitSuccess;
}

}  // namespace

CliCommand ImportCommand() {
  CliCommand command = {"import", "writes the models of a recipe from a Hugging Face folder", Runs(Import), "d"};
  command.usage = "FOLDER [-o FILE [--replace]] [--untie] [--ignore KEYS] [--json]";
  command.options = {
      Option("-o, --output FILE", &ImportOptions::output, "write the recipe's part there; without it, it is printed",
             NameOf{"a file"})
          .Writes()
          .With({"plan import MODEL_FOLDER -o model.yaml", "writes the models of a recipe"}),
      {"--replace", &ImportOptions::replace, "let -o replace a file that is there"},
      {"--untie", &ImportOptions::untie,
       "a model whose output head is its embedding gets a head of its own, which begins as a copy"},
      {"--ignore KEYS", &ImportOptions::ignored, "keys of config.json that may stay unread: text_config.a,b",
       ListOption},
      JsonOption("print the same as JSON"),
  };
  command.details =
      "FOLDER has config.json (of a model_type that docs/hugging_face.md lists) and weights in safetensors. Only\n"
      "config.json and the headers of the weights are read. What a recipe cannot express, and keys that are not "
      "known,\n"
      "are listed all at once, and then nothing is written. A recipe names the file under `extends`.\n"
      "Exit status: 1 if the model cannot be expressed, 2 if the folder cannot be read.\n";
  command.see_also = {"export", "init", "weights", "evaluate"}, command.pages = {"docs/hugging_face.md"};
  return command;
}

}  // namespace planwright
