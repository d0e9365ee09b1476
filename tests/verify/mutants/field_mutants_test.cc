// Gives every field that is not free another value, some occurrences of each. Classes are those of plan_fields.h. A
// field that follows from other fields must be refused with another value. A chosen field may be refused or not, but
// VerifyPlan must not crash.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;

constexpr int kOccurrences = 6;  // of each field that are damaged, spread over the plan

// A visitor of all fields in the order of the file (Describe in planner/plan/plan_fields.h). It counts the values of
// each field, by its path with [] for any item ("modules[].storages[].slot"), and can damage one of them.
class FieldDamage {
 public:
  static constexpr bool kFills = true;
  struct Seen {
    FieldClass field_class = FieldClass::kFree;
    int values = 0;
  };

  FieldDamage() = default;
  // Damages value `number` (from 0) of the field `pattern`.
  FieldDamage(std::string pattern, int number) : pattern_(std::move(pattern)), number_(number) {}

  const std::map<std::string, Seen>& seen() const { return seen_; }
  bool done() const { return done_; }

  template <typename T>
  void operator()(const char* key, FieldClass field_class, T& value) {
    const std::string outer = here_;
    here_ = outer.empty() ? key : absl::StrCat(outer, ".", key);
    field_class_ = field_class;
    Visit(value);
    here_ = outer;
  }
  template <typename T>
  void Omittable(const char* key, FieldClass field_class, T& value, const std::type_identity_t<T>&) {
    (*this)(key, field_class, value);
  }
  template <typename T>
  void OutsideDigest(const char*, T&, const std::type_identity_t<T>&) {}

 private:
  // Counts a value of the current field. Returns whether it is the one to damage.
  bool Here() {
    Seen& seen = seen_[here_];
    seen.field_class = field_class_;
    const bool wanted = here_ == pattern_ && seen.values == number_;
    ++seen.values;
    done_ = done_ || wanted;
    return wanted;
  }

  template <typename T>
  void Visit(T& value) {
    Describe(*this, value);
  }
  void Visit(bool& value) {
    if (Here()) value = !value;
  }
  void Visit(int& value) {
    if (Here()) ++value;
  }
  void Visit(int64_t& value) {
    if (Here()) ++value;
  }
  void Visit(double& value) {
    if (Here()) value = value * 1.5 + 1;
  }
  void Visit(char& value) {
    if (Here()) value = value == 'M' ? 'E' : 'M';
  }
  void Visit(std::string& value) {
    if (Here()) value += "x";
  }
  void Visit(Axis& value) {
    if (Here()) value = value == Axis::kTp ? Axis::kDp : Axis::kTp;
  }
  void Visit(View& value) {
    if (Here()) value = value == View::kDense ? View::kExpert : View::kDense;
  }
  void Visit(OpKind& value) {
    if (Here()) value = value == OpKind::kGelu ? OpKind::kSquaredRelu : OpKind::kGelu;
  }
  void Visit(DType& value) {
    if (Here()) value = value == DType::kFp64 ? DType::kFp32 : DType::kFp64;
  }
  void Visit(TpGradient& value) {
    if (Here()) value = value == TpGradient::kSharded ? TpGradient::kReplicated : TpGradient::kSharded;
  }
  void Visit(Init::Kind& value) {
    if (Here()) value = value == Init::Kind::kOnes ? Init::Kind::kZeros : Init::Kind::kOnes;
  }
  void Visit(DataKind& value) {
    if (Here()) value = value == DataKind::kMock ? DataKind::kRecorded : DataKind::kMock;
  }
  void Visit(SourceKind& value) {
    if (Here()) value = value == SourceKind::kTokens ? SourceKind::kWebdataset : SourceKind::kTokens;
  }
  void Visit(Output& value) {
    if (Here()) value.type.dtype = value.type.dtype == DType::kInt64 ? DType::kFp32 : DType::kInt64;
  }
  void Visit(Transfer& value) {
    if (Here()) ++value.end_sample;
  }
  void Visit(Attributes& values) {
    for (auto& [name, value] : values) {
      if (!Here()) continue;
      if (auto* number = std::get_if<int64_t>(&value)) ++*number;
      if (auto* real = std::get_if<double>(&value)) *real = -2 * *real - 1;
      if (auto* text = std::get_if<std::string>(&value)) *text += "x";
      if (auto* list = std::get_if<std::vector<int64_t>>(&value); list && !list->empty()) ++list->front();
    }
  }
  template <typename T>
  void Visit(std::optional<T>& value) {
    if (value) Visit(*value);
  }
  template <typename T>
  void Visit(std::vector<T>& values) {
    const FieldClass own = field_class_;
    const std::string list = here_;
    if (Here()) {  // the list itself: one item less; if it is empty, one more
      if (!values.empty())
        values.pop_back();
      else
        values.emplace_back();
    }
    here_ += "[]";
    for (T& value : values) {
      field_class_ = own;
      Visit(value);
    }
    here_ = list;
    field_class_ = own;
  }

  const std::string pattern_;
  const int number_ = -1;
  std::string here_;
  FieldClass field_class_ = FieldClass::kFree;
  std::map<std::string, Seen> seen_;
  bool done_ = false;
};

// A visitor of all fields, also of those outside the digest. It counts the numbers that have a range, and can give one
// of them a value outside it.
class RangeDamage {
 public:
  static constexpr bool kFills = true;
  using Outside = double (*)(const NumberRange& range);
  explicit RangeDamage(int number, Outside value) : number_(number), value_(value) {}

  int numbers() const { return numbers_; }
  const std::string& damaged() const { return damaged_; }
  double value() const { return outside_; }

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, T& value) {
    Visit(key, of, value);
  }
  template <typename T>
  void Omittable(const char* key, const FieldTraits& of, T& value, const std::type_identity_t<T>&) {
    Visit(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char* key, T& value, const std::type_identity_t<T>&) {
    Visit(key, kFollows, value);
  }

 private:
  template <typename T>
  void Visit(const char* key, const FieldTraits& of, T& value) {
    if constexpr (std::is_same_v<T, double>) {
      if (of.range.any() || numbers_++ != number_) return;
      damaged_ = key;
      outside_ = value = value_(of.range);
    } else if constexpr (requires { Describe(*this, value); }) {
      Describe(*this, value);
    }
  }
  template <typename T>
  void Visit(const char* key, const FieldTraits& of, std::optional<T>& value) {
    if (value) Visit(key, of, *value);
  }
  template <typename T>
  void Visit(const char* key, const FieldTraits& of, std::vector<T>& values) {
    for (T& value : values) Visit(key, of, value);
  }

  const int number_;
  const Outside value_;
  double outside_ = 0;
  int numbers_ = 0;
  std::string damaged_;
};

TEST(Ranges, NoNumberMayLeaveTheRangeOfItsField) {
  const Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  ASSERT_FALSE(plan.roles.empty());
  Plan copy = plan;
  RangeDamage counted(-1, nullptr);
  Describe(counted, copy);
  std::set<std::string> refused;
  Plan damaged;
  for (int number = 0; number < counted.numbers(); ++number) {
    using Range = NumberRange;
    for (const RangeDamage::Outside outside :
         {+[](const Range&) { return -1.0; }, +[](const Range&) { return std::nan(""); },
          +[](const Range&) { return HUGE_VAL; }, +[](const Range& range) { return 2 * range.high; },
          +[](const Range& range) { return range.low > 0 ? range.low / 2 : -0.5; }}) {
      damaged = plan;
      RangeDamage damage(number, outside);
      Describe(damage, damaged);
      const std::vector<Violation> found = VerifyPlan(damaged);
      EXPECT_FALSE(found.empty()) << damage.damaged() << " may be " << damage.value();
      refused.insert(damage.damaged());
      if (!std::isfinite(damage.value())) continue;  // a file has no such numbers
      damaged.digest = PlanDigest(damaged);
      EXPECT_FALSE(ReadPlan(WritePlan(damaged)).ok())
          << damage.damaged() << " may be " << damage.value() << " in a file";
    }
  }
  std::cout << "refused: " << counted.numbers() << " numbers of " << refused.size() << " fields, with 5 values each\n";
  EXPECT_GE(refused.size(), 12u);
}

// Fields that follow but that VerifyPlan need not check, with the reason.
const std::set<std::string>& NotVerified() {
  static const std::set<std::string> fields = {
      "format_version",  // ReadPlan refuses another version
  };
  return fields;
}

struct Case {
  const char* name;
  const char* recipe;
  std::vector<std::string> overrides;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class Fields : public ::testing::TestWithParam<Case> {};

TEST_P(Fields, WhatFollowsIsRefusedWithAnotherValue) {
  const Plan plan = CompiledFile(absl::StrCat(InSource("recipes/"), GetParam().recipe, ".yaml"), GetParam().overrides);
  ASSERT_FALSE(plan.roles.empty());
  FieldDamage counted;
  Plan copy = plan;
  Describe(counted, copy);
  int refused = 0, chosen_refused = 0, chosen = 0;
  Plan damaged;
  for (const auto& [field, seen] : counted.seen()) {
    if (seen.field_class == FieldClass::kFree) continue;
    const int step = std::max(1, (seen.values + kOccurrences - 1) / kOccurrences);
    for (int number = step / 2; number < seen.values; number += step) {
      damaged = plan;
      FieldDamage damage(field, number);
      Describe(damage, damaged);
      ASSERT_TRUE(damage.done()) << field << " " << number;
      const bool holds = VerifyPlan(damaged).empty();
      if (seen.field_class == FieldClass::kChosen) {
        ++chosen, chosen_refused += !holds;
        continue;
      }
      refused += !holds;
      if (!NotVerified().contains(field)) {
        EXPECT_FALSE(holds) << field << ", value " << number << " of " << seen.values << ", may have another value";
      }
    }
  }
  std::cout << "refused: " << refused << " values of fields that follow, " << chosen_refused << " of " << chosen
            << " values of chosen fields\n";
  EXPECT_GT(refused, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Fields,
    ::testing::Values(Case{"tiny", "nemotron_moe_vlm_tiny", {}}, Case{"toy", "nemotron_moe_vlm_20l_mock_8r_toy", {}},
                      Case{"decoder",
                           "qwen3_moe_tiny",
                           {"cluster.gpus_per_node=8", "modules.language.placement.ranks=8",
                            "modules.language.parallel={tp: 2, cp: 2, pp: 2, ep: 2, expert_tp: 2}",
                            "models.decoder_tiny.attention.biases=all"}},
                      Case{"every_axis",
                           "nemotron_moe_vlm_tiny",
                           {"cluster.nodes=2", "modules.radio_encoder.placement.ranks=8",
                            "modules.radio_encoder.parallel={tp: 2, cp: 2, pp: 2}",
                            "modules.language.placement.first_rank=8", "modules.language.placement.ranks=8",
                            "modules.language.parallel={tp: 2, cp: 2, pp: 2, ep: 2, expert_tp: 2}",
                            "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4",
                            "modules.language.recompute=[full]", "data.packed_documents=true"}},
                      Case{"adapters",
                           "nemotron_moe_vlm_tiny",
                           {"cluster.gpus_per_node=6", "modules.radio_encoder.placement.ranks=2",
                            "modules.radio_encoder.parallel.tp=2", "modules.language.placement.first_rank=2",
                            "modules.language.placement.ranks=4", "modules.language.parallel={tp: 2, pp: 2}",
                            "checkpoint.every_steps=2", "modules.radio_encoder.train.backbone=frozen",
                            "modules.radio_encoder.adapter={rank: 2, alpha: 4.0, targets: [attn.qkv, fc2]}",
                            "models.radio_vit_tiny.positions=interpolate", "modules.language.train.backbone=frozen",
                            "modules.language.adapter={rank: 3, alpha: 6.0, targets: [in_proj, q_proj, v_proj, "
                            "shared_experts.down_proj]}"}},
                      Case{"evaluated",
                           "nemotron_moe_vlm_tiny",
                           {"cluster.gpus_per_node=5", "modules.language.placement.first_rank=1",
                            "modules.language.placement.ranks=4", "modules.language.parallel={tp: 2, cp: 2}",
                            "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4",
                            "evaluation={every_samples: 8, sets: [{name: held_out, samples: 7, seed: 99}]}"}},
                      Case{"gathered",
                           "nemotron_moe_vlm_tiny",
                           {"cluster.gpus_per_node=5", "modules.language.placement.first_rank=1",
                            "modules.language.placement.ranks=4",
                            "modules.language.parallel={tp: 2, ep: 2, expert_tp: 2, dispatch: all_gather}"}},
                      Case{"shared_keys_and_padding",
                           "nemotron_moe_lm_tiny",
                           {"cluster.gpus_per_node=4", "modules.language.placement.ranks=4",
                            "modules.language.parallel={tp: 4, ep: 2}", "models.hybrid_moe_tiny.mamba.groups=4",
                            "models.hybrid_moe_tiny.vocabulary=259"}},
                      Case{"overlap",
                           "nemotron_moe_vlm_20l_mock_8r_toy",
                           {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright
