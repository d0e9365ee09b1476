// `plan fmt`: writes recipes in their one form, with their comments.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/terminal.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/format/format_recipe.h"
#include "planner/recipe/format/line_diff.h"
#include "planner/recipe/format/replace_recipe.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path != "-") return ReadWholeFile(path, kLargestRecipe + 1);
  std::string text;
  char chunk[1 << 14];
  while (text.size() <= kLargestRecipe) {  // one byte more than a recipe may have, to notice that there is more
    const ssize_t count = read(STDIN_FILENO, chunk, std::min(sizeof chunk, kLargestRecipe + 1 - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::UnavailableError(Cat("cannot read stdin: ", std::strerror(errno)));
    if (count == 0) break;
    text.append(chunk, static_cast<size_t>(count));
  }
  return text;
}

struct Outcome {
  Json files = Json::array();  // the recipes that have a form
  std::string out;
  int result = kExitSuccess;
};

// Formats one recipe. Returns its status, after its problems are told.
int FormatOne(const std::string& path, bool check, bool print, Outcome& done) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return UsageError(text.status());
  const std::string name = path == "-" ? "<stdin>" : path;
  Diagnostics problems;
  const std::optional<absl::StatusOr<std::string>> formatted = FormatRecipe(*text, name, problems);
  if (!formatted) {
    SourceTexts texts;
    std::cerr << RenderText(problems.sorted(), texts, false);
    return kExitInvalid;
  }
  if (!formatted->ok()) return UsageError(formatted->status());
  const bool same = **formatted == *text, written = !check && !print && path != "-";
  if (!same && written) {
    if (const absl::Status replaced = ReplaceRecipe(path, *text, **formatted); !replaced.ok())
      return UsageError(replaced);
  }
  const std::string diff = check && !same ? LineDiff(*text, **formatted) : "";
  done.files.push_back({{"path", path}, {"changed", !same}});
  if (check) done.files.back()["diff"] = diff;
  if (!check && !written) done.files.back()["text"] = **formatted;
  if (check && !same) {
    Append(done.out, name, " is not in its form; `plan fmt ", path, "` ", path == "-" ? "prints" : "writes", " it:\n",
           PrintableLines(DiffToRead(diff, *text)));
  } else if (!check && !written) {
    done.out += **formatted;
  } else if (!same) {
    Append(done.out, "formatted ", path, "\n");
  }
  return check && !same ? kExitInvalid : kExitSuccess;
}

struct FmtOptions : CommandOptions {
  bool check = false, print = false;
};

int Format(const FmtOptions& options) {
  if (options.words.empty()) return UsageError("no recipe is given: `plan fmt RECIPE`, or `-` for stdin");
  if (options.check && options.print)
    return UsageError("--check prints what would change, --stdout the whole recipe: give one of them");
  if (options.print && options.json)
    return UsageError("--stdout prints the recipe, --json what changed: give one of them");
  // A recipe with problems does not keep the others from their form, and what was written is told in any case.
  Outcome done;
  for (const std::string& path : options.words)
    done.result = std::max(done.result, FormatOne(path, options.check, options.print, done));
  std::cout << (options.json ? JsonText(Json{{"files", done.files}}, 2) + "\n" : done.out);
  return done.result;
}

}  // namespace

CliCommand FmtCommand() {
  CliCommand command = {"fmt", "writes a recipe in its one form, with its comments", Runs(Format), "rrrrrrrr"};
  command.usage = "RECIPE ... [--check | --stdout] [--json]";
  command.options = {
      Option("--check", &FmtOptions::check, "write nothing: print what would change, and exit with 1 if anything would")
          .With({"plan fmt --check recipes/nemotron_moe_vlm_20l_mock_8r.yaml", "says whether a recipe is in order"}),
      Option("--stdout", &FmtOptions::print, "print the recipe instead of writing it")
          .With({"plan fmt --stdout recipes/nemotron_moe_vlm_tiny.yaml", "prints it as it would be written"}),
      JsonOption("print which files changed; with --check the changes, too, and of stdin the text"),
  };
  command.details =
      "Keys come in the order of docs/recipe_reference.md, two spaces a level, one blank line at most. Names, values\n"
      "and comments stay; what is on one line stays there if it fits. The recipe says the same before and after,\n"
      "which is checked before a file is written. RECIPE `-` is stdin, and then stdout gets the result.\n";
  command.see_also = {"validate"}, command.pages = {"docs/help.md"};
  return command;
}

}  // namespace planwright
