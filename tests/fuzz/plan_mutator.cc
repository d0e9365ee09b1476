// How libFuzzer changes a plan: mostly a few values of its JSON. If it changed bytes, almost every change would fail in
// the JSON parser and test nothing else.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Json = nlohmann::ordered_json;

// Appends pointers to `json` and to every value inside it.
void CollectValues(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& inner : json) CollectValues(inner, values);
}

class PlanMutator {
 public:
  explicit PlanMutator(unsigned seed) : random_(seed) {}

  // Changes one value of the plan, drawn at random: to an edge value, or to a value from elsewhere in the plan.
  void Change(Json& plan) {
    std::vector<Json*> values;
    CollectValues(plan, values);
    Json& target = *values[Below(values.size())];
    const Json& other = *values[Below(values.size())];
    if (Below(8) == 0 && &other != &plan) {
      const Json copy = other;
      target = copy;
    } else if (target.is_structured()) {
      ChangeItems(target);
    } else if (target.is_number_integer()) {
      ChangeInteger(target, values);
    } else if (target.is_string()) {
      ChangeText(target, values);
    } else if (target.is_boolean()) {
      target = !target.get<bool>();
    } else if (target.is_number()) {
      target = Below(2) ? 1e300 : -0.5;
    }
  }

 private:
  size_t Below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

  void ChangeItems(Json& target) {
    if (target.empty()) return;
    const auto item = [&] { return std::next(target.begin(), static_cast<std::ptrdiff_t>(Below(target.size()))); };
    switch (Below(4)) {
      case 0: target.erase(item()); break;
      case 1: std::iter_swap(item(), item()); break;
      case 2:
        if (target.is_array()) {
          const Json copy = *item();
          target.insert(item(), copy);
        }
        break;
      case 3: target.clear(); break;
    }
  }

  void ChangeInteger(Json& target, const std::vector<Json*>& values) {
    constexpr int64_t kEdges[] = {0, -1, 1, 2, INT_MAX, INT_MIN, INT64_MAX, INT64_MIN, 1 << 20, (1 << 20) + 1, 1 << 16};
    const int64_t old =
        target.is_number_unsigned() ? static_cast<int64_t>(target.get<uint64_t>()) : target.get<int64_t>();
    switch (Below(4)) {
      case 0: target = kEdges[Below(std::size(kEdges))]; break;
      case 1: target = static_cast<int64_t>(static_cast<uint64_t>(old) + Below(3) - 1); break;
      case 2: target = static_cast<int64_t>(static_cast<uint64_t>(old) * 2); break;
      case 3: CopyFrom(values, target, [](const Json& json) { return json.is_number_integer(); }); break;
    }
  }

  void ChangeText(Json& target, const std::vector<Json*>& values) {
    if (Below(3) > 0) return CopyFrom(values, target, [](const Json& json) { return json.is_string(); });
    std::string text = target.get<std::string>();
    const size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    target = text;
  }

  template <typename Fits>
  void CopyFrom(const std::vector<Json*>& values, Json& target, Fits fits) {
    for (int tries = 0; tries < 50; ++tries) {
      const Json& other = *values[Below(values.size())];
      if (!fits(other)) continue;
      const Json copy = other;
      target = copy;
      return;
    }
  }

  std::mt19937 random_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Json plan = Json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  // Now and then bytes are changed after all, so that the parser is tested too.
  if (plan.is_discarded() || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  PlanMutator mutator(seed);
  for (unsigned edits = 1 + seed % 3; edits > 0; --edits) mutator.Change(plan);
  const std::string text = plan.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
