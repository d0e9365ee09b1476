#include "planner/compile/advise.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/candidates.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

constexpr int kMostTrials = 600;      // of a recipe, by its checks
constexpr int kMostWholeTrials = 24;  // by making its plan
// The plans of all whole trials together, as parts of the longest one (PartOfLongest): they take no longer than it.
constexpr double kLongestTried = 1;
// A trial takes time with the size of the recipe, and advice with the number of problems: a recipe with more gets none.
constexpr size_t kMostValuesRead = 100'000;  // of all trials together
constexpr size_t kMostAdvised = 200;         // problems

size_t ValuesIn(const YamlNode& node) {
  size_t values = 1;
  for (const YamlNode& item : node.items) values += ValuesIn(item);
  for (const YamlEntry& entry : node.entries) values += ValuesIn(entry.value);
  return values;
}

// What makes a problem the same one after a change: numbers in its text may be others.
using Identity = std::tuple<DiagnosticKind, std::string, int, int, std::string>;

Identity IdentityOf(const Diagnostic& problem) {
  return {problem.kind, problem.where.file ? *problem.where.file : "", problem.where.line, problem.where.column,
          MessageWithoutNumbers(problem)};
}

// Reads and checks changed recipes.
class Trials {
 public:
  // `part`: PartOfLongest of the plan that has the problems; plans are made then, since the checks find none. Nothing:
  // the checks find them.
  Trials(const YamlNode& tree, KnownFiles& files, std::optional<double> part)
      : tree_(tree), files_(files), part_(part),
        most_(std::min(whole() ? kMostWholeTrials : kMostTrials, static_cast<int>(kMostValuesRead / ValuesIn(tree)))) {}

  std::vector<Diagnostic> ProblemsWith(std::span<const Edit> edits) {
    ++count_;
    YamlNode changed = tree_;
    ApplyEdits(edits, changed);
    Diagnostics problems;
    const Recipe recipe = RecipeOfTree(std::move(changed), problems);
    if (whole()) {
      double part = 0;
      CompileRecipe(recipe, files_, problems, nullptr, &part);
      tried_ += std::max(part, *part_ / 2);  // one that is refused while it is made takes time, too
    } else {
      CheckRecipe(recipe, files_, problems);
    }
    return problems.as_found();
  }

  bool exhausted() const { return count_ >= most_ || (whole() && tried_ + *part_ > kLongestTried); }
  bool whole() const { return part_.has_value(); }

 private:
  const YamlNode& tree_;
  KnownFiles& files_;
  const std::optional<double> part_;
  const int most_;
  int count_ = 0;
  double tried_ = 0;  // of kLongestTried
};

// How far a change gets.
enum class Reach {
  kAll,    // all problems of the value are gone
  kShows,  // so they are, and problems elsewhere show that these had hidden
  kOne,    // the problem is gone, but not the others of the value
  kNowhere,
};

// A value that takes part in a problem, with the values that end it.
struct Fix {
  TreePlace place;
  Location where;
  int blame = 0;  // 0: an override, 1: in the recipe itself, 2: in a file that it extends
  std::vector<std::string> values = {};
  Reach reach = Reach::kNowhere;
  int ended = 0;        // problems
  double distance = 0;  // of the first value from the one that the recipe has
  bool shared = false;  // it ends problems, too, that have a suggestion for this value alone
  bool told = false;    // the first value is the first number that the help of the check names

  // A size that is nearly right is the wrong one: 8191 and not 2. Then grids are changed rather than models.
  int Class() const { return distance < 0.02 ? 0 : place.path.starts_with("models.") ? 2 : 1; }
};

class Advisor {
 public:
  Advisor(const YamlNode& tree, KnownFiles& files, std::vector<Diagnostic> problems, std::optional<double> part)
      : tree_(tree), problems_(std::move(problems)), trials_(tree, files, part), folded_(problems_.size()) {
    // A plan was made of the recipe as it is written, so that these are its problems already.
    for (const Diagnostic& problem : trials_.whole() ? problems_ : trials_.ProblemsWith({}))
      before_.insert(IdentityOf(problem));
  }

  std::vector<Diagnostic> Advise() {
    for (size_t i = 0; i < problems_.size(); ++i) {
      if (folded_[i]) continue;
      if (!problems_[i].edits.empty()) {
        KeepIfItWorks(problems_[i]);
      } else if (problems_[i].kind == DiagnosticKind::kDeviceTooSmall) {
        AdviseMemory(problems_[i]);
      } else if (!trials_.exhausted() && before_.contains(IdentityOf(problems_[i]))) {
        AdviseValue(i);
      }
    }
    std::vector<Diagnostic> kept;
    for (size_t i = 0; i < problems_.size(); ++i) {
      if (!folded_[i]) kept.push_back(std::move(problems_[i]));
    }
    return kept;
  }

 private:
  // Whether the edits end all of these problems, and bring no other. `errors_only`: new warnings do not count.
  // `elsewhere`: nor do problems that do not point at this value.
  bool Ends(std::span<const Edit> edits, const std::vector<Identity>& problems, bool errors_only = false,
            const std::string& elsewhere = "") {
    if (trials_.exhausted()) return false;
    std::set<Identity> after;
    for (const Diagnostic& problem : trials_.ProblemsWith(edits)) {
      const Identity identity = IdentityOf(problem);
      // That data is on another machine is no fault of a suggestion.
      const bool counts = problem.kind != DiagnosticKind::kDataNotHere &&
                          (!errors_only || problem.severity == Severity::kError) &&
                          (elsewhere.empty() || PointsAt(problem, elsewhere));
      if (!before_.contains(identity) && counts) return false;
      after.insert(identity);
    }
    return std::none_of(problems.begin(), problems.end(), [&](const Identity& one) { return after.contains(one); });
  }

  // Suggestions without a path are for the value that the problem points at. What was wrong with a text is no problem
  // of its tree, which has been read as the suggestion says.
  void KeepIfItWorks(Diagnostic& problem) {
    if (problem.kind == DiagnosticKind::kFileUnreadable || problem.kind == DiagnosticKind::kYamlSyntax) return;
    if (trials_.exhausted()) return problem.edits.clear();
    const std::optional<TreePlace> place = PlaceAt(tree_, problem.where);
    for (Edit& edit : problem.edits) {
      if (edit.path.empty() && place) edit.path = place->path;
    }
    const bool known = before_.contains(IdentityOf(problem));
    if (!known || !Ends(problem.edits, {IdentityOf(problem)})) {
      problem.edits.clear();
      return;
    }
    ended_.push_back(IdentityOf(problem));
    chosen_.insert(chosen_.end(), problem.edits.begin(), problem.edits.end());
  }

  int BlameOf(const Location& where) const {
    if (!where.file) return 2;
    if (*where.file == kCommandLine) return 0;
    return tree_.where.file && *tree_.where.file == *where.file ? 1 : 2;
  }

  // The values that a problem points at.
  std::vector<Fix> PlacesOf(const Diagnostic& problem) const {
    std::vector<Fix> places;
    const auto add = [&](const Location& where) {
      const std::optional<TreePlace> place = PlaceAt(tree_, where);
      if (!place || place->node->is_map()) return;
      for (const Fix& known : places) {
        if (known.place.path == place->path) return;
      }
      places.push_back({*place, where, BlameOf(where)});
    };
    add(problem.where);
    for (const Note& note : problem.notes) add(note.where);
    return places;
  }

  bool PointsAt(const Diagnostic& problem, const std::string& path) const {
    const std::vector<Fix> places = PlacesOf(problem);
    return std::any_of(places.begin(), places.end(), [&](const Fix& fix) { return fix.place.path == path; });
  }

  // The problems that this value takes part in, and that are still to be told.
  std::vector<size_t> ProblemsOf(const std::string& path, size_t first) const {
    std::vector<size_t> problems = {first};
    for (size_t i = first + 1; i < problems_.size(); ++i) {
      if (!folded_[i] && problems_[i].edits.empty() && before_.contains(IdentityOf(problems_[i])) &&
          PointsAt(problems_[i], path))
        problems.push_back(i);
    }
    return problems;
  }

  // Problems of this value with a suggestion of their own: a value that ends others must end these, too.
  std::vector<Identity> SuggestedFor(const std::string& path) const {
    std::vector<Identity> problems;
    for (const Diagnostic& problem : problems_) {
      const std::optional<TreePlace> place = PlaceAt(tree_, problem.where);
      if (!problem.edits.empty() && place && place->path == path && problem.severity == Severity::kError &&
          before_.contains(IdentityOf(problem)))
        problems.push_back(IdentityOf(problem));
    }
    return problems;
  }

  // Problems of keys that a recipe may do without.
  static bool MayBeTooMuch(DiagnosticKind kind) {
    using enum DiagnosticKind;
    return kind == kConflictingKeys || kind == kWarmupTwice || kind == kWarmupTooLong ||
           kind == kTokenOutsideVocabulary || kind == kBridgeTokenNotInData || kind == kNoExperts ||
           kind == kDataParallelMismatch;
  }

  // Finds values of this place that end the problem: with all others of the value, or else alone.
  void FindValues(size_t index, const std::vector<Fix>& places, Fix& fix) {
    const std::string& path = fix.place.path;
    std::vector<TreePlace> others;
    for (const Fix& other : places) {
      if (other.place.path != path) others.push_back(other.place);
    }
    std::vector<std::string> candidates = CandidatesOf(tree_, fix.place, others, problems_[index]);
    if (MayBeTooMuch(problems_[index].kind) && MayBeRemoved(path))
      candidates.emplace_back();  // without a value the key is removed
    if (candidates.empty()) return;
    std::vector<Identity> all;
    for (size_t i : ProblemsOf(path, index)) all.push_back(IdentityOf(problems_[i]));
    const std::vector<Identity> suggested = SuggestedFor(path);
    // What the check proposes is tried first, and is enough if it works.
    const std::vector<std::string> named = NumbersIn(problems_[index].help);
    const auto proposed = named.empty() ? candidates.end() : std::find(candidates.begin(), candidates.end(), named[0]);
    const bool proposes = proposed != candidates.end() && !IsGridSize(path);
    if (proposes) std::rotate(candidates.begin(), proposed, proposed + 1);
    const size_t most = IsGridSize(path) ? 12 : 2;
    for (const Reach reach : {Reach::kAll, Reach::kShows, Reach::kOne}) {
      if (reach == Reach::kOne && all.size() == 1) break;
      std::vector<Identity> ended = reach == Reach::kOne ? std::vector<Identity>{all[0]} : all;
      const auto own = static_cast<int>(ended.size());
      ended.insert(ended.end(), suggested.begin(), suggested.end());
      for (const std::string& value : candidates) {
        if (fix.values.size() == most || (value.empty() && !fix.values.empty())) break;
        if (proposes && !fix.values.empty() && fix.values[0] == named[0]) break;
        if (Ends(std::vector<Edit>{{path, value}}, ended, false, reach == Reach::kShows ? path : ""))
          fix.values.push_back(value);
      }
      if (fix.values.empty()) continue;
      fix.reach = reach;
      fix.ended = own;
      fix.shared = !suggested.empty();
      break;
    }
    if (fix.values.empty()) return;
    const auto told = std::find_if(fix.values.begin(), fix.values.end(),
                                   [&](const std::string& value) { return !named.empty() && named[0] == value; });
    fix.told = told != fix.values.end();
    if (fix.told) std::rotate(fix.values.begin(), told, told + 1);
    fix.distance = DistanceOf(fix.values[0], fix.place.node->text);
  }

  static double DistanceOf(const std::string& is, const std::string& was) {
    const auto read = [](const std::string& text) {
      double number = 0;
      return ReadNumber(ScalarNode(text), &number, nullptr) ? number : 0;
    };
    return read(is) > 0 && read(was) > 0 ? std::fabs(std::log(read(is) / read(was))) : 1;
  }

  // Weights that exist have the sizes that they have: no size of a model can be another one.
  bool BeginsWithWeights() const {
    const auto is_file = [](const YamlNode* from) {
      return from != nullptr && from->is_scalar() && from->text != "drawn";
    };
    if (is_file(NodeAt(tree_, "initialize.from"))) return true;
    const YamlNode* sources = NodeAt(tree_, "initialize.sources");
    return sources != nullptr && std::any_of(sources->items.begin(), sources->items.end(),
                                             [&](const YamlNode& source) { return is_file(NodeAt(source, "from")); });
  }

  // Values first with which the suggestions for earlier problems can be followed, too; and the places that have some.
  void PreferWhatFits(std::vector<Fix>& places) {
    if (chosen_.empty()) return;
    const auto fits = [&](const Fix& fix, const std::string& value) {
      std::vector<Edit> edits = chosen_;
      edits.push_back({fix.place.path, value});
      return Ends(edits, ended_);
    };
    for (Fix& fix : places) {
      const std::string first = fix.values[0];
      std::stable_partition(fix.values.begin(), fix.values.end(),
                            [&](const std::string& value) { return fits(fix, value); });
      fix.told = fix.told && fix.values[0] == first;
    }
    std::stable_partition(places.begin(), places.end(), [&](const Fix& fix) { return fits(fix, fix.values[0]); });
  }

  void AdviseValue(size_t index) {
    using enum DiagnosticKind;
    Diagnostic& problem = problems_[index];
    std::vector<Fix> places = PlacesOf(problem);
    std::stable_sort(places.begin(), places.end(), [](const Fix& a, const Fix& b) { return a.blame < b.blame; });
    const std::vector<Fix> all = places;
    // Which value of a range is right is not to be guessed: the help has the range. Of sizes of a grid all are tried.
    if (problem.kind == kOutOfRange) std::erase_if(places, [](const Fix& fix) { return !IsGridSize(fix.place.path); });
    for (Fix& fix : places) FindValues(index, all, fix);
    const bool divides = problem.kind == kLayoutDoesNotDivide || problem.kind == kGridDoesNotFit ||
                         problem.kind == kExpertGridDoesNotFit;
    std::erase_if(places, [&](const Fix& fix) {
      return fix.values.empty() || (divides && BeginsWithWeights() && fix.place.path.starts_with("models."));
    });
    if (places.empty()) return;
    std::stable_sort(places.begin(), places.end(), [&](const Fix& a, const Fix& b) {
      if (a.blame != b.blame || !divides) return std::pair(a.blame, a.reach) < std::pair(b.blame, b.reach);
      const int near_a = a.Class() == 0 ? 0 : 1, near_b = b.Class() == 0 ? 0 : 1;
      return std::tuple(near_a, -a.ended, a.reach, a.Class(), a.distance) <
             std::tuple(near_b, -b.ended, b.reach, b.Class(), b.distance);
    });
    PreferWhatFits(places);
    const Identity identity = IdentityOf(problem);
    // What the check itself proposes says why, too.
    const auto told = std::find_if(places.begin(), places.end(), [](const Fix& fix) { return fix.told; });
    const bool keeps =
        !divides && told != places.end() && told->blame == places[0].blame && told->reach == places[0].reach;
    const Fix best = keeps ? *told : places[0];
    Fold(index, best);
    if (best.reach != Reach::kShows) problem.edits = {{best.place.path, best.values[0]}};
    chosen_.insert(chosen_.end(), problem.edits.begin(), problem.edits.end());
    if (!problem.edits.empty()) ended_.push_back(identity);
    if (keeps && best.ended == 1) return;
    if (problem.kind == kWarmupTooLong && !best.values[0].empty()) return;  // its help has the ranges
    // Without the key all is well, but what the check asks for may be meant.
    if (best.values[0].empty() && !problem.help.empty()) {
      const bool says = problem.help.find("remove") != std::string::npos || problem.help.find("leave ") == 0;
      if (!says) absl::StrAppend(&problem.help, "; or ", HelpOf(best, false));
      return;
    }
    PointAt(best, problem);
    problem.help = HelpOf(best, /*here=*/true);
    if (places.size() > 1 && !best.shared && places[1].blame < 2 && places[1].place.path != best.place.path &&
        places[1].reach <= best.reach)
      absl::StrAppend(&problem.help, "; or ", HelpOf(places[1], false));
    if (problem.kind == kSampleTooLong) absl::StrAppend(&problem.help, SmallerImages(problem));
  }

  // Of a default and of grids no values are tried, but they are a way, too.
  static std::string SmallerImages(const Diagnostic& problem) {
    const auto says = [&](std::string_view key) { return problem.help.find(key) != std::string::npos; };
    if (problem.message.starts_with("a square")) return "";  // all are as large as the encoder has them
    if (problem.message.starts_with("an image"))
      return says("max_patches") ? "" : "; or smaller images, by data.max_patches";
    return says("max_images") ? "; or smaller images, by data.image_grids"
                              : "; or fewer or smaller images, by data.max_images and data.image_grids";
  }

  // Problems that the change ends with this one become notes of it.
  void Fold(size_t index, const Fix& best) {
    std::set<Identity> after;
    for (const Diagnostic& problem : trials_.ProblemsWith(std::vector<Edit>{{best.place.path, best.values[0]}}))
      after.insert(IdentityOf(problem));
    std::vector<std::string> sizes;
    for (size_t i : ProblemsOf(best.place.path, index)) {
      const Diagnostic& other = problems_[i];
      if (i == index || after.contains(IdentityOf(other))) continue;
      folded_[i] = true;
      if (other.kind == DiagnosticKind::kLayoutDoesNotDivide && other.notes.size() == 1) {
        const std::string& size = other.notes[0].message;  // "mamba.heads is 64 here"
        const size_t is = size.find(" is ");
        sizes.push_back(size.substr(0, is) + size.substr(is + 3, size.rfind(" here") - is - 3));
      } else {
        problems_[index].notes.push_back({{}, absl::StrCat("with it goes: ", other.message)});
      }
    }
    if (sizes.empty()) return;
    const std::string word = best.place.path.substr(best.place.path.rfind('.') + 1);
    problems_[index].notes.push_back(
        {{},
         absl::StrCat("nor does ", word, " = ", FlowText(*best.place.node), " fit to ", absl::StrJoin(sizes, ", "))});
  }

  // Tells the problem at the value that is to be changed.
  void PointAt(const Fix& best, Diagnostic& problem) const {
    const auto same = [](const Location& a, const Location& b) {
      return a.line == b.line && a.column == b.column && a.file && b.file && *a.file == *b.file;
    };
    if (same(problem.where, best.where)) return;
    std::erase_if(problem.notes,
                  [&](const Note& note) { return same(note.where, best.where) && note.message.ends_with(" here"); });
    const std::optional<TreePlace> old = PlaceAt(tree_, problem.where);
    if (old && !old->node->is_map()) {
      const std::string word = old->path.substr(old->path.rfind('.') + 1);
      problem.notes.insert(problem.notes.begin(),
                           {problem.where, absl::StrCat(word, " is ", FlowText(*old->node), " here")});
    }
    problem.where = best.where;
  }

  // "use tp: 2; tp can be 1 or 2". `here`: the problem points at this value.
  static std::string HelpOf(const Fix& fix, bool here) {
    const std::string& path = fix.place.path;
    const std::string word = path.substr(path.rfind('.') + 1);
    const bool by_override = fix.blame == 0 && path.find('[') == std::string::npos;  // an override leads into no list
    if (fix.values[0].empty()) return absl::StrCat("remove ", here && !by_override ? word : path);
    std::string help =
        absl::StrCat("use ", here && !by_override ? word : path, by_override ? "=" : ": ", fix.values[0]);
    if (fix.values.size() < 2 || !here) return help;
    if (!IsGridSize(path)) return absl::StrCat(help, ", or ", fix.values[1]);
    std::vector<int> sorted;
    for (const std::string& value : fix.values) sorted.push_back(std::stoi(value));
    std::sort(sorted.begin(), sorted.end());
    const int last = sorted.back();
    sorted.pop_back();
    return absl::StrCat(help, "; ", word, " can be ", absl::StrJoin(sorted, ", "), " or ", last);
  }

  // A plan is made with each of several changes, until one fits.
  void AdviseMemory(Diagnostic& problem) {
    const std::optional<TreePlace> place = PlaceAt(tree_, problem.where);
    if (!place || !place->path.starts_with("modules.")) return;
    const std::string module = place->path.substr(0, place->path.find('.', 8));
    const bool state =
        problem.help.find("recompute") == std::string::npos && problem.help.find("more ranks, or") != std::string::npos;
    for (const std::vector<Edit>& edits : MemoryCandidates(tree_, module, state)) {
      if (!Ends(edits, {IdentityOf(problem)}, /*errors_only=*/true)) continue;
      std::vector<std::string> texts;
      for (const Edit& edit : edits) texts.push_back(absl::StrCat(edit.path, ": ", edit.value));
      problem.edits = edits;
      problem.help = absl::StrCat("use ", absl::StrJoin(texts, " and "), ", with which it fits");
      return;
    }
  }

  const YamlNode& tree_;
  std::vector<Diagnostic> problems_;
  Trials trials_;
  std::vector<bool> folded_;
  std::set<Identity> before_;
  std::vector<Edit> chosen_;     // the suggestions so far
  std::vector<Identity> ended_;  // and the problems that they end
};

// What is not tried is not proposed.
std::vector<Diagnostic> WithoutEdits(std::vector<Diagnostic> problems) {
  for (Diagnostic& problem : problems) problem.edits.clear();
  return problems;
}

// Whether the checks find an error, or only the making of the plan has one.
bool ChecksFail(const Recipe& recipe, KnownFiles& files) {
  Diagnostics problems;
  CheckRecipe(recipe, files, problems);
  return problems.has_errors();
}

}  // namespace

std::optional<Plan> CompileWithAdvice(const Recipe& recipe, Diagnostics& problems, StepTime* time) {
  double part = 0;
  KnownFiles files(recipe);
  std::optional<Plan> plan = CompileRecipe(recipe, files, problems, time, &part);
  if (!recipe.tree || problems.empty()) return plan;
  if (problems.as_found().size() > kMostAdvised) {
    problems.Replace(WithoutEdits(problems.as_found()));
    return plan;
  }
  std::optional<double> whole;
  if (problems.has_errors() && part > 0) {
    whole = part;  // the checks have found no error: they come before a plan is made
  } else if (problems.has_errors() && recipe.damaged.empty() && !ChecksFail(recipe, files)) {
    whole = kLongestTried / kMostWholeTrials;  // refused while it was made: so may those of trials be
  }
  problems.Replace(Advisor(*recipe.tree, files, problems.as_found(), whole).Advise());
  return plan;
}

}  // namespace planwright
