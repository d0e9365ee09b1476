// Numbers at both ends of their ranges: of each key of a recipe, and of each real number of a plan. What is accepted is
// planned, proved, predicted, written and shown, and no figure of it is infinite, no number, or beyond 64 bits.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cmath>
#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planner/base/json/json_text.h"
#include "planner/compile/compile.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/plan_ranges.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/show.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// Sections with every number, on a device whose figures are all given.
const std::vector<std::string>& Base() {
  static const std::vector<std::string> overrides = {
      "cluster={nodes: 1, gpus_per_node: 8, gpu: other, host_memory: 900}",
      "cluster.device={memory: 80, peak: 900, bandwidth: 3000, link: 400, network: 50}",
      "evaluation={every_samples: 16, sets: [{name: held_out, samples: 8, seed: 5}]}",
      "divergence={window: 10, factor: 3}",
      "checkpoint={every_steps: 1, keep_last: 2, keep_every_steps: 2}",
      "bridges=[{from: radio_encoder, to: language, max_mean_square: 50}]",
      "models.hybrid_moe_tiny.moe.imbalance=2",
      "budget.learning_rate={peak: 0.001, min: 0.0001, init: 0.0, warmup_samples: 8, style: cosine}",
      "budget.weight_decay={start: 0.1, end: 0.1}",
      "optimizer.parts=[{match: language, learning_rate: 0.002, weight_decay: 0.05}]",
      "launch.deadline={floor: 600}"};
  return overrides;
}

// A number in a text that people read, or in a file that programs read: its place, or npos.
size_t FindEndless(std::string_view text) {
  const auto is_word = [&](size_t at) {
    return at < text.size() && (std::isalpha(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (const std::string_view word :
       {"inf", "nan", "Infinity", "NaN", "9,223,372,036,854,775,80", "9223372036854775807", "9223372036854775808"}) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      if (!is_word(at + word.size()) && (at == 0 || !is_word(at - 1))) return at;
    }
  }
  return std::string_view::npos;
}

void ExpectFigures(const Plan& plan, const std::string& what) {
  const StepTime time = TimeStep(plan);
  const auto json = [](const nlohmann::ordered_json& of) { return JsonText(of, 2); };
  const std::array texts = {ShowRanks(plan),
                            ShowBridges(plan),
                            ShowBudget(plan, {0, 1, kMostSamples}),
                            ShowSchedule(plan, time),
                            ShowModel(plan, time),
                            ShowTime(plan, time, nullptr),
                            ShowMemory(plan),
                            ShowProgram(plan, ""),
                            PlanPage(plan, time),
                            WritePlan(plan),
                            json(ShowBudgetJson(plan, {0, 1, kMostSamples})),
                            json(ShowModelJson(plan, time)),
                            json(ShowTimeJson(plan, time, nullptr)),
                            json(ShowMemoryJson(plan))};
  for (const std::string& text : texts) {
    const size_t at = FindEndless(text);
    if (at == std::string::npos) continue;
    ADD_FAILURE() << what << ": " << text.substr(at < 80 ? 0 : at - 80, 120);
    return;
  }
}

// The keys of one path in the recipe of Base(): "models.<name>.hidden" is in two models.
std::vector<std::string> OverridesOf(const KeySpec& spec, const std::string& number) {
  const std::string path(spec.path);
  std::string value = number;
  if (spec.type == KeyType::kNumberPair) return {path + "=[" + number + ", 0.5]", path + "=[0.5, " + number + "]"};
  if (spec.type == KeyType::kIntegerPairs) value = "[[" + number + ", 2]]";
  if (spec.type == KeyType::kIntegers) value = "[" + number + "]";
  if (path.starts_with("models.<name>.")) {
    const bool encoder = spec.kind == "radio_vit" || path.find("projector") != std::string::npos;
    return {absl::StrReplaceAll(path, {{"<name>", encoder ? "radio_vit_tiny" : "hybrid_moe_tiny"}}) + "=" + value};
  }
  if (path.starts_with("modules.<name>.")) {
    return {absl::StrReplaceAll(path, {{"<name>", "language"}}) + "=" + value,
            absl::StrReplaceAll(path, {{"<name>", "radio_encoder"}}) + "=" + value};
  }
  if (path.starts_with("bridges[]"))
    return {"bridges=[{from: radio_encoder, to: language, " + path.substr(10) + ": " + value + "}]"};
  if (path.starts_with("optimizer.parts[]."))
    return {"optimizer.parts=[{match: language, " + path.substr(18) + ": " + value + "}]"};
  if (path.starts_with("evaluation.sets[]."))
    return {absl::StrCat("evaluation={every_samples: 16, sets: [{name: held_out, ",
                         path == "evaluation.sets[].seed" ? "samples: 8, seed: " : "seed: 5, samples: ", value, "}]}")};
  return {path + "=" + value};
}

std::string NumberOf(double number, bool integer) {
  if (integer) return absl::StrCat(static_cast<int64_t>(number));
  return absl::StrFormat("%.17g", number);
}

TEST(NumberEnds, OfEachKeyGiveFiguresOrAProblem) {
  int planned = 0, refused = 0;
  for (const KeySpec& spec : RecipeKeys()) {
    // Sources need files.
    if (spec.range.any() || spec.path.find("sources[]") != std::string_view::npos) continue;
    const bool integer = spec.type != KeyType::kNumber && spec.type != KeyType::kNumberPair;
    const double inside = integer ? 1 : 1e-9 * (spec.range.high - spec.range.low);
    for (const double end : {spec.range.low + (spec.range.above ? inside : 0),
                             spec.range.below ? std::nextafter(spec.range.high, 0) : spec.range.high}) {
      for (const std::string& override : OverridesOf(spec, NumberOf(end, integer))) {
        std::vector<std::string> overrides = Base();
        overrides.push_back(override);
        Diagnostics problems;
        const std::optional<Recipe> recipe =
            ReadRecipe(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), overrides, problems);
        ASSERT_TRUE(recipe) << override;
        // The table and the reader say the same.
        for (const Diagnostic& problem : problems.as_found()) {
          EXPECT_FALSE(problem.kind == DiagnosticKind::kOutOfRange && problem.help.starts_with("the range is"))
              << override << ": " << problem.message;
        }
        const std::optional<Plan> plan = CompileRecipe(*recipe, problems);
        ++(plan ? planned : refused);
        EXPECT_TRUE(plan || problems.has_errors()) << override;
        if (plan) ExpectFigures(*plan, override);
      }
    }
  }
  std::cout << planned << " planned, " << refused << " refused\n";
  EXPECT_GT(planned, 60);
  EXPECT_GT(refused, 20);
}

// A visitor of all fields: counts the real numbers that have a range, and puts one of them at an end of it.
class AtEnd {
 public:
  static constexpr bool kFills = true;
  AtEnd(int number, bool high) : number_(number), high_(high) {}

  int numbers() const { return numbers_; }
  const std::string& changed() const { return changed_; }

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
      value = high_ ? (of.range.below ? std::nextafter(of.range.high, 0) : of.range.high)
                    : (of.range.above ? std::nextafter(of.range.low, HUGE_VAL) : of.range.low);
      changed_ = absl::StrCat(key, "=", value);
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
  const bool high_;
  int numbers_ = 0;
  std::string changed_;
};

TEST(NumberEnds, OfEachFieldOfAPlanGiveFiguresOrAreRefused) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), Base(), problems);
  const std::optional<Plan> plan = CompileRecipe(*recipe, problems);
  ASSERT_TRUE(plan);
  Plan copy = *plan;
  AtEnd counted(-1, false);
  Describe(counted, copy);
  int shown = 0;
  for (int number = 0; number < counted.numbers(); ++number) {
    for (const bool high : {false, true}) {
      Plan changed = *plan;
      AtEnd end(number, high);
      Describe(end, changed);
      EXPECT_EQ(RangeProblem(changed), "") << end.changed();
      // What follows from it is another number: the rules say so.
      if (!VerifyPlan(changed).empty()) continue;
      ExpectFigures(changed, end.changed());
      ++shown;
    }
  }
  EXPECT_GT(counted.numbers(), 15);
  EXPECT_GT(shown, 25);
}

TEST(NumberEnds, AreFound) {
  for (const char* text : {"a step takes inf s", "-nan %", "takes -9,223,372,036,854,775,808 h", "[Infinity]"})
    EXPECT_NE(FindEndless(text), std::string::npos) << text;
  for (const char* text : {"info", "nanoseconds", "radio_inf", "9,223"})
    EXPECT_EQ(FindEndless(text), std::string::npos) << text;
}

}  // namespace
}  // namespace planwright
