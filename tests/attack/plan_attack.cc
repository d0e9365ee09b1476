// plan_attack: damages valid plans at random and asks `verify`, as `plan validate` does, whether it accepts them. It
// counts by kind of damage, and lists what was accepted. run_accepted then trains those and compares.
//
//   plan_attack [--seed N] [--count N] [--out DIR] [--layout NAME [--case N]]
//
// DIR gets LAYOUT.json, the undamaged plan; LAYOUT-CASE.json, an accepted plan that differs from it; and accepted.tsv:
// a line for each accepted plan with its class, which follows from the fields that differ (plan_fields.h):
//
//   free     what an author asks for, with the curve: another plan, and an honest one
//   asked    such fields, and others that may follow from them
//   keeps    what an author asks for, and the curve does not depend on it
//   chosen   what the planner chooses
//   order    none, but instructions stand in another order
//   follows  fields that have one right value
//
// All but `free` and `asked` must train what the undamaged plan trains. A case is drawn anew from (seed, layout, case),
// so each can be repeated alone (--case N). A plan on which the rules crash, or for which they need ten minutes, is
// listed as `crash`, and the exit status is then 1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"
#include "tests/attack/damages.h"
#include "tests/attack/layouts.h"
#include "tests/attack/lists.h"
#include "tests/support/folders.h"

namespace planwright::attack {
namespace {

namespace fs = std::filesystem;

struct Options {
  uint64_t seed = 1;
  size_t count = 20000;
  std::string out = "attack", layout;
  std::optional<size_t> only;  // this case alone
};

std::optional<Plan> PlanOf(const Target& target, const std::vector<std::string>& more, std::string& why) {
  Diagnostics problems;
  std::vector<std::string> overrides = target.overrides;
  overrides.insert(overrides.end(), more.begin(), more.end());
  const std::optional<Recipe> recipe = ReadRecipe(InSource(target.recipe), overrides, problems);
  std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
  SourceTexts texts;
  why = RenderText(problems.sorted(), texts, false);
  return plan;
}

// What happened to the cases of one layout. Shared with the process that works on it, which may crash.
struct Progress {
  size_t next = 0, drawn = 0, unreadable = 0, refused = 0, same = 0, accepted = 0;
};

// With the instructions of each list in one order, whatever their order is.
Plan InOneOrder(Plan plan) {
  const auto key = [](const Instruction& x) {
    std::string text = Words(x);
    for (const Output& output : x.outputs) absl::StrAppend(&text, " -> ", OutputText(output));
    return absl::StrCat(text, absl::StrJoin(x.parameters, " "), absl::StrJoin(x.gradients, " "));
  };
  for (const ProgramList& each : ListsOf(plan))
    std::stable_sort(each.list->begin(), each.list->end(),
                     [&](const Instruction& a, const Instruction& b) { return key(a) < key(b); });
  return plan;
}

// The class of the fields in which two plans differ, and their kinds.
std::pair<std::string, std::string> FieldsOf(Plan plan, Plan damaged) {
  const Spots a = SpotsOf(plan), b = SpotsOf(damaged);
  if (a.spots.size() != b.spots.size()) return {"follows", "another number of fields"};
  bool changes = false, chosen = false, follows = false;
  std::set<std::string> kinds;
  for (size_t i = 0; i < a.spots.size(); ++i) {
    if (a.spots[i].kind == b.spots[i].kind && ValueText(a.spots[i].value) == ValueText(b.spots[i].value)) continue;
    const FieldClass of = a.spots[i].traits.field_class;
    follows |= of == FieldClass::kFollows || a.spots[i].kind != b.spots[i].kind;
    chosen |= of == FieldClass::kChosen;
    changes |= of == FieldClass::kFree && a.spots[i].traits.curve != kKeeps;
    if (a.spots[i].key == std::string_view("digest")) continue;
    if (kinds.size() < 8) kinds.insert(KindName(a.spots[i].kind));
  }
  return {follows && changes ? "asked"
          : follows          ? "follows"
          : changes          ? "free"
          : chosen           ? "chosen"
                             : "keeps",
          absl::StrJoin(kinds, " ")};
}

std::pair<std::string, std::string> DifferenceOf(const Plan& plan, const Plan& damaged) {
  auto difference = FieldsOf(plan, damaged);
  if (difference.first == "follows" && FieldsOf(InOneOrder(plan), InOneOrder(damaged)).first == "keeps")
    difference.first = "order";
  return difference;
}

class Attack {
 public:
  Attack(const Options& options, size_t layout, const Target& target, Plan plan, std::vector<Plan> donors)
      : options_(options), layout_(layout), target_(target), plan_(std::move(plan)), donors_(std::move(donors)),
        accepted_("accepted.tsv", std::ios::app), counts_("counts.tsv", std::ios::app) {}

  void Case(size_t number, Progress& progress) {
    Random random(options_.seed * 1'000'003 + layout_ * 100'000'007 + number);
    Plan damaged = plan_;
    std::vector<std::string> kinds, words;
    const size_t damages = random.Chance(80) ? 1 : 2;
    for (int tries = 0; kinds.size() < damages && tries < 50; ++tries) {
      const std::optional<Damage> damage = One(damaged, random);
      if (!damage) continue;
      kinds.push_back(damage->kind);
      words.push_back(damage->words);
    }
    ++progress.drawn;
    const std::string kind = absl::StrJoin(kinds, " + "), said = absl::StrJoin(words, "; and ");
    damaged.digest = PlanDigest(damaged);
    if (damaged.digest == plan_.digest && WritePlan(damaged) == WritePlan(plan_))
      return Count(kind, "same", progress.same);
    if (options_.only) {
      std::cerr << target_.name << " case " << number << ": " << said << std::endl;
      std::ofstream(absl::StrCat(target_.name, "-", number, ".json")) << WritePlan(damaged);
    }
    absl::StatusOr<Plan> read = ReadPlan(WritePlan(damaged));
    if (!read.ok()) {
      if (options_.only) std::cerr << read.status().message() << std::endl;
      return Count(kind, "unreadable", progress.unreadable);
    }
    const std::vector<Violation> broken = VerifyPlan(*read);
    if (!broken.empty()) {
      if (options_.only) std::cerr << broken[0].rule << ": " << broken[0].message << std::endl;
      return Count(kind, "refused", progress.refused);
    }
    const auto [of, fields] = DifferenceOf(plan_, *read);
    std::ofstream(absl::StrCat(target_.name, "-", number, ".json")) << WritePlan(*read);
    accepted_ << target_.name << "\t" << number << "\t" << of << "\t" << fields << "\t" << said << std::endl;
    Count(kind, "accepted", progress.accepted);
  }

  void Crash(size_t number, int status) {
    accepted_ << target_.name << "\t" << number << "\tcrash\tsignal " << status << "\t" << std::endl;
  }

 private:
  std::optional<Damage> One(Plan& plan, Random& random) {
    const size_t how = random.Below(100);
    if (how < 40) return DamageField(plan, random);
    if (how < 75) return DamageInstructions(plan, random);
    if (how < 90) return ExchangeFields(plan, random);
    return donors_.empty() ? std::nullopt : Splice(plan, donors_, random);
  }
  void Count(const std::string& kind, const char* result, size_t& counter) {
    ++counter;
    counts_ << target_.name << "\t" << result << "\t" << kind
            << std::endl;  // flushed: the process may crash in the next case
  }

  const Options& options_;
  const size_t layout_;
  const Target& target_;
  Plan plan_;
  std::vector<Plan> donors_;
  std::ofstream accepted_, counts_;
};

// By kind of damage, and by field of the plan.
void PrintCounts() {
  std::map<std::string, std::map<std::string, int>> counts;
  std::ifstream file("counts.tsv");
  for (std::string layout, result, kind;
       std::getline(file, layout, '\t') && std::getline(file, result, '\t') && std::getline(file, kind);) {
    if (kind.find(" + ") != std::string::npos) kind = "two damages";
    if (kind.starts_with("field ")) kind = kind.substr(0, kind.find_first_of(".,[", 6));
    ++counts[kind][result];
  }
  for (auto& [kind, of] : counts)
    std::cout << kind << ": " << of["refused"] + of["unreadable"] << " refused, " << of["accepted"] << " accepted, "
              << of["same"] << " undamaged\n";
}

int Run(const Options& options) {
  fs::create_directories(options.out);
  if (!options.only) fs::remove(options.out + "/accepted.tsv"), fs::remove(options.out + "/counts.tsv");
  fs::current_path(options.out);  // the folder in which plans look for weights and samples
  std::vector<Target> targets = Targets();
  const size_t each = options.count / targets.size() + 1;
  bool crashed = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target& target = targets[i];
    if (!options.layout.empty() && options.layout != target.name) continue;
    std::string why;
    std::optional<Plan> plan = PlanOf(target, {}, why);
    if (!plan) {
      std::cerr << target.name << " does not compile:\n" << why;
      return 2;
    }
    std::ofstream(absl::StrCat(target.name, ".json")) << WritePlan(*plan);
    std::vector<Plan> donors;
    for (const auto& more : DonorOverrides())
      if (std::optional<Plan> donor = PlanOf(target, more, why)) donors.push_back(*std::move(donor));
    auto* progress =
        new (mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Progress;
    const size_t end = options.only ? *options.only + 1 : each;
    progress->next = options.only.value_or(0);
    // The process that asks the rules may crash or be ended after a minute on one plan: both are found, and it goes on.
    while (progress->next < end) {
      const pid_t pid = fork();
      if (pid == 0) {
        Attack attack(options, i, target, *plan, donors);
        while (progress->next < end) {
          alarm(600);
          attack.Case(progress->next, *progress);
          ++progress->next;
        }
        _exit(0);
      }
      int status = 0;
      waitpid(pid, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
      Attack(options, i, target, {}, {}).Crash(progress->next, WIFSIGNALED(status) ? WTERMSIG(status) : -1);
      crashed = true;
      ++progress->next;
    }
    std::cout << target.name << ": " << progress->drawn << " plans, " << progress->same << " undamaged, "
              << progress->unreadable << " not read, " << progress->refused << " refused, " << progress->accepted
              << " accepted (" << donors.size() << " donors)" << std::endl;
    munmap(progress, sizeof(Progress));
  }
  PrintCounts();
  return crashed ? 1 : 0;
}

}  // namespace
}  // namespace planwright::attack

int main(int argc, char** argv) {
  planwright::attack::Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (name == "--seed" && number) {
      options.seed = std::stoull(value);
    } else if (name == "--count" && number) {
      options.count = std::stoull(value);
    } else if (name == "--case" && number) {
      options.only = std::stoull(value);
    } else if (name == "--out" && !value.empty()) {
      options.out = value;
    } else if (name == "--layout" && !value.empty()) {
      options.layout = value;
    } else {
      std::cerr << "usage: plan_attack [--seed N] [--count N] [--out DIR] [--layout NAME [--case N]]\n";
      return 2;
    }
  }
  return planwright::attack::Run(options);
}
