#include "planner/recipe/explain/subjects.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"
#include "planner/recipe/diagnostics/explanation.h"
#include "planner/recipe/explain/glossary.h"
#include "planner/recipe/explain/pages.h"
#include "planner/recipe/field_words.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/other_devices.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/units.h"

namespace planwright {
namespace {

constexpr size_t kTextWidth = 100;

void AddDiagnostics(std::vector<Subject>& subjects) {
  for (DiagnosticKind kind : AllKinds()) {
    const Explanation& explanation = ExplanationOf(kind);
    subjects.push_back({SubjectType::kDiagnostic,
                        std::string(KindNumber(kind)),
                        {std::string(KindName(kind))},
                        std::string(KindSummary(kind)),
                        ExplanationText(kind),
                        Cat(explanation.meaning, " ", explanation.mend)});
  }
}

// The first sentence: up to a full stop before a capital letter.
std::string FirstSentence(const std::string& text) {
  for (size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1)) {
    if (at + 2 < text.size() && absl::ascii_isupper(text[at + 2])) return text.substr(0, at + 1);
  }
  return text;
}

void AddTerms(std::vector<Subject>& subjects) {
  for (const Term& term : TermsOf(GlossaryPage())) {
    // "lane One data-parallel replica ...": the names stand in a line above where they begin the paragraph.
    std::string text = term.text, names = absl::StrJoin(term.names, ", ");
    const std::string lower = absl::AsciiStrToLower(term.text);
    size_t count = term.names.size();
    while (count > 0 && !lower.starts_with(absl::StrJoin(term.names.begin(), term.names.begin() + count, ", ")))
      --count;
    text = text.substr(absl::StrJoin(term.names.begin(), term.names.begin() + count, ", ").size());
    text = std::string(absl::StripLeadingAsciiWhitespace(text));
    const std::string pages = term.pages.empty() ? "" : Cat("    see ", absl::StrJoin(term.pages, ", "), "\n");
    subjects.push_back({SubjectType::kTerm,
                        term.names[0],
                        {term.names.begin() + 1, term.names.end()},
                        FirstSentence(text),
                        Cat(names, " (term)\n", IndentedLines(text), pages),
                        text});
  }
}

// "batch.learning_rate.peak" is also asked for as "learning_rate.peak" and "peak".
std::vector<std::string> Endings(std::string_view path) {
  std::vector<std::string> endings;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string ending(path.substr(dot + 1));
    if (!ending.starts_with("<name>")) endings.push_back(ending);
  }
  return endings;
}

// Keys of several kinds that have one path are one subject.
void AddKeys(std::vector<Subject>& subjects) {
  std::map<std::string_view, size_t> known;
  for (const KeySpec& key : RecipeKeys()) {
    const auto [at, is_new] = known.try_emplace(key.path, subjects.size());
    if (!is_new) {
      Append(subjects[at->second].body, " ", key.help, " ", key.kind);
      continue;
    }
    std::vector<std::string> names = Endings(key.path);
    if (key.path.ends_with(">")) names.clear();
    subjects.push_back({SubjectType::kKey, std::string(key.path), std::move(names), std::string(key.help),
                        ExplainKey(key.path), Cat(key.choices, " ", key.kind, " ", key.default_text)});
  }
  for (const GoneKey& gone : GoneKeys()) {
    subjects.push_back({SubjectType::kKey, std::string(gone.path), Endings(gone.path), "gone", ExplainKey(gone.path),
                        std::string(gone.help)});
  }
}

// The last words of the keys that maps of this kind have.
std::string KeysOfKind(std::string_view map_path, std::string_view kind) {
  std::vector<std::string> keys;
  for (const KeySpec* key : KeysOf(map_path)) {
    if (key->kind == kind || (key->kind.empty() && WordOf(*key) != "kind")) keys.emplace_back(WordOf(*key));
  }
  return absl::StrJoin(keys, ", ");
}

// A word that keys accept, with what each of them is.
void AddChoices(std::vector<Subject>& subjects) {
  std::vector<std::pair<std::string, std::vector<const KeySpec*>>> words;
  for (const KeySpec& key : RecipeKeys()) {
    if (key.choices.empty() || key.type == KeyType::kLintLevels) continue;
    for (const std::string& choice : ChoicesOf(key)) {
      auto word = std::find_if(words.begin(), words.end(), [&](const auto& known) { return known.first == choice; });
      if (word == words.end()) word = words.insert(words.end(), {choice, {}});
      word->second.push_back(&key);
    }
  }
  for (const auto& [word, keys] : words) {
    std::vector<std::string> lines, paths;
    for (const KeySpec* key : keys) {
      const std::string path(key->path);
      if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;
      paths.push_back(path);
      std::string line = Cat("a value of ", path, ": ", key->help);
      if (WordOf(*key) == "kind") {
        const std::string map = path.substr(0, path.rfind('.'));
        Append(line, ". Keys of this kind, in `", map, "`: ", KeysOfKind(map, word));
      }
      lines.push_back(IndentedLines(line));
    }
    subjects.push_back({SubjectType::kChoice,
                        word,
                        {},
                        Cat("a value of ", absl::StrJoin(paths, ", ")),
                        Cat(word, "\n", absl::StrJoin(lines, "")),
                        "",
                        {}});
  }
}

void AddLayers(std::vector<Subject>& subjects) {
  const auto add = [&](const std::string& letter, const std::string& word, const std::string& title,
                       const std::string& where) {
    std::vector<std::string> names = {letter};
    if (absl::AsciiStrToLower(title) != word) names.push_back(title);
    const std::string sizes = where.empty() ? "" : Cat("models.<name>.", word);
    subjects.push_back(
        {SubjectType::kLayer,
         word,
         std::move(names),
         Cat(title, " layer, `", letter, "` in patterns"),
         Cat(word, "\n",
             IndentedLines(Cat("The ", title, " layer. `", letter, "` in patterns",
                               where.empty() ? "; no model here has it." : Cat("; its sizes are in ", where, ".")))),
         "layer kind",
         {}});
  };
  const std::vector<const ModelStatement*> kinds = LanguageKindsFirst();
  for (const ModelStatement* kind : kinds) {
    for (const StatedLayer& layer : kind->layer_kinds) {
      const StatedKey* section = kind->SectionOf(layer.letter);
      add(std::string(1, layer.letter), layer.word, layer.title,
          section ? Cat("models.<name>.", section->name) : Cat("the model of kind ", kind->kind));
    }
  }
  for (const ModelStatement* kind : kinds) {
    for (const StatedLayer& layer : kind->unbuilt) add(std::string(1, layer.letter), layer.title, layer.title, "");
  }
}

// The sections of docs/operations.md are the texts.
void AddOperations(std::vector<Subject>& subjects) {
  std::map<std::string, std::string> sections;
  for (const std::string& section :
       std::vector<std::string>(absl::StrSplit(OperationsReference(), absl::ByString("\n### ")))) {
    const size_t end = section.find('\n');
    std::string text = section.substr(std::min(end, section.size()));
    text = text.substr(0, text.find("\n## "));
    sections[section.substr(0, end)] = std::string(absl::StripAsciiWhitespace(text));
  }
  for (const OpInfo& info : AllOps()) {
    const std::string name(info.name);
    std::string text = Cat(name, " (an operation of programs: docs/operations.md)\n");
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(sections[name], '\n')))
      Append(text, line.empty() ? "" : "    ", line, "\n");
    subjects.push_back({SubjectType::kOperation, name, {}, FirstSentence(info.does), text, info.does, {}});
  }
}

void AddFieldWords(std::vector<Subject>& subjects) {
  for (const FieldWord& word : FieldWords()) {
    const std::string answer = AnswerOf(word);
    subjects.push_back({SubjectType::kFieldWord,
                        std::string(word.word),
                        {},
                        answer,
                        Cat(word.word, " (", word.of, ")\n", IndentedLines(answer)),
                        std::string(word.of),
                        KeysOfWord(word)});
  }
}

void AddExitStatuses(std::vector<Subject>& subjects) {
  for (const ExitStatusRow& row : ExitStatuses()) {
    const std::string number = absl::StrCat(row.number);
    std::string text = Cat("exit status ", number, "\n", IndentedLines(row.meaning));
    if (*row.named != 0) Append(text, "    named:      ", row.named, "\n");
    if (*row.mend != 0) Append(text, "    what to do: ", row.mend, "\n");
    if (row.number >= kExitPeerLost)
      Append(text, "    ", row.restart ? "The same run, started again, may well succeed." : "A restart does not help.",
             "\n    see docs/failures.md\n");
    subjects.push_back(
        {SubjectType::kExitStatus,
         number,
         {Cat("exit status ", number), Cat("exit code ", number), Cat("exit ", number), Cat("status ", number)},
         Cat("exit status: ", row.meaning),
         text,
         Cat(row.named, " ", row.mend),
         {}});
  }
}

}  // namespace

std::string_view SubjectTypeName(SubjectType type) {
  switch (type) {
    case SubjectType::kDiagnostic: return "diagnostic";
    case SubjectType::kTerm: return "term";
    case SubjectType::kKey: return "key";
    case SubjectType::kChoice: return "value of a key";
    case SubjectType::kLayer: return "kind of layers";
    case SubjectType::kOperation: return "operation";
    case SubjectType::kFieldWord: return "word of another program";
    case SubjectType::kCommand: return "command";
    case SubjectType::kOption: return "option";
    case SubjectType::kExitStatus: return "exit status";
    case SubjectType::kPage: return "page";
  }
  return "";
}

std::string MeantValues(std::string_view word) {
  std::string text;
  for (const KeySpec& key : RecipeKeys()) {
    const ChoiceWord* meant = key.choices.empty() ? nullptr : FindChoiceWord(key.path, word);
    if (meant == nullptr) continue;
    const std::string why = meant->why.empty() ? "" : Cat(": ", meant->why);
    text += IndentedLines(Cat("as a value of ", key.path, ": write `", meant->choice, "`", why));
  }
  if (const std::string figures = FiguresOfDevice(word); !figures.empty())
    text += IndentedLines(Cat("no value of cluster.gpu: write its figures in `cluster`, device: ", figures));
  return text.empty() ? "" : Cat(word, "\n", text);
}

std::string IndentedLines(std::string_view text) {
  std::string out, line;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(std::string(text), ' ', absl::SkipEmpty()))) {
    if (!line.empty() && 4 + line.size() + 1 + word.size() > kTextWidth) {
      Append(out, "    ", line, "\n");
      line.clear();
    }
    Append(line, line.empty() ? "" : " ", word);
  }
  return line.empty() ? out : Cat(out, "    ", line, "\n");
}

std::vector<Subject> AllSubjects() {
  std::vector<Subject> subjects;
  AddDiagnostics(subjects);
  AddTerms(subjects);
  AddKeys(subjects);
  AddChoices(subjects);
  AddLayers(subjects);
  AddOperations(subjects);
  AddFieldWords(subjects);
  AddExitStatuses(subjects);
  for (const PageSection& section : PageSections(PageHeadings()))
    subjects.push_back({SubjectType::kPage,
                        section.place,
                        {},
                        section.title,
                        Cat(section.place, "\n", IndentedLines(section.title)),
                        "",
                        {}});
  return subjects;
}

}  // namespace planwright
