// Everything that `plan explain` explains, but for commands and options, which `cli` adds: diagnostics, keys, choices
// of keys, kinds of layers, operations, terms of the glossary, words of other programs, exit statuses, headings of
// docs. Each text comes from the table or page that has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// What an answer shows together, in this order.
enum class SubjectType {
  kDiagnostic,
  kTerm,
  kKey,
  kChoice,     // a word that keys accept: `cosine`, and kinds of models and data: `sources`
  kLayer,      // a kind of layers
  kOperation,  // of programs
  kFieldWord,  // of another program
  kCommand,    // of `plan`
  kOption,     // of a command
  kExitStatus,
  kPage,  // a heading of docs
};
std::string_view SubjectTypeName(SubjectType type);  // "key", "term", "word of another program"

struct Subject {
  SubjectType type{};
  std::string name;                      // what to ask for: "batch.micro_samples", "lane", "all_gather"
  std::vector<std::string> names;        // further ones: "micro_samples"
  std::string summary;                   // one line
  std::string text;                      // for a terminal; ends with a line break
  std::string body;                      // further words to search in
  std::vector<std::string> refers = {};  // names of subjects that belong to the answer: keys of a word, of a choice
};

// All of them, in the order of SubjectType.
std::vector<Subject> AllSubjects();

// What is known of a word that is no name, but meant for a value: `vit` for radio_vit, `b200` for figures of a device.
// Empty: nothing.
std::string MeantValues(std::string_view word);

// Text in lines of at most 100 columns with four spaces in front.
std::string IndentedLines(std::string_view text);

}  // namespace planwright
