#include "planner/views/diff/compare_fields.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/base/json/json_text.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/value_type.h"
#include "planner/views/diff/field_rules.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// A visitor of plan_fields.h. The plan's own writer does not do: it leaves out defaults, and it writes ranks and
// transfers as runs, which change as a whole when one number does.
struct FieldTreeMaker {
  static constexpr bool kFills = false;
  Json object = Json::object();

  template <typename T>
  void operator()(const char* key, FieldClass, const T& value) {
    object[key] = ToJson(value);
  }
  template <typename T>
  void Omittable(const char* key, FieldClass, const T& value, const std::type_identity_t<T>&) {
    object[key] = ToJson(value);
  }
  template <typename T>
  void OutsideDigest(const char*, const T&, const std::type_identity_t<T>&) {}

  template <typename T>
  Json ToJson(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      FieldTreeMaker inner;
      Describe(inner, value);
      return std::move(inner.object);
    }
  }
  Json ToJson(char value) { return std::string(1, value); }
  Json ToJson(Axis value) { return AxisName(value); }
  Json ToJson(View value) { return ViewName(value); }
  Json ToJson(OpKind value) { return OpName(value); }
  Json ToJson(DType value) { return DTypeName(value); }
  Json ToJson(TpGradient value) { return TpGradientName(value); }
  Json ToJson(Init::Kind value) { return InitKindName(value); }
  Json ToJson(DataKind value) { return DataKindName(value); }
  Json ToJson(SourceKind value) { return SourceKindName(value); }
  Json ToJson(const Output& value) { return OutputText(value); }
  Json ToJson(const Transfer& value) { return {value.from_rank, value.to_rank, value.first_sample, value.end_sample}; }
  Json ToJson(const Attribute& value) {
    return std::visit([&](const auto& held) { return ToJson(held); }, value);
  }
  template <typename T>
  Json ToJson(const std::optional<T>& value) {
    return value ? ToJson(*value) : Json();
  }
  template <typename T>
  Json ToJson(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(ToJson(value));
    return list;
  }
  Json ToJson(const Attributes& values) {
    Json map = Json::object();
    for (const auto& [key, value] : values) map[key] = ToJson(value);
    return map;
  }
};

// A change in more items of one list than this is told as one change.
constexpr size_t kMostItemsTold = 3;

std::string JoinPath(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// The values of many items as one value: the value itself if all share it, else the first few by item name.
Json Summary(const std::vector<std::pair<std::string, Json>>& values) {
  const bool equal =
      std::all_of(values.begin(), values.end(), [&](const auto& value) { return value.second == values[0].second; });
  if (equal && values[0].second.is_primitive()) return values[0].second;
  Json summary = Json::object();
  for (size_t i = 0; i < std::min(kMostItemsTold, values.size()); ++i) summary[values[i].first] = values[i].second;
  summary["items"] = values.size();
  return summary;
}

class TreeComparer {
 public:
  explicit TreeComparer(bool rates_change) : rates_change_(rates_change) {}

  // `path` names the field for people, with item names; `pattern` names it for the rules, with [] for any item.
  void Compare(const std::string& path, const std::string& pattern, const Json& from, const Json& to,
               std::vector<PlanChange>& changes) {
    if (from.is_object() && to.is_object()) {
      static const Json kNothing;
      for (const auto& [key, value] : from.items()) {
        Compare(JoinPath(path, key), JoinPath(pattern, key), value, to.contains(key) ? to[key] : kNothing, changes);
      }
      // Attributes and constants are maps: one plan may have keys that the other lacks.
      for (const auto& [key, value] : to.items()) {
        if (!from.contains(key)) Compare(JoinPath(path, key), JoinPath(pattern, key), kNothing, value, changes);
      }
      return;
    }
    if (from == to) return;
    const std::optional<FieldRule> rule = RuleOf(pattern);
    if (rule && rule->compare == CompareAs::kItems) return CompareItems(path, *rule, from, to, changes);
    if (rule && rule->compare == CompareAs::kWhole)
      return changes.push_back(MakeChange(path, rule, CountItems(from, to), CountItems(to, from)));
    changes.push_back(MakeChange(path, rule, from, to));
  }

 private:
  PlanChange MakeChange(const std::string& path, const std::optional<FieldRule>& rule, Json from, Json to) const {
    // Every field of a plan has a rule (a test holds that). One without must not be called harmless.
    if (!rule) return {path, std::move(from), std::move(to), "run", "an unknown field", true};
    const bool may = rule->curve == Curve::kChanges || (rule->curve == Curve::kRates && rates_change_);
    const bool idle_rate = rule->curve == Curve::kRates && !rates_change_;
    return {path,
            std::move(from),
            std::move(to),
            std::string(rule->area),
            std::string(rule->effect) + (idle_rate ? "; it is the same at every step of this training" : ""),
            may};
  }

  // How long a list is, and how many of its items the other list lacks. Equal items are counted as often as they are
  // there.
  static Json CountItems(const Json& list, const Json& other) {
    std::multiset<std::string> there;
    for (const Json& item : other) there.insert(JsonText(item));
    size_t own = 0;
    for (const Json& item : list) {
      const auto it = there.find(JsonText(item));
      if (it == there.end())
        ++own;
      else
        there.erase(it);
    }
    return {{"items", list.size()}, {"own", own}};
  }

  // Items of two lists, matched by name: a module that moves to another index of the list is not another module.
  void CompareItems(const std::string& path, const FieldRule& rule, const Json& from, const Json& to,
                    std::vector<PlanChange>& changes) {
    const std::string& pattern = rule.pattern;
    std::map<std::string, const Json*> others;  // items of `to` without a partner yet
    for (const Json& item : to) others[ItemName(pattern, item)] = &item;
    std::vector<std::pair<std::string, PlanChange>> found;  // by item name
    for (const Json& item : from) {
      const std::string name = ItemName(pattern, item);
      const auto other = others.find(name);
      if (other == others.end()) {
        found.emplace_back(name, MakeChange("", rule, ItemValue(pattern, item), nullptr));
        continue;
      }
      std::vector<PlanChange> inner;
      Compare("", pattern + "[]", item, *other->second, inner);
      for (PlanChange& change : inner) found.emplace_back(name, std::move(change));
      others.erase(other);
    }
    for (const Json& item : to) {
      const std::string name = ItemName(pattern, item);
      if (others.contains(name)) found.emplace_back(name, MakeChange("", rule, nullptr, ItemValue(pattern, item)));
    }
    MergeEqualChanges(path, found, changes);
  }

  // A larger world changes one field of hundreds of items. If more than a few items change in the same field, they
  // become one change with "*" in its path. Items that are new, gone and changed are told apart.
  static void MergeEqualChanges(const std::string& path, std::vector<std::pair<std::string, PlanChange>>& found,
                                std::vector<PlanChange>& changes) {
    const auto key_of = [](const PlanChange& change) {
      return change.path + (change.from.is_null() ? "+" : change.to.is_null() ? "-" : "");
    };
    std::map<std::string, std::vector<const std::pair<std::string, PlanChange>*>> by_key;
    for (const auto& item : found) by_key[key_of(item.second)].push_back(&item);
    std::set<std::string> told;
    for (const auto& [name, change] : found) {
      const auto& group = by_key[key_of(change)];
      PlanChange made = change;
      if (group.size() > kMostItemsTold) {
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
      const std::string item = JoinPath(path, group.size() > kMostItemsTold ? "*" : name);
      made.path = change.path.empty() ? item : item + "." + change.path;
      changes.push_back(std::move(made));
    }
  }

  const bool rates_change_;
};

}  // namespace

Json FieldTree(const Plan& plan) {
  FieldTreeMaker maker;
  Describe(maker, plan);
  return std::move(maker.object);
}

std::vector<PlanChange> CompareFields(const Json& from, const Json& to, bool rates_change) {
  std::vector<PlanChange> changes;
  TreeComparer(rates_change).Compare("", "", from, to, changes);
  return changes;
}

}  // namespace planwright
