#include <algorithm>
#include <cctype>
#include <iostream>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/cli/command.h"
#include "planner/cli/explained_subjects.h"
#include "planner/plan/op_table.h"
#include "planner/recipe/diagnostics/explanation.h"
#include "planner/recipe/explain/search.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_schema.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(DiagnosticKind kind) {
  return std::string(KindNumber(kind)) + " " + std::string(KindName(kind)) + ": " + (IsLint(kind) ? "(lint) " : "") +
         std::string(KindSummary(kind)) + "\n";
}

Json KindJson(DiagnosticKind kind) {
  const Explanation& explanation = ExplanationOf(kind);
  const auto example = [](std::string_view text) { return text.empty() ? Json(nullptr) : Json(ExampleText(text)); };
  return {{"kind", KindNumber(kind)},
          {"name", KindName(kind)},
          {"lint", IsLint(kind)},
          {"summary", KindSummary(kind)},
          {"meaning", explanation.meaning},
          {"wrong", example(explanation.wrong)},
          {"right", example(explanation.right)},
          {"mend", explanation.mend}};
}

int List(bool json) {
  if (json) {
    Json kinds = Json::array();
    for (DiagnosticKind kind : AllKinds()) kinds.push_back(KindJson(kind));
    // One example shows a wrong encoding. Escaping keeps the JSON valid UTF-8.
    std::cout << Json{{"kinds", kinds}}.dump(2, ' ', /*ensure_ascii=*/true) << "\n";
  } else {
    for (DiagnosticKind kind : AllKinds()) std::cout << Line(kind);
  }
  return kExitSuccess;
}

// A word as a part of a recipe's path: "modules.language.parallel.tp". Empty: it is none.
std::string ExplainPath(const std::string& word) {
  return word.find('.') == std::string::npos && word.find('[') == std::string::npos ? "" : ExplainKey(word);
}

constexpr size_t kMostKeys = 6, kMostFound = 8;

// One line for each: what to ask for, and what it is.
std::string Lines(const std::vector<const Subject*>& subjects) {
  constexpr size_t kWidth = 118;
  size_t width = 0;
  for (const Subject* subject : subjects) width = std::max(width, subject->name.size());
  std::string text;
  for (const Subject* subject : subjects) {
    std::string summary = subject->summary;
    const std::string type = subject->type == SubjectType::kKey ? "" : Cat(" (", SubjectTypeName(subject->type), ")");
    const size_t room = kWidth - std::min(kWidth, width + 4 + type.size());
    if (summary.size() > room)
      summary = Cat(summary.substr(0, summary.rfind(' ', room - std::min<size_t>(room, 4))), " ...");
    Append(text, "  ", PadRight(subject->name, width), "  ", summary, type, "\n");
  }
  return text;
}

// The glossary's terms in which a word stands as code: `tp` in "axis".
std::string SeeTerms(const std::string& word, const std::vector<Subject>& subjects) {
  std::vector<std::string> names;
  for (const Subject& subject : subjects) {
    if (subject.type == SubjectType::kTerm && Cat(" ", subject.body).find(Cat("`", word, "`")) != std::string::npos)
      names.push_back(subject.name);
  }
  return names.empty() || names.size() > 4 ? "" : Cat("\nsee also the terms: ", absl::StrJoin(names, ", "), "\n");
}

struct Answer {
  std::string text;                   // empty: nothing was found
  std::vector<const Subject*> found;  // by name, or else by a search
  bool by_name = false;
};

// All that has this name. `alone`: it is all of the question, so that it may also be a word for a value.
Answer AnswerByName(const std::string& word, const std::vector<Subject>& subjects, bool alone = true) {
  Answer answer;
  answer.by_name = true;
  if (word.size() > kLongestQuestion) return answer;
  if (const std::optional<DiagnosticKind> kind = FindKind(word)) {
    answer.found = FindByName(KindNumber(*kind), subjects);
    answer.text = ExplanationText(*kind);
    return answer;
  }
  std::vector<std::string> parts;
  answer.found = FindByName(word, subjects);
  if (answer.found.empty() && ExplainPath(word).empty()) answer.found = FindInOtherMaps(word, subjects);
  std::vector<const Subject*> keys;
  for (const Subject* subject : answer.found) {
    if (subject->type == SubjectType::kKey)
      keys.push_back(subject);
    else
      parts.push_back(subject->text);
  }
  if (keys.size() > kMostKeys) {
    parts.insert(parts.begin(),
                 Cat(keys.size(), " keys are called so; `plan explain KEY` explains one:\n", Lines(keys)));
  } else {
    for (size_t i = 0; i < keys.size(); ++i) parts.insert(parts.begin() + static_cast<ptrdiff_t>(i), keys[i]->text);
  }
  // A word of another program stands with the keys that it is here.
  for (const Subject* subject : std::vector<const Subject*>(answer.found)) {
    for (const std::string& name : subject->refers) {
      const bool there = std::any_of(answer.found.begin(), answer.found.end(),
                                     [&](const Subject* other) { return other->name == name; });
      if (!there) parts.push_back(ExplainKey(name));
    }
  }
  if (parts.empty()) {
    if (const std::string path = ExplainPath(word); !path.empty()) parts.push_back(path);
  }
  if (const std::string meant = MeantValues(word); !meant.empty() && alone) parts.push_back(meant);
  answer.text = absl::StrJoin(parts, "\n");
  if (!keys.empty() && !answer.text.empty()) answer.text += SeeTerms(word, subjects);
  return answer;
}

// What a search finds, with the name that was probably meant.
Answer AnswerBySearch(const std::string& question, const std::vector<Subject>& subjects) {
  Answer answer;
  answer.found = Search(question, subjects, kMostFound);
  if (answer.found.empty()) return answer;
  // Words that texts have are rarely misspelled.
  std::optional<std::string> near = NearSubject(question, subjects);
  if (near && EditDistance(question, *near) > std::max(1, static_cast<int>(question.size()) / 6)) near.reset();
  const bool name = question.find(' ') == std::string::npos;
  answer.text =
      Cat(name ? Cat("nothing is called `", question, "`", near ? Cat("; did you mean `", *near, "`?") : "", "\n") : "",
          "nearest, for `plan explain`:\n", Lines(answer.found));
  return answer;
}

int UnknownWord(const std::string& word, const std::vector<Subject>& subjects) {
  const std::optional<std::string> near = NearSubject(word, subjects);
  return UsageError(Cat("nothing is called `", word.substr(0, kLongestQuestion), "`, and no text has its words; ",
                        near ? Cat("did you mean `", *near, "`?") : "`plan explain` lists the diagnostics"));
}

// A misspelled path, number or option: a search would find only its parts.
bool LooksLikeAName(const std::string& word) {
  return word.find_first_of(" <") == std::string::npos &&
         (word.starts_with('-') || word.find('.') != std::string::npos ||
          (word.size() > 2 && word.starts_with("PW") && std::isdigit(word[2])));
}

Json SubjectsJson(const Answer& answer) {
  Json list = Json::array();
  for (const Subject* subject : answer.found) {
    if (subject->type == SubjectType::kDiagnostic && answer.by_name) continue;  // in "kinds"
    list.push_back({{"type", SubjectTypeName(subject->type)},
                    {"name", subject->name},
                    {"summary", subject->summary},
                    {"text", subject->text},
                    {"by_name", answer.by_name}});
  }
  return list;
}

// The words one by one if each is a name, or else all of them as one name or question.
int ExplainWords(const std::vector<std::string>& words, bool json) {
  const std::vector<Subject> subjects = ExplainedSubjects();
  const std::string all = absl::StrJoin(words, " ");
  std::vector<Answer> answers = {AnswerByName(all, subjects)};
  if (answers[0].text.empty() && words.size() > 1) {
    answers.clear();
    for (const std::string& word : words) answers.push_back(AnswerByName(word, subjects, false));
  }
  const auto nothing = [](const Answer& answer) { return answer.text.empty(); };
  if (std::any_of(answers.begin(), answers.end(), nothing)) {
    for (const std::string& word : words) {
      if (LooksLikeAName(word) && AnswerByName(word, subjects).text.empty()) return UnknownWord(word, subjects);
    }
    answers = {AnswerBySearch(all, subjects)};
  }
  if (nothing(answers[0])) return UnknownWord(all, subjects);
  Json kinds = Json::array(), found = Json::array();
  std::vector<std::string> texts;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::optional<DiagnosticKind> kind = FindKind(answers.size() == 1 ? all : words[i]);
    if (kind && answers[i].by_name) kinds.push_back(KindJson(*kind));
    for (const Json& subject : SubjectsJson(answers[i])) found.push_back(subject);
    texts.push_back(answers[i].text);
  }
  std::cout << (json ? Json{{"kinds", kinds}, {"found", found}}.dump(2, ' ', true) + "\n" : absl::StrJoin(texts, "\n"));
  return kExitSuccess;
}

struct ExplainOptions : CommandOptions {
  bool markdown = false, reference = false, operations = false, failures = false, schema = false;
};

int Explain(const ExplainOptions& options) {
  if (options.markdown) std::cout << DiagnosticsPage();
  if (options.reference) std::cout << RecipeReference();
  if (options.operations) std::cout << OperationsReference();
  if (options.failures) std::cout << FailuresPage();
  if (options.schema) std::cout << RecipeSchema().dump(2) << "\n";
  if (!options.words.empty()) return ExplainWords(options.words, options.json);
  const bool page = options.markdown || options.reference || options.operations || options.failures || options.schema;
  return page ? static_cast<int>(kExitSuccess) : List(options.json);
}

}  // namespace

CliCommand ExplainCommand() {
  CliCommand command = {"explain",
                        "explains a diagnostic, a key, a term, or a word of another program; searches for others",
                        Runs(Explain), "k"};
  command.usage = "[WORD ...] [--json]";
  command.options = {
      JsonOption("print {\"kinds\", \"found\"} for scripts"),
      {"--markdown", &ExplainOptions::markdown, "print all kinds of diagnostics as a page (docs/diagnostics.md)"},
      {"--reference", &ExplainOptions::reference, "print all keys of a recipe as a page (docs/recipe_reference.md)"},
      {"--operations", &ExplainOptions::operations, "print all operations of a plan as a page (docs/operations.md)"},
      {"--failures", &ExplainOptions::failures,
       "print how a run can fail, with its exit statuses, as a page (docs/failures.md)"},
      {"--schema", &ExplainOptions::schema,
       "print the JSON schema of recipes, for editors (schemas/recipe.schema.json)"},
  };
  command.details =
      "WORD is one of these, or a question whose words are searched for:\n"
      "  a diagnostic               PW0203, GridDoesNotFit\n"
      "  a key, whole or its end    batch.micro_samples, micro_samples, tp\n"
      "  a value of a key           webdataset, cosine, h100_sxm\n"
      "  a term of the glossary     lane, bubble\n"
      "  a word of Megatron-LM, torchtitan, axolotl and others, as there: --micro-batch-size, training.seq_len\n"
      "  a kind of layers, an operation, a command, an exit status: mamba, all_gather, launch, 12\n\n"
      "Without a word, it lists all kinds of diagnostics.\n";
  command.examples = {
      {"plan explain PW0203", "a diagnostic, with examples"},
      {"plan explain micro_samples", "a key, by its last word"},
      {"plan explain --micro-batch-size", "what an argument of Megatron-LM is called here"},
      {"plan explain run out of memory", "a search"},
  };
  command.see_also = {"help", "validate"},
  command.pages = {"docs/glossary.md", "docs/recipe_reference.md", "docs/help.md"};
  command.asks_for_options = true;
  return command;
}

}  // namespace planwright
