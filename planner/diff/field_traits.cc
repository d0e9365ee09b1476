#include "planner/diff/field_traits.h"

#include <optional>
#include <vector>

#include "planner/diff/field_rules.h"

namespace planwright {
namespace {

template <typename T>
struct Inner {  // what a field holds, and what its pattern ends with
  using Type = T;
  static constexpr const char* kEnd = "";
};
template <typename T>
struct Inner<std::vector<T>> {
  using Type = T;
  static constexpr const char* kEnd = "[]";
};
template <typename T>
struct Inner<std::optional<T>> {
  using Type = T;
  static constexpr const char* kEnd = "";
};

class Collector {
 public:
  static constexpr bool kFills = false;
  explicit Collector(std::string around) : around_(std::move(around)) {}

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, const T&) {
    const std::string pattern = InstructionPattern(around_ + key);
    found_.emplace(pattern, of);
    using Held = typename Inner<T>::Type;
    Collector inner(pattern + Inner<T>::kEnd + ".");
    if constexpr (requires(const Held& held) { Describe(inner, held); }) {
      Describe(inner, Held());
      found_.merge(inner.found_);
    }
  }
  template <typename T>
  void Omittable(const char* key, const FieldTraits& of, const T& value, const std::type_identity_t<T>&) {
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char*, const T&, const std::type_identity_t<T>&) {}

  std::map<std::string, FieldTraits, std::less<>> Take() { return std::move(found_); }

 private:
  const std::string around_;
  std::map<std::string, FieldTraits, std::less<>> found_;
};

}  // namespace

const std::map<std::string, FieldTraits, std::less<>>& AllFieldTraits() {
  static const auto traits = [] {
    Collector fields("");
    Describe(fields, Plan());
    return fields.Take();
  }();
  return traits;
}

}  // namespace planwright
