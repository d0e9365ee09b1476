// Damages one field of a plan at a time, of the class `kFollows`: what verify must refuse whatever the field is. It gets a value that no field has,
// or that of the same field elsewhere in the plan. Walks the list of fields that the reader and the writer walk, so a field that is added is damaged
// too.
#pragma once

#include <any>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan_fields.h"

namespace planwright::testing {

class FieldDamage {
 public:
  static constexpr bool kFills = true;

  // Looks only: by pattern ("modules[].parameters[].name"), the values of a field in order.
  FieldDamage() = default;
  const std::map<std::string, std::vector<std::any>>& seen() const { return seen_; }

  // Damages occurrence `at` of the field `pattern`; `value`: what it gets, none: what no other has.
  FieldDamage(std::string pattern, size_t at, std::any value) : wanted_(std::move(pattern)), at_(at), value_(std::move(value)) {}
  bool done() const { return done_; }

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
  void Field(FieldClass of, T& value) {
    if constexpr (requires { Alter(value); }) {
      if (of != FieldClass::kFollows || done_) return;
      if (wanted_.empty()) seen_[path_].push_back(value);
      if (path_ != wanted_ || next_++ != at_) return;
      done_ = true;
      if (value_.has_value()) {
        value = std::any_cast<T>(value_);
      } else {
        Alter(value);
      }
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

  static void Alter(bool& value) { value = !value; }
  static void Alter(int& value) { ++value; }
  static void Alter(int64_t& value) { ++value; }
  static void Alter(double& value) { value += 1; }
  static void Alter(char& value) { ++value; }
  static void Alter(std::string& value) { value += "x"; }
  static void Alter(Axis& value) { value = value == Axis::kTp ? Axis::kCp : Axis::kTp; }
  static void Alter(View& value) { value = value == View::kDense ? View::kExpert : View::kDense; }
  static void Alter(OpKind& value) { value = value == OpKind::kGelu ? OpKind::kSquaredRelu : OpKind::kGelu; }
  static void Alter(DType& value) { value = value == DType::kFp32 ? DType::kFp64 : DType::kFp32; }
  static void Alter(TpGradient& value) { value = value == TpGradient::kSharded ? TpGradient::kReplicated : TpGradient::kSharded; }
  static void Alter(Init::Kind& value) { value = value == Init::Kind::kOnes ? Init::Kind::kZeros : Init::Kind::kOnes; }
  static void Alter(Output& value) { value.name += "x"; }
  static void Alter(Attribute& value) {
    std::visit([](auto& held) { Alter(held); }, value);
  }
  static void Alter(std::vector<int64_t>& value) { value.push_back(1); }
  static void Alter(Transfer& value) { ++value.end_sample; }

  const std::string wanted_;
  const size_t at_ = 0;
  const std::any value_;
  std::string path_;
  size_t next_ = 0;
  std::map<std::string, std::vector<std::any>> seen_;
  bool done_ = false;
};

}  // namespace planwright::testing
