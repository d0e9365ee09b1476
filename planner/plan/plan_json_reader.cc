#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/number_runs.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/plan_ranges.h"
#include "planner/plan/value_type.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// The longest allowed list of T. Rules of verify/ may compare each of these with each other one.
template <typename T>
constexpr size_t kMostItems = std::is_same_v<T, Module> || std::is_same_v<T, Bridge> ? kMostModules
                              : std::is_same_v<T, Group> || std::is_same_v<T, Role> || std::is_same_v<T, Symbol> ||
                                      std::is_same_v<T, StageSchedule>
                                  ? kMostParts
                                  : SIZE_MAX;

// The first problem. When there is one, the rest is skipped.
struct Problem {
  std::string path, message;
  const char* file = "a plan";  // what is read
  int64_t listed = 0;           // rows of all runs so far: a short run may claim any number of rows
  bool found() const { return !message.empty(); }
};

// A visitor of plan_fields.h that fills one object of the plan from one object of JSON. `path` is its place in the
// plan, for messages.
class Reader {
 public:
  static constexpr bool kFills = true;

  Reader(const Json& object, std::string path, Problem& problem)
      : object_(object), path_(std::move(path)), problem_(problem) {}

  template <typename T>
  void operator()(const char* key, FieldClass, T& value) {
    if (const Json* field = Take(key)) {
      Read(*field, Inner(key), value);
    } else {
      Fail(Inner(key), "the field is missing");
    }
  }
  // The one part of a plan that may be absent: then weights are drawn.
  void operator()(const char* key, FieldClass, std::optional<InitializePlan>& value) {
    if (const Json* field = Take(key)) Read(*field, Inner(key), value.emplace());
  }
  template <typename T>
  void Omittable(const char* key, FieldClass, T& value, const std::type_identity_t<T>& absent) {
    if (const Json* field = Take(key)) {
      Read(*field, Inner(key), value);
    } else {
      value = absent;
    }
  }
  template <typename T>
  void OutsideDigest(const char* key, T& value, const std::type_identity_t<T>& absent) {
    Omittable(key, FieldClass::kFree, value, absent);
  }

  // Call after all fields are visited.
  void RefuseUnknown() {
    for (const auto& [key, value] : object_.items()) {
      if (!taken_.contains(key)) Fail(Inner(key), absl::StrCat(problem_.file, " has no such field"));
    }
  }

 private:
  // The field of a key, which is then known; null if it is absent.
  const Json* Take(const char* key) {
    taken_.insert(key);
    auto it = object_.find(key);
    return it == object_.end() ? nullptr : &*it;
  }
  std::string Inner(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  // Keeps the first problem: those after it are often its consequences.
  void Fail(const std::string& path, std::string message) {
    if (!problem_.found()) problem_.path = path, problem_.message = std::move(message);
  }
  // Fails unless the value has the type `what`. Returns whether to go on reading it.
  bool Expect(bool holds, const Json& json, const std::string& path, const char* what) {
    if (!holds) Fail(path, absl::StrCat("expected ", what, ", found ", json.type_name()));
    return holds && !problem_.found();
  }

  // An object: its fields, then whether it has others, then its ranges, which may compare several fields.
  template <typename T>
  void Read(const Json& json, const std::string& path, T& value) {
    if (!Expect(json.is_object(), json, path, "an object")) return;
    Reader inner(json, path, problem_);
    Describe(inner, value);
    inner.RefuseUnknown();
    CheckRange(value, path);
  }
  void Read(const Json& json, const std::string& path, bool& value) {
    if (Expect(json.is_boolean(), json, path, "true or false")) value = json.get<bool>();
  }
  void Read(const Json& json, const std::string& path, int64_t& value) {
    if (!Expect(json.is_number_integer(), json, path, "an integer")) return;
    // An unsigned number above INT64_MAX must be refused below, and not wrap around to a small one.
    value = json.is_number_unsigned() ? static_cast<int64_t>(std::min<uint64_t>(json.get<uint64_t>(), INT64_MAX))
                                      : json.get<int64_t>();
    if (value > kLargestNumber || value < -kLargestNumber) Fail(path, "the integer is too large");
  }
  void Read(const Json& json, const std::string& path, int& value) {
    int64_t wide = 0;
    Read(json, path, wide);
    if (wide < INT_MIN || wide > INT_MAX) return Fail(path, "the integer is too large");
    value = static_cast<int>(wide);
  }
  void Read(const Json& json, const std::string& path, double& value) {
    if (Expect(json.is_number(), json, path, "a number")) value = json.get<double>();
  }
  void Read(const Json& json, const std::string& path, std::string& value) {
    if (!Expect(json.is_string(), json, path, "text")) return;
    value = json.get<std::string>();
    // Names are printed on terminals, which obey control characters, and a C string ends at NUL.
    if (!IsPrintable(value)) Fail(path, "the text has a control character");
  }
  void Read(const Json& json, const std::string& path, char& value) {
    std::string text;
    Read(json, path, text);
    if (text.size() != 1) return Fail(path, "expected one character");
    value = text[0];
  }
  void Read(const Json& json, const std::string& path, Axis& value) {
    ReadWord(json, path, AxisFromName, "axis", value);
  }
  void Read(const Json& json, const std::string& path, View& value) {
    ReadWord(json, path, ViewFromName, "view", value);
  }
  void Read(const Json& json, const std::string& path, OpKind& value) { ReadWord(json, path, OpFromName, "op", value); }
  void Read(const Json& json, const std::string& path, DType& value) {
    ReadWord(json, path, DTypeFromName, "dtype", value);
  }
  void Read(const Json& json, const std::string& path, TpGradient& value) {
    ReadWord(json, path, TpGradientFromName, "way to share a gradient", value);
  }
  void Read(const Json& json, const std::string& path, Init::Kind& value) {
    ReadWord(json, path, InitKindFromName, "draw", value);
  }
  void Read(const Json& json, const std::string& path, DataKind& value) {
    ReadWord(json, path, DataKindFromName, "kind of data", value);
  }
  void Read(const Json& json, const std::string& path, SourceKind& value) {
    ReadWord(json, path, SourceKindFromName, "kind of source", value);
  }
  void Read(const Json& json, const std::string& path, Output& value) {
    ReadWord(json, path, OutputFromText, "value (as in \"x: fp32[4,8] tp:shard0\")", value);
  }
  void Read(const Json& json, const std::string& path, std::vector<Transfer>& transfers) {
    if (!Expect(json.is_array(), json, path, "a list")) return;
    std::vector<NumberRow<4>> rows;
    for (size_t i = 0; i < json.size() && !problem_.found(); ++i) {
      ReadRun(json[i], absl::StrCat(path, "[", i, "]"), "[from rank, to rank, first sample, end sample]", rows);
    }
    for (const auto& [from, to, first, end] : rows) {
      transfers.push_back({.first_sample = first, .end_sample = end});
      if (!Narrow(from, transfers.back().from_rank) || !Narrow(to, transfers.back().to_rank))
        return Fail(path, "a rank is too large");
      CheckRange(transfers.back(), path);
    }
  }
  // A list of numbers, in which runs are lists.
  void Read(const Json& json, const std::string& path, std::vector<int>& values) {
    if (!Expect(json.is_array(), json, path, "a list")) return;
    std::vector<NumberRow<1>> rows;
    for (size_t i = 0; i < json.size() && !problem_.found(); ++i) {
      const std::string inner = absl::StrCat(path, "[", i, "]");
      json[i].is_array() ? ReadRun(json[i], inner, "[first]", rows) : Read(json[i], inner, rows.emplace_back()[0]);
    }
    for (const auto& [row] : rows) {
      if (!Narrow(row, values.emplace_back())) return Fail(path, "the integer is too large");
    }
  }
  // Appends the rows of a run [first..., count, step...], or of a single row [first...].
  template <size_t N>
  void ReadRun(const Json& json, const std::string& path, const char* row, std::vector<NumberRow<N>>& rows) {
    std::vector<int64_t> numbers;
    Read(json, path, numbers);
    if (problem_.found()) return;
    if (numbers.size() != N && numbers.size() != 2 * N + 1) {
      return Fail(path, absl::StrCat("expected ", row, ", or a run of such rows, which has a count and ", N,
                                     " steps in addition; found ", numbers.size(), " numbers"));
    }
    NumberRun<N> run;
    std::copy_n(numbers.begin(), N, run.first.begin());
    if (numbers.size() > N) {
      run.count = numbers[N];
      std::copy_n(numbers.begin() + N + 1, N, run.step.begin());
    }
    // Before the rows are made: a few digits of a count could otherwise fill the memory.
    if (run.count < 1 || run.count > kMostListed - problem_.listed) {
      return Fail(
          path, absl::StrCat("a run has count ", run.count,
                             "; a run has at least 1 row, and all runs of a plan together have at most ", kMostListed));
    }
    problem_.listed += run.count;
    AppendRows(run, rows);
  }
  static bool Narrow(int64_t wide, int& value) {
    value = static_cast<int>(wide);
    return value == wide;
  }
  void Read(const Json& json, const std::string& path, Attribute& value) {
    if (json.is_number_integer()) return Read(json, path, value.emplace<int64_t>());
    if (json.is_number()) return Read(json, path, value.emplace<double>());
    if (json.is_string()) return Read(json, path, value.emplace<std::string>());
    if (json.is_array()) return Read(json, path, value.emplace<std::vector<int64_t>>());
    Expect(false, json, path, "a number, text or a list of integers");
  }
  template <typename T>
  void Read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!Expect(json.is_array(), json, path, "a list")) return;
    if (json.size() > kMostItems<T>)
      return Fail(path, absl::StrCat("the list has more than ", kMostItems<T>, " items"));
    for (size_t i = 0; i < json.size() && !problem_.found(); ++i)
      Read(json[i], absl::StrCat(path, "[", i, "]"), values.emplace_back());
  }
  void Read(const Json& json, const std::string& path, Attributes& values) {
    if (!Expect(json.is_object(), json, path, "an object")) return;
    for (const auto& [key, value] : json.items()) {
      if (!IsPrintable(key)) return Fail(path, "a name in it has a control character");
      Read(value, path + "." + key, values[key]);
    }
  }
  template <typename T, typename FromText>
  void ReadWord(const Json& json, const std::string& path, FromText from_text, const char* what, T& value) {
    std::string text;
    Read(json, path, text);
    if (problem_.found()) return;
    if (auto found = from_text(text)) {
      value = *std::move(found);
    } else {
      Fail(path, absl::StrCat("no ", what, ": \"", text, "\""));
    }
  }

  // Ranges of the parts that have any (plan_ranges.h).
  template <typename T>
  void CheckRange(const T& value, const std::string& path) {
    if constexpr (requires { RangeProblem(value); }) {
      if (std::string problem = RangeProblem(value); !problem.empty()) Fail(path, std::move(problem));
    }
  }

  const Json& object_;
  const std::string path_;
  Problem& problem_;
  std::set<std::string> taken_;
};

// Checked before the fields: a file of another version has other fields, and their names would mislead.
absl::Status CheckVersion(const Json& json, const char* what, int64_t version) {
  if (!json.is_object() || !json.contains("format_version") || !json["format_version"].is_number_integer()) {
    return absl::InvalidArgumentError(absl::StrCat("not a ", what, ": it has no format_version"));
  }
  if (json["format_version"] != version) {
    return absl::FailedPreconditionError(
        absl::StrCat("the ", what, " has format_version ", JsonText(json["format_version"]),
                     "; this version of Planwright (", kToolVersion, ") reads ", version));
  }
  return absl::OkStatus();
}

// Such a plan has other fields, too. Evaluation sets are of the kind of the data.
absl::Status CheckDataKind(const Json& json) {
  const auto data = json.find("data");
  if (data == json.end() || !data->is_object() || !data->contains("kind") || !(*data)["kind"].is_string())
    return absl::OkStatus();  // told with the other fields
  const GoneDataKind* gone = FindGoneDataKind((*data)["kind"].get<std::string>());
  if (gone == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the plan has data of kind ", std::string(gone->word),
                                                    ", which this version of Planwright (", kToolVersion,
                                                    ") does not have; ", std::string(gone->in_plan)));
}

}  // namespace

absl::StatusOr<Plan> ReadPlan(std::string_view text) {
  absl::StatusOr<Json> json = ParseOrderedJson(text, kPlanJson);
  if (!json.ok()) return absl::InvalidArgumentError(absl::StrCat("not a plan: ", json.status().message()));
  if (absl::Status status = CheckVersion(*json, "plan", kPlanFormatVersion); !status.ok()) return status;
  if (absl::Status status = CheckDataKind(*json); !status.ok()) return status;
  Plan plan;
  Problem problem;
  Reader reader(*json, "", problem);
  Describe(reader, plan);
  reader.RefuseUnknown();
  if (!problem.found()) problem.path = "the plan", problem.message = RangeProblem(plan);
  if (problem.found()) return absl::InvalidArgumentError(problem.path + ": " + problem.message);
  // Last, because the problems before name a place, and a digest cannot.
  if (const std::string digest = PlanDigest(plan); digest != plan.digest) {
    return absl::InvalidArgumentError("digest: the plan was changed after it was compiled (its contents give " +
                                      digest + ", it says " + (plan.digest.empty() ? "nothing" : plan.digest) + ")");
  }
  return plan;
}

absl::StatusOr<CountedSamples> CountedFromJson(const Json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError("not the counts of an index: it is no object");
  CountedSamples counted;
  Problem problem{.file = "what an index counts"};
  Reader reader(json, "", problem);
  Describe(reader, counted);
  reader.RefuseUnknown();
  if (problem.found()) return absl::InvalidArgumentError(problem.path + ": " + problem.message);
  return counted;
}

absl::StatusOr<DeviceProfile> ReadProfile(std::string_view text) {
  absl::StatusOr<Json> json = ParseOrderedJson(text, kProfileJson);
  if (!json.ok()) return absl::InvalidArgumentError(absl::StrCat("not a profile: ", json.status().message()));
  if (absl::Status status = CheckVersion(*json, "profile", kProfileFormatVersion); !status.ok()) return status;
  DeviceProfile profile;
  Problem problem{.file = "a profile"};
  Reader reader(*json, "", problem);
  Describe(reader, profile);
  reader.RefuseUnknown();
  if (!problem.found() && !profile.measured()) problem.path = "gpu", problem.message = "the word is empty";
  if (problem.found()) return absl::InvalidArgumentError(problem.path + ": " + problem.message);
  return profile;
}

}  // namespace planwright
