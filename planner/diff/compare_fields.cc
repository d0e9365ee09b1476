#include "planner/diff/compare_fields.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/diff/field_rules.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostAlike = 3;  // more items of a list that change in one field are told as one change

std::string Join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// What one change says of several items: the value if they share it, else the first few by name.
Json Summary(const std::vector<std::pair<std::string, Json>>& values) {
  const bool alike =
      std::all_of(values.begin(), values.end(), [&](const auto& value) { return value.second == values[0].second; });
  if (alike && values[0].second.is_primitive()) return values[0].second;
  Json summary = Json::object();
  for (size_t i = 0; i < std::min(kMostAlike, values.size()); ++i) summary[values[i].first] = values[i].second;
  summary["items"] = values.size();
  return summary;
}

class Comparer {
 public:
  explicit Comparer(bool rates_change) : rates_change_(rates_change) {}

  void Node(const std::string& path, const std::string& pattern, const Json& from, const Json& to,
            std::vector<Change>& changes) {
    if (from.is_object() && to.is_object()) {
      static const Json kNothing;
      for (const auto& [key, value] : from.items()) {
        Node(Join(path, key), Join(pattern, key), value, to.contains(key) ? to[key] : kNothing, changes);
      }
      for (const auto& [key, value] : to.items()) {
        if (!from.contains(key)) Node(Join(path, key), Join(pattern, key), kNothing, value, changes);
      }
      return;
    }
    if (from == to) return;
    const std::optional<FieldRule> rule = RuleOf(pattern);
    if (rule && rule->compare == Compare::kItems) return Items(path, *rule, from, to, changes);
    if (rule && rule->compare == Compare::kWhole)
      return changes.push_back(Make(path, rule, Count(from, to), Count(to, from)));
    changes.push_back(Make(path, rule, from, to));
  }

 private:
  Change Make(const std::string& path, const std::optional<FieldRule>& rule, Json from, Json to) const {
    // A field that no plan has, should one come here all the same, is not called harmless.
    if (!rule) return {path, std::move(from), std::move(to), "run", "a field that cannot be judged", true};
    const bool may = rule->curve == Curve::kChanges || (rule->curve == Curve::kRates && rates_change_);
    const bool idle_rate = rule->curve == Curve::kRates && !rates_change_;
    return {path,
            std::move(from),
            std::move(to),
            std::string(rule->area),
            std::string(rule->effect) + (idle_rate ? "; it is the same at every step of this training" : ""),
            may};
  }

  // How long a list is, and how many of its items the other lacks.
  static Json Count(const Json& list, const Json& other) {
    std::multiset<std::string> there;
    for (const Json& item : other) there.insert(item.dump());
    size_t own = 0;
    for (const Json& item : list) {
      const auto it = there.find(item.dump());
      if (it == there.end())
        ++own;
      else
        there.erase(it);
    }
    return {{"items", list.size()}, {"own", own}};
  }

  void Items(const std::string& path, const FieldRule& rule, const Json& from, const Json& to,
             std::vector<Change>& changes) {
    const std::string& pattern = rule.pattern;
    std::map<std::string, const Json*> others;
    for (const Json& item : to) others[ItemName(pattern, item)] = &item;
    std::vector<std::pair<std::string, Change>> found;  // by item
    for (const Json& item : from) {
      const std::string name = ItemName(pattern, item);
      const auto other = others.find(name);
      if (other == others.end()) {
        found.emplace_back(name, Make("", rule, name, nullptr));
        continue;
      }
      std::vector<Change> inner;
      Node("", pattern + "[]", item, *other->second, inner);
      for (Change& change : inner) found.emplace_back(name, std::move(change));
      others.erase(other);
    }
    for (const Json& item : to) {
      const std::string name = ItemName(pattern, item);
      if (others.contains(name)) found.emplace_back(name, Make("", rule, nullptr, name));
    }
    Gather(path, found, changes);
  }

  // Changes of items in one field, if they are many, become one.
  static void Gather(const std::string& path, std::vector<std::pair<std::string, Change>>& found,
                     std::vector<Change>& changes) {
    const auto key_of = [](const Change& change) {
      return change.path + (change.from.is_null() ? "+" : change.to.is_null() ? "-" : "");
    };
    std::map<std::string, std::vector<const std::pair<std::string, Change>*>> alike;
    for (const auto& item : found) alike[key_of(item.second)].push_back(&item);
    std::set<std::string> told;
    for (const auto& [name, change] : found) {
      const auto& group = alike[key_of(change)];
      Change made = change;
      if (group.size() > kMostAlike) {
        if (!told.insert(key_of(change)).second) continue;
        std::vector<std::pair<std::string, Json>> from, to;
        for (const auto* item : group) {
          from.emplace_back(item->first, item->second.from);
          to.emplace_back(item->first, item->second.to);
        }
        made.from = Summary(from);
        made.to = Summary(to);
        made.effect += " (" + std::to_string(group.size()) + " times)";
      }
      made.path = Join(path, group.size() > kMostAlike ? "*" : name) + (change.path.empty() ? "" : "." + change.path);
      changes.push_back(std::move(made));
    }
  }

  const bool rates_change_;
};

}  // namespace

std::vector<Change> CompareFields(const Json& from, const Json& to, bool rates_change) {
  std::vector<Change> changes;
  Comparer(rates_change).Node("", "", from, to, changes);
  return changes;
}

}  // namespace planwright
