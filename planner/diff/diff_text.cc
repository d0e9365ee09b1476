#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "planner/diff/diff.h"
#include "planner/plan/plan.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// The numbers of a list of ranks, or of runs of them, if it is one.
std::optional<std::vector<int>> Ranks(const Json& value) {
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

// In at most `most` characters.
std::string ValueText(const std::string& path, const Json& value, size_t most) {
  if (value.is_null()) return "-";
  if (value.is_object() && value.size() == 2 && value.contains("own")) {
    return WithCommas(value["items"]) + " (" + WithCommas(value["own"]) + " its own)";
  }
  if (value.is_object() && value.size() == 2 && value.contains("ranks_each")) {
    return WithCommas(value["groups"]) + " of " + WithCommas(value["ranks_each"]);
  }
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.is_array() && path.ends_with(".ranks")) {
    if (const auto ranks = Ranks(value)) text = "[" + RanksText(*ranks) + "]";
  }
  if (Width(text) <= most) return text;
  size_t cut = most - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // not within a character
  return text.substr(0, cut) + "...";
}

// A change a line, in columns.
std::string InColumns(const std::vector<const Change*>& changes, size_t width) {
  const size_t most = width == 0 ? 60 : (width - 86) / 2;
  Table table({"", "", "", "", "", ""});
  for (const Change* change : changes) {
    table.Add({change->may_change_loss ? "!" : " ", change->path, ValueText(change->path, change->from, most), "->",
               ValueText(change->path, change->to, most), change->effect});
  }
  const std::string text = table.Text(" ", width);
  return text.substr(text.find('\n') + 1);  // no header
}

// A change in three lines, for a narrow terminal.
std::string Stacked(const std::vector<const Change*>& changes, size_t width) {
  constexpr size_t kIndent = 8;
  const size_t most = std::max<size_t>(width, 40) / 2 - kIndent;
  std::string text;
  for (const Change* change : changes) {
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
  for (const Change& change : diff.changes) {
    changes.push_back({{"path", change.path},
                       {"from", change.from},
                       {"to", change.to},
                       {"effect", change.effect},
                       {"area", change.area},
                       {"may_change_loss", change.may_change_loss}});
  }
  return {{"same", diff.same()}, {"may_change_loss", diff.may_change_loss()}, {"changes", std::move(changes)}};
}

std::string DiffText(const PlanDiff& diff, const std::string& from, const std::string& to, size_t width) {
  constexpr size_t kLeastForColumns = 140;
  if (diff.same()) return from + " and " + to + " are the same plan\n";
  std::string text = from + " and " + to + ": " + WithCommas(static_cast<int64_t>(diff.changes.size())) +
                     " differences; the loss curve " +
                     (diff.may_change_loss() ? "may change (by those marked !)" : "does not change") + "\n";
  std::vector<std::string> areas;
  std::map<std::string, std::vector<const Change*>> changes;
  for (const Change& change : diff.changes) {
    if (changes[change.area].empty()) areas.push_back(change.area);
    changes[change.area].push_back(&change);
  }
  const bool columns = width == 0 || width >= kLeastForColumns;
  for (const std::string& area : areas)
    text += "\n" + area + "\n" + (columns ? InColumns : Stacked)(changes[area], width);
  return text;
}

}  // namespace planwright
