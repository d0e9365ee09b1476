// `plan diff` as text and as JSON.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/plan/plan.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/diff/diff.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// The ranks of a list of numbers, or of runs of them. Nothing if the value is another list, or one that does not
// ascend: RanksText writes ascending ranks only.
std::optional<std::vector<int>> RanksOf(const Json& value) {
  std::vector<int> ranks;
  for (const Json& item : value) {
    if (item.is_number_integer()) {
      ranks.push_back(item.get<int>());
    } else if (item.is_object() && item.contains("first") && item.contains("count") && item.contains("stride")) {
      const std::vector<int> more =
          Expand({{item["first"].get<int>(), item["count"].get<int>(), item["stride"].get<int>()}});
      ranks.insert(ranks.end(), more.begin(), more.end());
    } else {
      return std::nullopt;
    }
  }
  const bool ascend = std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  return ascend && !ranks.empty() ? std::optional(std::move(ranks)) : std::nullopt;
}

// One value in at most `most` characters. Objects that CompareFields and CompareGroupSizes make are put into words.
std::string ValueText(const std::string& path, const Json& value, size_t most) {
  if (value.is_null()) return "-";
  if (value.is_object() && value.size() == 2 && value.contains("own")) {
    return WithCommas(value["items"]) + " (" + WithCommas(value["own"]) + " its own)";
  }
  if (value.is_object() && value.size() == 2 && value.contains("ranks_each")) {
    return WithCommas(value["groups"]) + " of " + WithCommas(value["ranks_each"]);
  }
  std::string text = value.is_string() ? value.get<std::string>() : JsonText(value);
  if (value.is_array() && path.ends_with(".ranks")) {
    if (const auto ranks = RanksOf(value)) text = "[" + RanksText(*ranks) + "]";
  }
  if (Width(text) <= most) return text;
  size_t cut = most - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not within a character
  return text.substr(0, cut) + "...";
}

// One line for each change, in columns.
std::string ColumnsText(const std::vector<const PlanChange*>& changes, size_t width) {
  // The two values share what the path, the marks and the effect leave of a line.
  const size_t most = width == 0 ? 60 : (width - 86) / 2;
  Table table({"", "", "", "", "", ""});
  for (const PlanChange* change : changes) {
    table.Add({change->may_change_loss ? "!" : " ", change->path, ValueText(change->path, change->from, most), "->",
               ValueText(change->path, change->to, most), change->effect});
  }
  const std::string text = table.Text(" ", width);
  return text.substr(text.find('\n') + 1);  // no header
}

// Three lines for each change, for a narrow terminal.
std::string StackedText(const std::vector<const PlanChange*>& changes, size_t width) {
  constexpr size_t kIndent = 8;
  const size_t most = std::max<size_t>(width, 40) / 2 - kIndent;
  std::string text;
  for (const PlanChange* change : changes) {
    const std::string indent(kIndent, ' ');
    text += std::string(change->may_change_loss ? " !  " : "    ") + change->path + "\n";
    text += indent + ValueText(change->path, change->from, most) + " -> " + ValueText(change->path, change->to, most) +
            "\n";
    text += Wrapped(indent + change->effect, width, kIndent) + "\n";
  }
  return text;
}

}  // namespace

Json DiffJson(const PlanDiff& diff) {
  Json changes = Json::array();
  for (const PlanChange& change : diff.changes) {
    changes.push_back({{"path", change.path},
                       {"from", change.from},
                       {"to", change.to},
                       {"effect", change.effect},
                       {"area", change.area},
                       {"may_change_loss", change.may_change_loss}});
  }
  Json json = {{"same", diff.same()}, {"may_change_loss", diff.may_change_loss()}};
  if (diff.first_other_sample) json["first_other_sample"] = *diff.first_other_sample;
  json["changes"] = std::move(changes);
  return json;
}

std::string DiffText(const PlanDiff& diff, const std::string& from, const std::string& to, size_t width) {
  constexpr size_t kLeastForColumns = 140;
  if (diff.same()) return from + " and " + to + " are the same plan\n";
  std::string text = from + " and " + to + ": " + Counted(static_cast<int64_t>(diff.changes.size()), "difference") +
                     "; the loss curve " +
                     (diff.may_change_loss() ? "may change (see those marked !)" : "does not change") + "\n";
  if (diff.first_other_sample)
    text += "samples are other ones from sample " + WithCommas(*diff.first_other_sample) + " on\n";
  std::vector<std::string> areas;  // in the order in which they first come
  std::map<std::string, std::vector<const PlanChange*>> changes;
  for (const PlanChange& change : diff.changes) {
    if (changes[change.area].empty()) areas.push_back(change.area);
    changes[change.area].push_back(&change);
  }
  const bool columns = width == 0 || width >= kLeastForColumns;
  for (const std::string& area : areas)
    text += "\n" + area + "\n" + (columns ? ColumnsText : StackedText)(changes[area], width);
  return text;
}

}  // namespace planwright
