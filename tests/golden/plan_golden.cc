#include "tests/golden/plan_golden.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/text/bug.h"
#include "planner/plan/plan_json.h"
#include "tests/support/canonical_plan.h"

namespace planwright::testing {
namespace {

using std::string;
using std::string_view;

constexpr size_t kDigits = 16, kKeyDigits = 8;
constexpr size_t kNamesShown = 4, kCharactersShown = 400;
constexpr string_view kPlans = "\n# plan, digest, canonical digest\n";
constexpr string_view kPartsOfPlans = "\n# plan, keys of its parts\n";
constexpr string_view kParts = "\n# key of a part, the part, codes of its lines if it is a block\n";

string First(string_view digits, size_t count) { return string(digits.substr(0, count)); }

// The lines of a plan's file that `whole` has and an empty plan has not.
std::vector<string> LinesOf(const Plan& whole) {
  static const std::vector<string> empty = absl::StrSplit(WritePlan(Plan()), '\n');
  std::vector<string> lines = absl::StrSplit(WritePlan(whole), '\n');
  size_t same = 0;
  while (same < empty.size() && lines[same] == empty[same]) ++same;
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(same));
  for (size_t i = empty.size(); i > same && lines.back() == empty[i - 1]; --i) lines.pop_back();
  return lines;
}

string CodesOf(const std::vector<string>& lines) {
  string codes;
  for (const string& line : lines) codes += First(Sha256Hex(line), kCodeDigits);
  return codes;
}

// The first line of `now` whose code is another one; the number of lines if there is none.
size_t FirstOtherLine(const GoldenPart& golden, const GoldenPart& now) {
  size_t line = 0;
  while (line < now.lines.size() &&
         golden.codes.compare(line * kCodeDigits, kCodeDigits, now.codes, line * kCodeDigits, kCodeDigits) == 0)
    ++line;
  return line;
}

// What is found in a plan. Plans with the same title are listed together, with the example of the first.
struct Difference {
  string title, example;
};

// Where a part differs from the golden one of the same name.
Difference Where(const GoldenPart& golden, const GoldenPart& now) {
  if (now.codes.empty()) return {now.name + " differs", ""};
  const size_t at = FirstOtherLine(golden, now), before = golden.codes.size() / kCodeDigits;
  const string line = at < now.lines.size() ? now.lines[at] : "(the end)";
  // Up to the first comma it says the operation, or the field of the block.
  const string beginning(line.begin() + static_cast<std::ptrdiff_t>(line.find_first_not_of(' ')),
                         std::find(line.begin(), line.end(), ','));
  return {absl::StrCat(now.name, " differs from ", beginning.substr(0, beginning.find(": [")), " on"),
          absl::StrCat("from line ", at + 1, " of ", now.lines.size(), ", where it had ", before, " lines:\n",
                       line.substr(0, kCharactersShown))};
}

// What differs in the parts of one plan.
std::vector<Difference> PartsThatDiffer(const PlanGolden& golden, const GoldenPlan& before, const PlanGolden& now,
                                        const GoldenPlan& after) {
  std::map<string, const GoldenPart*> old;
  for (const string& key : before.parts) old.emplace(golden.parts.at(key).name, &golden.parts.at(key));
  std::vector<Difference> found;
  for (const string& key : after.parts) {
    const GoldenPart& part = now.parts.at(key);
    const auto same_name = old.extract(part.name);
    if (same_name.empty()) {
      found.push_back({part.name + " is new", ""});
    } else if (std::find(before.parts.begin(), before.parts.end(), key) == before.parts.end()) {
      found.push_back(Where(*same_name.mapped(), part));
    }
  }
  for (const auto& [name, part] : old) found.push_back({name + " is gone", ""});
  if (found.empty()) found.push_back({"the order of the parts differs", ""});
  return found;
}

// The plans in which something is found, and an example from the first.
struct Found {
  std::vector<string> plans;
  string example;
};

string Listed(const Found& found) {
  const size_t count = found.plans.size(), shown = std::min(count, kNamesShown);
  string text =
      absl::StrCat("  in ", count, count == 1 ? " plan: " : " plans: ",
                   absl::StrJoin(found.plans.begin(), found.plans.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                   shown < count ? ", ..." : "", "\n");
  if (!found.example.empty()) absl::StrAppend(&text, "  in ", found.plans.front(), " ", found.example, "\n");
  return text;
}

// The words of the lines of one section of the file.
std::vector<std::vector<string>> Section(string_view text, string_view title) {
  const size_t at = text.find(title);
  Require(at != text.npos, "the golden file lacks a section");
  text.remove_prefix(at + title.size());
  std::istringstream section{string(text.substr(0, text.find("\n\n")))};
  std::vector<std::vector<string>> lines;
  for (string line; std::getline(section, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<string>(words), std::istream_iterator<string>());
  }
  return lines;
}

}  // namespace

void PlanGolden::Add(const string& name, const Plan& plan) {
  Require(!plans.contains(name), absl::StrCat("two plans have the name ", name));
  Plan rest = CanonicalPlan(plan);
  GoldenPlan& added = plans[name];
  added.digest = First(PlanDigest(plan), kDigits);
  added.canonical = First(PlanDigest(rest), kDigits);
  const auto add_part = [&](string part_name, std::vector<string> lines, bool with_codes) {
    const string key = First(Sha256Hex(absl::StrJoin(lines, "\n")), kKeyDigits);
    added.parts.push_back(key);
    if (const auto [part, is_new] = parts.try_emplace(key); is_new) {
      string codes = with_codes ? CodesOf(lines) : "";
      part->second = {std::move(part_name), std::move(codes), std::move(lines)};
    } else {
      Require(part->second.name == part_name && part->second.lines == lines,
              "two parts have one key: take more digits");
    }
  };
  for (Module& module : std::exchange(rest.modules, {})) {
    Plan alone;
    module.origin = -1;
    alone.modules = {std::move(module)};
    add_part("module " + alone.modules[0].name, LinesOf(alone), false);
  }
  for (Block& block : std::exchange(rest.blocks, {})) {
    Plan alone;
    alone.blocks = {std::move(block)};
    add_part("block " + alone.blocks[0].name, LinesOf(alone), true);
  }
  for (Role& role : std::exchange(rest.roles, {})) {
    Plan alone;
    alone.roles = {std::move(role)};
    add_part("role " + alone.roles[0].name, LinesOf(alone), false);
  }
  add_part("rest of the plan", {PlanDigest(rest)}, false);
}

string WriteGolden(const PlanGolden& golden) {
  size_t width = 0;
  for (const auto& [name, plan] : golden.plans) width = std::max(width, name.size());
  string text =
      "# Digests of plans: what the planner makes of the shipped recipes and of small layouts (CONTRIBUTING.md, "
      "Tests).\n"
      "# Written by plan_golden_test with UPDATE_GOLDENS=1. Without, it says what differs.\n";
  text += kPlans;
  for (const auto& [name, plan] : golden.plans)
    absl::StrAppend(&text, name, string(width - name.size(), ' '), "  ", plan.digest, "  ", plan.canonical, "\n");
  text += kPartsOfPlans;
  for (const auto& [name, plan] : golden.plans) absl::StrAppend(&text, name, " ", absl::StrJoin(plan.parts, " "), "\n");
  text += kParts;
  std::vector<string> lines;
  for (const auto& [key, part] : golden.parts) {
    // One word each, so that a reader can split a line at its spaces.
    string name = part.name;
    std::replace(name.begin(), name.end(), ' ', ':');
    lines.push_back(absl::StrCat(name, " ", key, part.codes.empty() ? "" : " ", part.codes, "\n"));
  }
  std::sort(lines.begin(), lines.end());
  return text + absl::StrJoin(lines, "");
}

PlanGolden ReadGolden(string_view text) {
  PlanGolden golden;
  for (const std::vector<string>& line : Section(text, kPlans)) {
    Require(line.size() == 3, "a golden plan has a name and two digests");
    golden.plans[line[0]] = {line[1], line[2], {}};
  }
  for (const std::vector<string>& line : Section(text, kPartsOfPlans))
    golden.plans.at(line[0]).parts.assign(line.begin() + 1, line.end());
  for (const std::vector<string>& line : Section(text, kParts)) {
    Require(line.size() == 2 || line.size() == 3, "a golden part has a name, a key and perhaps codes");
    string name = line[0];
    std::replace(name.begin(), name.end(), ':', ' ');
    golden.parts[line[1]] = {name, line.size() == 3 ? line[2] : "", {}};
  }
  return golden;
}

string Differences(const PlanGolden& golden, const PlanGolden& now) {
  std::map<string, Found> found;
  const auto add = [&](const Difference& difference, const string& plan) {
    Found& of_title = found.try_emplace(difference.title, Found{{}, difference.example}).first->second;
    of_title.plans.push_back(plan);
  };
  for (const auto& [name, plan] : golden.plans) {
    if (!now.plans.contains(name)) add({"plans are gone", ""}, name);
  }
  for (const auto& [name, after] : now.plans) {
    const auto before = golden.plans.find(name);
    if (before == golden.plans.end()) {
      add({"plans are new", ""}, name);
    } else if (before->second.canonical != after.canonical) {
      for (const Difference& difference : PartsThatDiffer(golden, before->second, now, after)) add(difference, name);
    } else if (before->second.digest != after.digest) {
      add({"only the digest differs, not the canonical one: the plan says the same in other words", ""}, name);
    } else if (before->second.parts != after.parts) {
      add({"the digests are equal, the parts are not: the golden file is damaged", ""}, name);
    }
  }
  string text;
  for (const auto& [title, of_title] : found) absl::StrAppend(&text, title, "\n", Listed(of_title));
  return text;
}

}  // namespace planwright::testing
