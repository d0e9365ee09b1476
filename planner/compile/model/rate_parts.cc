#include "planner/compile/model/rate_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/compile/model/expand_model.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// Whether `pattern`, in which * is any text, is the whole of `name`. Each literal between stars is taken where it comes
// first: what follows has the most room then.
bool IsLike(string_view pattern, string_view name) {
  const size_t star = pattern.find('*');
  if (star == string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (size_t next = pattern.find('*'); next != string_view::npos; next = pattern.find('*')) {
    const size_t found = name.find(pattern.substr(0, next));
    if (found == string_view::npos) return false;
    name.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
  return name.ends_with(pattern);
}

// What a match is compared with: a trained or frozen parameter of some module.
struct Named {
  const Module* module = nullptr;
  const Parameter* parameter = nullptr;
  string part;  // "radio_encoder.projection"
};

Named NamedOf(const Module& module, const Parameter& parameter) {
  return {&module, &parameter, NameOfPart(module, PartOf(module, parameter))};
}

bool Matches(const string& match, const Named& named) {
  return match == named.module->name || match == named.part || IsLike(match, named.parameter->file_name);
}

// Buffers are no weights: nothing steps them, and no part has them.
std::vector<Named> NamedOf(const std::vector<Module>& modules) {
  std::vector<Named> all;
  for (const Module& module : modules) {
    for (const Parameter& parameter : module.parameters) {
      if (!parameter.buffer) all.push_back(NamedOf(module, parameter));
    }
  }
  return all;
}

// A weight of a head that is another parameter: both by their published names.
struct TiedWeight {
  string name, is;
};

std::vector<TiedWeight> TiedWeightsOf(const std::vector<Module>& modules) {
  std::vector<TiedWeight> all;
  for (const Module& module : modules) {
    const StatedPiece& head = StatementOf(module)->head;
    for (const Storage& storage : module.storages) {
      for (const SharedSlot& shared : storage.shared) {
        for (const StatedWeight& weight : head.weights) {
          const auto parameter = static_cast<size_t>(storage.parameters.front());
          if (weight.slot == shared.slot)
            all.push_back({weight.file_prefix + head.prefix + weight.name, module.parameters.at(parameter).file_name});
        }
      }
    }
  }
  return all;
}

// The modules whose models are known, with their parameters as one rank would have them: names are the same on all
// layouts.
std::vector<Module> KnownModules(const Recipe& recipe, const std::vector<bool>& known) {
  ProjectorTarget target;
  target.several_encoders = recipe.modules.size() > 2;
  std::vector<Module> modules;
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    if (known[i]) modules.push_back(ParametersOf(recipe.modules[i], target));
  }
  return modules;
}

// As a recipe writes it: a star at the beginning would be YAML's.
string Yaml(const string& match) { return match.find('*') == string::npos ? match : Cat("\"", match, "\""); }

// The words of a name or pattern: what is between dots and stars.
std::vector<string> WordsOf(const string& text) {
  std::vector<string> words;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(".*"), absl::SkipEmpty()))
    words.emplace_back(word.data(), word.size());
  return words;
}

class PartChecks {
 public:
  PartChecks(const Recipe& recipe, const std::vector<Module>& modules, bool all_known, Diagnostics& diagnostics)
      : recipe_(recipe), all_(NamedOf(modules)), tied_(TiedWeightsOf(modules)), all_known_(all_known),
        diagnostics_(diagnostics) {
    for (const ModuleRecipe& module : recipe.modules) names_.push_back(*module.name);
    std::set<string> parts, words;
    for (const Named& named : all_) {
      if (named.part != named.module->name) parts.insert(named.part);
      for (string& word : WordsOf(named.parameter->file_name)) words.insert(std::move(word));
    }
    names_.insert(names_.end(), parts.begin(), parts.end());
    words_.assign(words.begin(), words.end());
    taken_.assign(all_.size(), -1);
  }

  void Check() {
    const size_t parts = std::min(recipe_.rate_parts.size(), kMostRateParts);
    for (size_t i = 0; i < parts; ++i) CheckPart(i);
    if (all_known_ && !unknown_) LintNothingTrains();
  }

 private:
  // What is trained, and never changes: every rate is 0.
  void LintNothingTrains() {
    const RatePartRecipe* still = nullptr;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].parameter->trained) continue;
      const RatePartRecipe* part = taken_[i] < 0 ? nullptr : &recipe_.rate_parts[static_cast<size_t>(taken_[i])];
      if (part == nullptr || !part->learning_rate || !AllKnown(part->learning_rate) || **part->learning_rate != 0)
        return;
      still = part;
    }
    if (still == nullptr) return;
    diagnostics_.Warning(DiagnosticKind::kKeyWithoutEffect, still->learning_rate->where,
                         "nothing trains: all that is not frozen is in parts with a learning rate of 0",
                         "give one of them a learning rate above 0");
  }

  void CheckPart(size_t index) {
    const RatePartRecipe& part = recipe_.rate_parts[index];
    if (!AllKnown(part.match)) {  // told; what it takes from those behind it is not known
      unknown_ = true;
      return;
    }
    std::vector<size_t> matched;
    std::set<int> before;  // the parts that have what it matches
    bool own = false, trained = false, decays = false;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!Matches(*part.match, all_[i])) continue;
      matched.push_back(i);
      const Parameter& parameter = *all_[i].parameter;
      if (taken_[i] >= 0) {
        before.insert(taken_[i]);
        continue;
      }
      taken_[i] = static_cast<int>(index);
      own = true, trained = trained || parameter.trained, decays = decays || (parameter.trained && parameter.decay);
    }
    if (matched.empty()) {
      if (all_known_) TellNothing(index);
    } else if (!own) {
      TellBehind(part, matched.size(), before);
    } else if (all_known_ && !unknown_ && !trained) {
      diagnostics_.Warning(DiagnosticKind::kKeyWithoutEffect, part.match.where,
                           Cat("all that ", Quoted(*part.match), " matches is frozen, so its rates have no effect"),
                           "train it (modules.NAME.train), or remove the part");
    } else if (all_known_ && !unknown_ && !decays && part.weight_decay && AllKnown(part.weight_decay) &&
               **part.weight_decay > 0) {
      diagnostics_
          .Error(DiagnosticKind::kConflictingKeys, part.weight_decay->where,
                 Cat("no weight that ", Quoted(*part.match),
                     " matches decays: norms, biases and other tensors of one dim never do"),
                 "remove weight_decay from this part")
          .edits = {{Cat("optimizer.parts[", index, "].weight_decay"), ""}};
    }
  }

  void TellBehind(const RatePartRecipe& part, size_t matched, const std::set<int>& before) {
    std::vector<string> takers;
    for (int other : before) takers.push_back(Quoted(*recipe_.rate_parts[static_cast<size_t>(other)].match));
    Diagnostic& problem = diagnostics_.Error(
        DiagnosticKind::kConflictingKeys, part.match.where,
        Cat("nothing is left for ", Quoted(*part.match), ": of the parts that match a parameter the first counts, and ",
            matched == 1 ? "the one parameter" : Cat("all ", matched, " parameters"), " that it matches ",
            matched == 1 ? "is" : "are", " in ", absl::StrJoin(takers, ", ")),
        "put it before, or remove it");
    for (int other : before) {
      problem.notes.push_back(
          {recipe_.rate_parts[static_cast<size_t>(other)].match.where, "this part has what it matches"});
    }
  }

  // Says what was probably meant: a name of a module, of a part or of a parameter, or the word that no name has.
  void TellNothing(size_t index) {
    const Located<string>& match = recipe_.rate_parts[index].match;
    const auto tell = [&](string help, const std::optional<string>& meant) {
      Diagnostic& problem = diagnostics_.Error(DiagnosticKind::kUnknownReference, match.where,
                                               Cat(Quoted(*match), " matches no parameter"), std::move(help));
      if (meant) problem.edits = {{Cat("optimizer.parts[", index, "].match"), Yaml(*meant)}}, problem.restates = true;
    };
    if (const std::optional<string> one = OfAllExperts(*match)) {
      return tell(Cat("the experts of a layer are one parameter, and have one rate: write ", Yaml(*one)), one);
    }
    if (const std::optional<string> is = OfTiedWeight(*match)) {
      return tell(Cat("the head is tied: its weight is that of the embedding, and has one rate: write ", *is), is);
    }
    std::optional<string> meant;
    if (match->find('*') == string::npos) meant = NearName(*match, names_);
    // A name that lacks what is around it.
    for (const string& around : {Cat("*", *match), Cat(*match, "*"), Cat("*", *match, "*")}) {
      if (!meant && !match->empty() && MatchesSome(around)) meant = around;
    }
    if (!meant) meant = WithKnownWords(*match);
    tell(meant ? Cat("did you mean `", Yaml(*meant), "`?")
               : Cat("match a module or a part (", absl::StrJoin(names_, ", "), "), or published names, such as ",
                     Yaml(Example()), "; `plan show RECIPE model --json` has all of them"),
         meant);
  }

  bool MatchesSome(const string& match) const {
    return std::any_of(all_.begin(), all_.end(), [&](const Named& named) { return Matches(match, named); });
  }

  // A match of single experts, with a star in the place of their number: "*experts.0.*", "*.experts.12*".
  std::optional<string> OfAllExperts(const string& match) const {
    std::vector<string> words;
    bool replaced = false;
    for (absl::string_view word : absl::StrSplit(match, '.')) {
      const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
      const bool number = digits > 0 && word.find_first_not_of('*', digits) == absl::string_view::npos;
      const bool of_expert = number && !words.empty() && words.back().substr(words.back().rfind('*') + 1) == "experts";
      words.push_back(of_expert ? "*" : string(word.data(), word.size()));
      replaced = replaced || of_expert;
    }
    string all = absl::StrJoin(words, ".");
    return replaced && MatchesSome(all) ? std::optional<string>(std::move(all)) : std::nullopt;
  }

  // What the tied weight is that the match is like, and no parameter.
  std::optional<string> OfTiedWeight(const string& match) const {
    for (const string& like : {match, Cat("*", match), Cat("*", match, ".*")}) {
      for (const TiedWeight& tied : tied_) {
        if (IsLike(like, tied.name) && !MatchesSome(like)) return tied.is;
      }
    }
    return std::nullopt;
  }

  // The match with the nearest word of all names in the place of each word that no name has, if that matches.
  std::optional<string> WithKnownWords(const string& match) const {
    string meant = match;
    for (const string& word : WordsOf(match)) {
      const bool in_a_name = std::any_of(words_.begin(), words_.end(),
                                         [&](const string& known) { return known.find(word) != string::npos; });
      if (in_a_name) continue;
      const std::optional<string> near = NearName(word, words_);
      if (!near) return std::nullopt;
      const size_t at = meant.find(word);
      if (at != string::npos) meant.replace(at, word.size(), *near);
    }
    return meant != match && MatchesSome(meant) ? std::optional<string>(std::move(meant)) : std::nullopt;
  }

  // A match that fits this recipe: of the last weight of a layer.
  string Example() const {
    if (all_.empty()) return "*.norm.weight";
    const std::vector<string> words = WordsOf(all_[all_.size() / 2].parameter->file_name);
    const size_t kept = std::min<size_t>(2, words.size());
    return Cat("*.", absl::StrJoin(words.end() - static_cast<std::ptrdiff_t>(kept), words.end(), "."));
  }

  const Recipe& recipe_;
  const std::vector<Named> all_;
  const std::vector<TiedWeight> tied_;
  const bool all_known_;
  Diagnostics& diagnostics_;
  bool unknown_ = false;       // some part so far has a match that is not known
  std::vector<string> names_;  // of modules and parts
  std::vector<string> words_;  // of all published names
  std::vector<int> taken_;     // by parameter: the part that has it; -1: none
};

}  // namespace

void CheckRateParts(const Recipe& recipe, const std::vector<bool>& known, Diagnostics& diagnostics) {
  if (recipe.rate_parts.empty() || recipe.modules.empty()) return;
  const std::vector<Module> modules = KnownModules(recipe, known);
  const bool all_known = !recipe.damaged.contains("modules") && modules.size() == recipe.modules.size();
  PartChecks(recipe, modules, all_known, diagnostics).Check();
}

std::vector<RatePart> RatePartsOf(const Recipe& recipe) {
  std::vector<RatePart> parts;
  for (const RatePartRecipe& part : recipe.rate_parts) {
    parts.push_back({*part.match, part.learning_rate ? **part.learning_rate : *recipe.budget.learning_rate.peak,
                     part.weight_decay ? **part.weight_decay : *recipe.budget.weight_decay.end});
  }
  return parts;
}

void AssignRateParts(const std::vector<RatePart>& parts, std::vector<Module>& modules) {
  if (parts.empty()) return;
  for (Module& module : modules) {
    for (Parameter& parameter : module.parameters) {
      if (!parameter.trained) continue;
      const Named named = NamedOf(module, parameter);
      const auto first =
          std::find_if(parts.begin(), parts.end(), [&](const RatePart& part) { return Matches(part.match, named); });
      if (first != parts.end()) parameter.part = static_cast<int>(first - parts.begin());
    }
  }
}

}  // namespace planwright
