#include "planner/diff/field_tree.h"

#include "planner/plan/plan.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/value_type.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

struct TreeMaker {
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
      TreeMaker inner;
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

}  // namespace

Json FieldTree(const Plan& plan) {
  TreeMaker maker;
  Describe(maker, plan);
  return std::move(maker.object);
}

}  // namespace planwright
