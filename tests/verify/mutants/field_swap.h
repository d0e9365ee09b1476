// Gives one field of class `kFollows` the value that the same field has elsewhere in the plan: the slot of another
// storage, the group of another instruction. So all names that occur are known names. (field_mutants_test.cc gives
// fields values that do not occur in the plan.)
//
// A visitor for Describe (planner/plan/plan_fields.h). The pattern of a field is its path with [] for any item:
// "modules[].parameters[].name".
#pragma once

#include <any>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan_fields.h"

namespace planwright::testing {

class FieldSwap {
 public:
  static constexpr bool kFills = true;

  // Changes nothing; seen() then has the values of each field in plan order, by pattern.
  FieldSwap() = default;
  const std::map<std::string, std::vector<std::any>>& seen() const { return seen_; }

  // Gives occurrence `at` of the field `pattern` this value.
  FieldSwap(std::string pattern, size_t at, std::any value)
      : wanted_(std::move(pattern)), at_(at), value_(std::move(value)) {}
  bool done() const { return done_; }  // whether the occurrence exists

  template <typename T>
  void operator()(const char* key, FieldClass of, T& value) {
    const std::string outer = path_;
    path_ += (path_.empty() ? "" : ".") + std::string(key);
    Field(of, value);
    path_ = outer;
  }
  template <typename T>
  void Omittable(const char* key, FieldClass of, T& value, const std::type_identity_t<T>&) {
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char*, T&, const std::type_identity_t<T>&) {}

 private:
  template <typename T>
  static constexpr bool kIsOneValue =
      std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Output> ||
      std::is_same_v<T, Transfer> || std::is_same_v<T, Attribute>;

  template <typename T>
  void Field(FieldClass of, T& value) {
    if constexpr (kIsOneValue<T>) {
      if (of != FieldClass::kFollows || done_) return;
      if (wanted_.empty()) seen_[path_].push_back(value);
      if (path_ != wanted_ || next_++ != at_) return;
      done_ = true;
      value = std::any_cast<T>(value_);
    } else if constexpr (requires { value.has_value(); }) {
      if (value) Field(of, *value);
    } else if constexpr (requires { value.push_back(value[0]); }) {
      const std::string outer = path_;
      path_ += "[]";
      for (auto& item : value) Field(of, item);
      path_ = outer;
    } else if constexpr (std::is_same_v<T, Attributes>) {
      const std::string outer = path_;
      for (auto& [key, attribute] : value) {
        path_ = outer + "." + key;
        Field(of, attribute);
      }
      path_ = outer;
    } else {
      Describe(*this, value);
    }
  }

  const std::string wanted_;
  const size_t at_ = 0;
  const std::any value_;
  std::string path_;
  size_t next_ = 0;
  std::map<std::string, std::vector<std::any>> seen_;
  bool done_ = false;
};

}  // namespace planwright::testing
