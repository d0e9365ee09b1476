#include "planner/base/json/json_text.h"

#include <nlohmann/json.hpp>
#include <string>
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

  const std::string& refusal() const { return refusal_; }

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
    auto& fields = open_.back()->template get_ref<typename Json::object_t&>();
    // ordered_json finds a field by comparing with every field before it, so many fields would cost quadratic time.
    if (fields.size() >= limits_.fields)
      return Refuse(absl::StrCat("an object of more than ", limits_.fields, " fields"));
    const auto [entry, is_new] = fields.emplace(field, nullptr);
    if (!is_new) return Refuse("the field " + Quoted(entry->first) + " is given twice");
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
    return slot != nullptr;
  }

  bool Open(Json empty) {
    if (open_.size() >= limits_.depth)
      return Refuse(absl::StrCat("more than ", limits_.depth, " levels of objects and lists"));
    Json* slot = NextSlot();
    if (!slot) return false;
    *slot = std::move(empty);
    // The pointer stays valid: the list around it grows only after this value is closed.
    open_.push_back(slot);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  const JsonLimits& limits_;
  std::vector<Json*> open_;     // objects and lists that are not closed yet, the innermost last
  Json* next_field_ = nullptr;  // of the innermost object: the field whose value comes next
  size_t values_ = 0;
  std::string refusal_;
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

std::string JsonText(const nlohmann::json& json, int indent) { return Text(json, indent); }
std::string JsonText(const nlohmann::ordered_json& json, int indent) { return Text(json, indent); }

}  // namespace planwright
