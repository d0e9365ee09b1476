#include "planner/base/json/json_text.h"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

// Receives the values of the text one by one (the SAX interface of nlohmann::json, hence the method names) and builds
// the tree. The library's own builder has no limits, and of repeated fields it silently keeps the last.
template <typename Json>
class LimitedTreeBuilder {
 public:
  LimitedTreeBuilder(Json& root, const JsonLimits& limits) : root_(root), limits_(limits) {}
  // The fields of the object under `key` of the root, or of the root itself, go to `visit`.
  LimitedTreeBuilder(Json& root, const JsonLimits& limits, const std::string& key, const FieldVisitor& visit)
      : root_(root), limits_(limits), visited_key_(key), visit_(&visit) {}

  const std::string& refusal() const { return refusal_; }
  const absl::Status& visited() const { return visited_status_; }

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(int64_t value) { return Add(value); }
  bool number_unsigned(uint64_t value) { return Add(value); }
  bool number_float(double value, const std::string&) { return Add(value); }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(typename Json::binary_t& value) { return Add(std::move(value)); }

  bool start_object(size_t) { return Open(Json::object()); }
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(std::string& field) {
    if (visited_ != nullptr && open_.back() == visited_) {
      if (++visited_fields_ > limits_.fields)
        return Refuse(absl::StrCat("an object of more than ", limits_.fields, " fields"));
      visited_name_ = std::move(field);
      next_field_ = &visited_value_;
      return true;
    }
    if (open_.size() == 1) is_visited_key_ = visit_ != nullptr && field == visited_key_;
    auto& fields = open_.back()->template get_ref<typename Json::object_t&>();
    // ordered_json finds a field by comparing with every field before it, so many fields would cost quadratic time.
    if (fields.size() >= limits_.fields)
      return Refuse(absl::StrCat("an object of more than ", limits_.fields, " fields"));
    const auto [entry, is_new] = fields.emplace(field, nullptr);
    if (!is_new) return Refuse(GivenTwice(entry->first));
    next_field_ = &entry->second;
    return true;
  }

  bool parse_error(size_t, const std::string&, const typename Json::exception& error) {
    // The library's own number of the error stands before it, in brackets.
    const std::string_view what = error.what();
    return Refuse(Printable(what.substr(what.find("] ") == std::string_view::npos ? 0 : what.find("] ") + 2)));
  }

 private:
  bool Refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  // Where the next value goes; null if it is one too many.
  Json* NextSlot() {
    if (++values_ > limits_.values) {
      Refuse(absl::StrCat("more than ", limits_.values, " values"));
      return nullptr;
    }
    if (open_.empty()) return &root_;
    if (!open_.back()->is_array()) return next_field_;
    return &open_.back()->template get_ref<typename Json::array_t&>().emplace_back();
  }

  template <typename T>
  bool Add(T value) {
    Json* slot = NextSlot();
    if (slot) *slot = std::move(value);
    return slot != nullptr && VisitIfWhole();
  }

  // A value is read: if it is that of a field to visit, nobody keeps it.
  bool VisitIfWhole() {
    if (visited_ == nullptr || open_.empty() || open_.back() != visited_) return true;
    if constexpr (std::is_same_v<Json, nlohmann::json>)
      visited_status_ = (*visit_)(std::move(visited_name_), std::exchange(visited_value_, nullptr));
    return visited_status_.ok();
  }

  bool Open(Json empty) {
    if (open_.size() >= limits_.depth)
      return Refuse(absl::StrCat("more than ", limits_.depth, " levels of objects and lists"));
    Json* slot = NextSlot();
    if (!slot) return false;
    *slot = std::move(empty);
    const bool meant = visited_key_.empty() ? open_.empty() : open_.size() == 1 && is_visited_key_;
    if (visit_ != nullptr && visited_ == nullptr && meant && slot->is_object()) visited_ = slot;
    // The pointer stays valid: the list around it grows only after this value is closed.
    open_.push_back(slot);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return VisitIfWhole();
  }

  Json& root_;
  const JsonLimits& limits_;
  std::vector<Json*> open_;     // objects and lists that are not closed yet, the innermost last
  Json* next_field_ = nullptr;  // of the innermost object: the field whose value comes next
  size_t values_ = 0;
  std::string refusal_;
  const std::string visited_key_;
  const FieldVisitor* const visit_ = nullptr;
  const Json* visited_ = nullptr;  // the object whose fields are visited; null: it has not begun
  bool is_visited_key_ = false;    // the last key of the root is that of the object
  size_t visited_fields_ = 0;
  std::string visited_name_;
  Json visited_value_;
  absl::Status visited_status_;
};

template <typename Json>
absl::StatusOr<Json> Parse(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return absl::InvalidArgumentError(absl::StrCat("it has more than ", limits.bytes, " bytes"));
  Json json;
  LimitedTreeBuilder<Json> builder(json, limits);
  if (Json::sax_parse(text, &builder)) return json;
  return absl::InvalidArgumentError(builder.refusal());
}

template <typename Json>
std::string Text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const JsonLimits& limits) {
  return Parse<nlohmann::json>(text, limits);
}

absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, const JsonLimits& limits) {
  return Parse<nlohmann::ordered_json>(text, limits);
}

absl::StatusOr<nlohmann::json> ParseFields(std::string_view text, const JsonLimits& limits, const std::string& key,
                                           const FieldVisitor& visit) {
  if (text.size() > limits.bytes)
    return absl::InvalidArgumentError(absl::StrCat("it has more than ", limits.bytes, " bytes"));
  nlohmann::json rest;
  LimitedTreeBuilder<nlohmann::json> builder(rest, limits, key, visit);
  if (nlohmann::json::sax_parse(text, &builder)) return rest;
  if (!builder.visited().ok()) return builder.visited();
  return absl::InvalidArgumentError(builder.refusal());
}

std::string GivenTwice(const std::string& field) { return "the field " + Quoted(field) + " is given twice"; }

std::string JsonText(const nlohmann::json& json, int indent) { return Text(json, indent); }
std::string JsonText(const nlohmann::ordered_json& json, int indent) { return Text(json, indent); }

}  // namespace planwright
