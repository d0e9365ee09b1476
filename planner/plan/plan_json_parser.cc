#include "planner/plan/plan_json_parser.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Receives the values of the text one by one (the SAX interface of nlohmann::json, hence the method names) and builds
// the tree. The library's own builder has no limits, and of repeated fields it silently keeps the last.
class LimitedTreeBuilder {
 public:
  explicit LimitedTreeBuilder(Json& root) : root_(root) {}

  const std::string& refusal() const { return refusal_; }

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(Json::binary_t& value) { return Add(std::move(value)); }

  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(std::string& field) {
    Json::object_t& fields = open_.back()->get_ref<Json::object_t&>();
    // ordered_json finds a field by comparing with every field before it, so many fields would cost quadratic time.
    if (fields.size() >= kMostPlanFields)
      return Refuse(absl::StrCat("an object of more than ", kMostPlanFields, " fields"));
    const auto [place, is_new] = fields.emplace(field, nullptr);
    if (!is_new) return Refuse("the field \"" + place->first + "\" is given twice");
    next_field_ = &place->second;
    return true;
  }

  bool parse_error(size_t, const std::string&, const Json::exception& error) { return Refuse(error.what()); }

 private:
  bool Refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  // Where the next value goes; null if it is one too many.
  Json* NextPlace() {
    if (++values_ > kMostPlanValues) {
      Refuse(absl::StrCat("more than ", kMostPlanValues, " values"));
      return nullptr;
    }
    if (open_.empty()) return &root_;
    return open_.back()->is_array() ? &open_.back()->get_ref<Json::array_t&>().emplace_back() : next_field_;
  }

  template <typename T>
  bool Add(T value) {
    Json* place = NextPlace();
    if (place) *place = std::move(value);
    return place != nullptr;
  }

  bool Open(Json empty) {
    if (open_.size() >= kDeepestPlan)
      return Refuse(absl::StrCat("more than ", kDeepestPlan, " levels of objects and lists"));
    Json* place = NextPlace();
    if (!place) return false;
    *place = std::move(empty);
    // The pointer stays valid: the list around it grows only after this value is closed.
    open_.push_back(place);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> open_;     // objects and lists that are not closed yet, the innermost last
  Json* next_field_ = nullptr;  // of the innermost object: the field whose value comes next
  size_t values_ = 0;
  std::string refusal_;
};

}  // namespace

absl::StatusOr<Json> ParsePlanJson(std::string_view text) {
  Json json;
  LimitedTreeBuilder builder(json);
  if (Json::sax_parse(text, &builder)) return json;
  return absl::InvalidArgumentError("not a plan: " + builder.refusal());
}

}  // namespace planwright
