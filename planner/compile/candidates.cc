#include "planner/compile/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"

namespace planwright {

std::vector<std::string> NumbersIn(const std::string& text) {
  std::vector<std::string> numbers;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() &&
           (absl::ascii_isdigit(text[end]) ||
            (text[end] == '.' && end > at && end + 1 < text.size() && absl::ascii_isdigit(text[end + 1]))))
      ++end;
    const bool word = at > 0 && (absl::ascii_isalnum(text[at - 1]) || text[at - 1] == '_');
    if (end > at && !word && end - at < 18) numbers.push_back(text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return numbers;
}

namespace {

constexpr size_t kMostCandidates = 64;
constexpr std::array kGridSizes = {"tp", "cp", "pp", "ep", "expert_tp"};

std::optional<int64_t> IntegerAt(const YamlNode& tree, const std::string& path) {
  const YamlNode* node = NodeAt(tree, path);
  int64_t value = 0;
  return node != nullptr && ReadInteger(*node, &value, nullptr) ? std::optional(value) : std::nullopt;
}

std::string LastWord(const std::string& path) { return path.substr(path.find_last_of('.') + 1); }

// "modules.language" of "modules.language.parallel.tp"; empty outside of modules.
std::string ModuleOf(const std::string& path) {
  return path.starts_with("modules.") ? path.substr(0, path.find('.', 8)) : "";
}

double Distance(double a, double b) { return std::fabs(std::log((a + 0.5) / (b + 0.5))); }

void AddAround(int64_t value, int64_t parts, std::set<int64_t>& values) {
  if (parts < 1 || parts > int64_t{1} << 40) return;
  values.insert(value / parts * parts);
  values.insert((value + parts - 1) / parts * parts);
}

// Where other modules end, and what is left of the cluster behind the first rank.
void AddPlacements(const YamlNode& tree, const std::string& path, std::set<int64_t>& values) {
  const std::string own = ModuleOf(path);
  const int64_t gpus =
      IntegerAt(tree, "cluster.nodes").value_or(1) * IntegerAt(tree, "cluster.gpus_per_node").value_or(8);
  if (const YamlNode* modules = NodeAt(tree, "modules")) {
    for (const YamlEntry& module : modules->entries) {
      const std::string other = absl::StrCat("modules.", module.key);
      const auto first = IntegerAt(tree, other + ".placement.first_rank"),
                 ranks = IntegerAt(tree, other + ".placement.ranks");
      if (other == own || !first || !ranks) continue;
      values.insert(path.ends_with("first_rank") ? *first + *ranks : *ranks);
      if (path.ends_with("first_rank")) values.insert(*first);
    }
  }
  const auto first = IntegerAt(tree, own + ".placement.first_rank");
  if (path.ends_with("ranks") && first) values.insert(gpus - *first);
  if (path.ends_with("first_rank")) values.insert(0);
}

std::set<int64_t> IntegersNear(const YamlNode& tree, const TreePlace& place, int64_t value,
                               const std::vector<TreePlace>& others, const Diagnostic& problem) {
  std::set<int64_t> values;
  if (IsGridSize(place.path)) {
    const int64_t ranks = IntegerAt(tree, ModuleOf(place.path) + ".placement.ranks").value_or(64);
    for (int64_t size = 1; size <= std::min<int64_t>(ranks, 256); ++size) {
      if (ranks % size == 0) values.insert(size);
    }
    return values;
  }
  for (const TreePlace& other : others) {
    int64_t number = 0;
    if (!ReadInteger(*other.node, &number, nullptr)) continue;
    values.insert({number - 1, number, number + 1});
    AddAround(value, number, values);
  }
  for (const std::string& number : NumbersIn(absl::StrCat(problem.help, " ", problem.message))) {
    if (number.find('.') == std::string::npos) values.insert(std::atoll(number.c_str()));
  }
  for (int64_t parts = 2; parts <= 1024; parts *= 2) AddAround(value, parts, values);
  for (int64_t step = 1; step <= 8; ++step) values.insert({value - step, value + step});
  if (LastWord(place.path) == "first_rank" || LastWord(place.path) == "ranks") AddPlacements(tree, place.path, values);
  return values;
}

// A list of numbers, such as a grid of patches: each rounded, or cut to a number of the help.
std::vector<std::string> ListsNear(const YamlNode& list, const Diagnostic& problem) {
  std::vector<int64_t> numbers;
  for (const YamlNode& item : list.items) {
    int64_t number = 0;
    if (!ReadInteger(item, &number, nullptr)) return {};
    numbers.push_back(number);
  }
  std::set<std::pair<double, std::string>> lists;  // nearest first
  const auto add = [&](auto change) {
    std::vector<int64_t> changed = numbers;
    for (int64_t& number : changed) number = change(number);
    const std::string text = absl::StrCat("[", absl::StrJoin(changed, ", "), "]");
    double distance = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      distance += Distance(static_cast<double>(changed[i]), static_cast<double>(numbers[i]));
    if (changed != numbers) lists.insert({distance, text});
  };
  for (int64_t parts = 2; parts <= 64; ++parts) {
    add([&](int64_t number) { return std::max<int64_t>(number / parts, 1) * parts; });
    add([&](int64_t number) { return (number + parts - 1) / parts * parts; });
  }
  for (const std::string& most : NumbersIn(problem.help))
    add([&](int64_t number) { return std::min<int64_t>(number, std::max(1LL, std::atoll(most.c_str()))); });
  std::vector<std::string> texts;
  for (const auto& [distance, text] : lists) texts.push_back(text);
  return texts;
}

}  // namespace

bool IsGridSize(const std::string& path) {
  return !ModuleOf(path).empty() && std::find(kGridSizes.begin(), kGridSizes.end(), LastWord(path)) != kGridSizes.end();
}

std::vector<std::string> CandidatesOf(const YamlNode& tree, const TreePlace& place,
                                      const std::vector<TreePlace>& others, const Diagnostic& problem) {
  if (place.node->is_sequence()) return ListsNear(*place.node, problem);
  std::vector<std::string> candidates;
  int64_t integer = 0;
  double number = 0;
  if (ReadInteger(*place.node, &integer, nullptr)) {
    std::set<int64_t> values = IntegersNear(tree, place, integer, others, problem);
    values.erase(integer);
    std::vector<int64_t> near;
    for (int64_t value : values) {
      if (value >= 0) near.push_back(value);
    }
    const auto distance = [&](int64_t value) {
      return Distance(static_cast<double>(value), static_cast<double>(integer));
    };
    std::stable_sort(near.begin(), near.end(), [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
    if (near.size() > kMostCandidates) near.resize(kMostCandidates);
    for (int64_t value : near) candidates.push_back(absl::StrCat(value));
  } else if (ReadNumber(*place.node, &number, nullptr)) {
    for (const TreePlace& other : others) {
      if (ReadNumber(*other.node, &number, nullptr)) candidates.push_back(FlowText(*other.node));
    }
    for (const std::string& text : NumbersIn(problem.help)) candidates.push_back(text);
  }
  return candidates;
}

bool MayBeRemoved(const std::string& path) {
  if (IsGridSize(path) || path.ends_with(']')) return false;
  std::string table = path;
  for (const std::string section : {"modules.", "models."}) {
    if (!path.starts_with(section)) continue;
    const size_t end = path.find('.', section.size());
    if (end == std::string::npos) return false;
    table = absl::StrCat(section, "<name>", path.substr(end));
  }
  if (const size_t open = table.find('['); open != std::string::npos)
    table.replace(open, table.find(']') - open + 1, "[]");
  const auto keys = RecipeKeys();
  return std::any_of(keys.begin(), keys.end(), [&](const KeySpec& spec) {
    return spec.path == table && spec.need == Need::kOptional && spec.type != KeyType::kMap;
  });
}

std::vector<std::vector<Edit>> MemoryCandidates(const YamlNode& tree, const std::string& module, bool state_is_most) {
  std::vector<std::vector<Edit>> single, all;
  const std::string parallel = module + ".parallel.";
  const auto larger = [&](const char* axis, int64_t times) {
    const std::string path = parallel + axis;
    single.push_back({{path, absl::StrCat(IntegerAt(tree, path).value_or(1) * times)}});
  };
  const std::vector<Edit> recompute = {{module + ".recompute", "full"}};
  for (int64_t times : {2, 4, 8}) {
    if (state_is_most) larger("ep", times);
    larger("tp", times);
    larger("pp", times);
    if (!state_is_most) larger("cp", times);
  }
  std::vector<std::vector<Edit>> fewer;
  for (int64_t micro = IntegerAt(tree, "batch.micro_samples").value_or(1) / 2; micro >= 1; micro /= 2)
    fewer.push_back({{"batch.micro_samples", absl::StrCat(micro)}});
  if (!state_is_most) {
    all.insert(all.end(), fewer.begin(), fewer.end());
    all.push_back(recompute);
  }
  all.insert(all.end(), single.begin(), single.end());
  for (const std::vector<Edit>& one : single) all.push_back({recompute[0], one[0]});
  for (size_t i = 0; i + 1 < single.size(); ++i) {
    if (single[i][0].path != single[i + 1][0].path) all.push_back({single[i][0], single[i + 1][0], recompute[0]});
  }
  return all;
}

}  // namespace planwright
